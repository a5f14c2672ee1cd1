package trackiorow

import (
	"fmt"
	"testing"
)

func TestScalars(t *testing.T) {
	body := `{"a":1,"b":"NaN","c":"Infinity","d":"-Infinity","e":"nan","f":true,"g":null,"h":{"x":1},"i":[1],"j":1e999,"k":-2.5e3}`
	list, err := Scalars([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, s := range list {
		got += fmt.Sprintf("%s=%v %s\n", s.Key, s.Value, body[s.From:s.End])
	}
	want := "a=1 \"a\":1\nb=NaN \"b\":\"NaN\"\nc=+Inf \"c\":\"Infinity\"\nd=-Inf \"d\":\"-Infinity\"\nj=+Inf \"j\":1e999\nk=-2500 \"k\":-2.5e3\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	for _, bad := range []string{"", "[1]", `{"a":1`, "x", "NaN"} {
		if list, err := Scalars([]byte(bad)); err == nil || list != nil {
			t.Errorf("%q: %v, %v", bad, list, err)
		}
	}
}

func TestTime(t *testing.T) {
	for text, want := range map[string]float64{
		"2026-12-01T05:02:03.012182+00:00": 1796101323.012182,
		"2026-12-01T05:02:03+00:00":        1796101323,
		"2026-12-01T05:02:03.012182":       1796101323.012182,
		"2026-12-01T06:02:03+01:00":        1796101323,
		"yesterday":                        0,
	} {
		if got := Time(text); got != want {
			t.Errorf("%s: %f", text, got)
		}
	}
	if got := FormatTime(1796101323.012182); got != "2026-12-01T05:02:03.012182+00:00" {
		t.Errorf("FormatTime: %s", got)
	}
}

func FuzzScalars(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":"NaN"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		list, _ := Scalars(body)
		for _, s := range list {
			if s.From < 0 || s.End > len(body) || s.From >= s.End {
				t.Fatalf("%+v of %d bytes", s, len(body))
			}
		}
	})
}
