package swanrecord

import (
	"encoding/hex"
	"math"
	"testing"
)

// TestGolden: a scalar record that SwanLab's own code reads.
func TestGolden(t *testing.T) {
	data, _ := hex.DecodeString("080112060881e2cfaa066a1d0a046c6f73731001180122060881e2cfaa062a0909000000000000e03f")
	r, err := Decode(data)
	if err != nil || r.Num != 1 || r.Wall != 1700000001 || r.Kind != Scalar {
		t.Fatalf("%+v, %v", r, err)
	}
	p, err := r.Point()
	if err != nil || string(p.Key) != "loss" || p.Step != 1 || p.Wall != 1700000001 || p.Value != 0.5 {
		t.Errorf("%+v, %v", p, err)
	}
	if got := Encode(1, 1700000001, Scalar, EncodePoint("loss", 1, 1700000001, 0.5)); hex.EncodeToString(got) != hex.EncodeToString(data) {
		t.Errorf("encoded %x", got)
	}
	for i := range data {
		if r, err := Decode(data[:i]); err == nil && r.Kind == Scalar {
			r.Point()
		}
	}
}

func TestPoint(t *testing.T) {
	for _, want := range []Point{{Key: []byte("a"), Step: -3, Wall: 1700000001.25, Value: 0}, {Key: []byte("b/c"), Value: math.Inf(-1)}, {}} {
		r, err := Decode(Encode(7, 0, Scalar, EncodePoint(string(want.Key), want.Step, want.Wall, want.Value)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Point()
		if err != nil || string(got.Key) != string(want.Key) || got.Step != want.Step || got.Wall != want.Wall || got.Value != want.Value {
			t.Errorf("got %+v, want %+v, %v", got, want, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	data, _ := hex.DecodeString("080112060881e2cfaa066a1d0a046c6f73731001180122060881e2cfaa062a0909000000000000e03f")
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := Decode(data); err == nil {
			r.Point()
		}
	})
}
