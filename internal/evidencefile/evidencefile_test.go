package evidencefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// sample is a record in which nothing is zero.
func sample(path string, points int) *Artifact {
	stamp := evidence.Stamp{Time: time.Date(2026, 4, 2, 10, 0, 1, 500, time.UTC), Written: "2026-04-02 10:00:01", Zone: "Z", NoDate: true, NoYear: true, Error: time.Second, Clock: "wall", Host: "h"}
	span := evidence.Span{Artifact: path, Kind: "text", Line: 7, Column: 3, Offset: 99, Length: 12}
	who := evidence.Who{Attempt: "attempt_1", Launch: 2, Host: "h", Rank: 3, LocalRank: evidence.None, Device: 1, BusID: "0000:3b:00", PID: 77}
	key := evidence.SeriesKey{Name: "loss", Source: "hf", Artifact: path, Rank: 3, Launch: 2, Unit: "steps", Trust: evidence.Raw, Phase: "train"}
	series := evidence.NewSeries(key)
	for i := range int64(points) {
		p := evidence.Point{Step: i * 10, Value: 3 / float64(i+1), Line: i + 1, Offset: i * 40, Length: 39}
		switch {
		case i == 40:
			p.Value = math.NaN()
		case i == 41:
			p.Value = math.Inf(-1)
		case i%5 == 0:
			p.Value = math.Round(p.Value*1e4) / 1e4
		}
		if series.WillSample() {
			s := stamp
			s.Time = s.Time.Add(time.Duration(i) * time.Second)
			p.Stamp = &s
		}
		series.Add(p)
	}
	return &Artifact{
		Artifact: evidence.Artifact{Path: path, Kind: "ranklog", Size: 4096, Digest: "sha256:00", Fate: "partly read", Note: "cut"},
		Place:    "a/b", Host: "h", Named: true, Confidence: 50, ModTime: time.Unix(1, 5).UTC(), Read: true, Share: 3,
		Events: []evidence.Event{{Kind: evidence.GPUUsage, Who: who, Stamp: stamp, Step: 12, Epoch: .25, Text: "text", Span: span, Line: "line-id",
			Attrs: evidence.Attrs{"name": evidence.TextOf("x"), "gpu": evidence.IntOf(-3), "util": evidence.FloatOf(math.Inf(1)), "used": evidence.SizeOf(1, 2), "persistence": evidence.BoolOf(true)},
			Stack: []evidence.Frame{{File: "f.py", Line: 3, Function: "fn", Source: "src"}}, Chain: "final", Quoted: true}, {Kind: evidence.Exited, Span: evidence.Span{Artifact: path, Kind: "row", Table: "t", Row: 3, Record: 4, Pointer: "/a", Device: 1, Index: 2, Stack: "s", Quote: "q"}}},
		Series: []*evidence.Series{series, evidence.NewSeries(key)},
		Facts:  []evidence.Fact{{Name: "run.world", Value: evidence.IntOf(8), Who: who, Span: span}},
		Owners: []evidence.Owner{{Job: "1", Attempt: "a", Host: "h", Rank: 1, LocalRank: 2, Basis: "words"}}, Damages: []Problem{{span, "torn"}}, Failed: &Problem{span, "cut"},
		DroppedEvents: 1, DroppedSeries: 2, DroppedFacts: 3, DroppedDamages: 4,
		Quotes: []string{"one", "two", "one"}, Around: []Lines{{3, []string{"a", "b"}}, {}},
	}
}

func sampleFile(t testing.TB, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Scan(&Scan{Of: "x", Passed: []Tally{{"picture", 3, 400}}, Alike: []Tally{{".json", 5000, 1}}, Problems: []Problem{{evidence.Span{Artifact: "p"}, "no"}}, More: 2, Missing: []Problem{{evidence.Span{Artifact: "m"}, "gone"}}}); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		a := sample(fmt.Sprintf("rank_%04d.log", i), 3000)
		if err := w.Artifact(a.Path, a.Encode()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestRoundTrip: a record decodes to what it was, and to the same bytes.
func TestRoundTrip(t *testing.T) {
	a := sample("rank_0.log", 3000)
	b := a.Encode()
	got, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if again := got.Encode(); !bytes.Equal(again, b) {
		t.Error("encoded again, the bytes differ")
	}
	// NaN is not equal to itself: the series are compared by their bytes above.
	series := got.Series[0].State()
	if want := a.Series[0].State(); series.Count != want.Count || series.Bad != 2 || len(series.Sample) != len(want.Sample) || series.Sample[3].When() != want.Sample[3].When() || !math.IsNaN(series.FirstBad.Value) {
		t.Errorf("series %+v", series)
	}
	a.Series, got.Series = nil, nil
	if !reflect.DeepEqual(got, a) {
		t.Errorf("got  %+v\nwant %+v", got, a)
	}
	if head, err := Head(b); err != nil || head.Path != a.Path || head.Share != 3 || !head.ModTime.Equal(a.ModTime) {
		t.Errorf("head %+v, %v", head, err)
	}
}

// TestFloats: values come back bit for bit.
func TestFloats(t *testing.T) {
	for _, v := range []float64{0, math.Copysign(0, -1), 1, -1, .1, 1e300, 1e-300, 5e-324, math.MaxFloat64, math.Pi, 1 / 3.0, 123456789012345678, math.NaN(), math.Inf(1), math.Inf(-1), 2.3451, 1e22, 0.30000000000000004} {
		c := newEncoder()
		w := v
		c.float(&w)
		var got float64
		d := newDecoding(c.buf)
		if d.float(&got); d.err != nil || math.Float64bits(got) != math.Float64bits(v) {
			t.Errorf("%v comes back as %v, %v", v, got, d.err)
		}
	}
}

// readAll returns the paths of the records that decode.
func readAll(b []byte) (paths []string, scans int, err error) {
	err = Read(bytes.NewReader(b), func(*Scan) { scans++ }, func(_ Place, rec []byte) {
		if a, err := Decode(rec); err == nil {
			paths = append(paths, a.Path)
		}
	})
	return paths, scans, err
}

// TestCut: every prefix of a file gives the place of the damage and whole records
// before it.
func TestCut(t *testing.T) {
	b := sampleFile(t, 40)
	all, scans, err := readAll(b)
	if err != nil || len(all) != 40 || scans != 1 {
		t.Fatalf("%d records, %d scans, %v", len(all), scans, err)
	}
	most := 0
	for n := 0; n < len(b); n += 1 + n%97 {
		paths, _, err := readAll(b[:n])
		var d *Damage
		if !errors.As(err, &d) || d.Offset > int64(n) {
			t.Fatalf("cut at %d of %d: %v", n, len(b), err)
		}
		if len(paths) < most {
			t.Fatalf("cut at %d: %d records, and %d of a shorter piece", n, len(paths), most)
		}
		most = len(paths)
	}
	if paths, _, err := readAll(b[:len(b)-1]); err == nil || len(paths) != 40 {
		t.Errorf("without its last byte: %d records, %v", len(paths), err)
	}
	for i := len(magic); i < len(b); i += 1 + i%401 {
		c := bytes.Clone(b)
		c[i] ^= 0x40
		if _, _, err := readAll(c); err == nil {
			t.Fatalf("a changed byte at %d goes unnoticed", i)
		}
	}
}

func TestVersion(t *testing.T) {
	_, _, err := readAll([]byte(strings.Replace(magic, "2", "3", 1) + "anything"))
	if err == nil || !strings.Contains(err.Error(), "version") {
		t.Error(err)
	}
}

// TestBlocks: single records are found where Read says they are.
func TestBlocks(t *testing.T) {
	b := sampleFile(t, 40)
	cache, err := NewCache()
	if err != nil {
		t.Fatal(err)
	}
	blocks := cache.Blocks(func() (io.ReaderAt, io.Closer, error) { return bytes.NewReader(b), io.NopCloser(nil), nil })
	if err := Read(bytes.NewReader(b), func(*Scan) {}, func(at Place, rec []byte) {
		if got, err := blocks.Artifact(at); err != nil || !bytes.Equal(got, rec) {
			t.Errorf("%+v: %v", at, err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := blocks.Artifact(Place{3, 0}); err == nil {
		t.Error("a wrong place is no error")
	}
}

func smallFile(t testing.TB) []byte {
	var b bytes.Buffer
	w, err := NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"a", "b"} {
		if err := w.Artifact(path, sample(path, 5).Encode()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func FuzzRead(f *testing.F) {
	f.Add(sampleFile(f, 0))
	f.Add(smallFile(f))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		readAll(b)
	})
}

// FuzzRecord: what decodes is encoded to bytes that decode to the same.
func FuzzRecord(f *testing.F) {
	f.Add(sample("a", 60).Encode())
	f.Add((&Artifact{}).Encode())
	f.Add((&Scan{Of: "x"}).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		decodeScan(b)
		a, err := Decode(b)
		if err != nil {
			return
		}
		a.Spans()
		a.Places()
		once := a.Encode()
		c, err := Decode(once)
		if err != nil {
			t.Fatalf("encoded again it does not decode: %v", err)
		}
		if !bytes.Equal(c.Encode(), once) {
			t.Fatal("encoded twice it differs")
		}
	})
}

// TestForeign: what this program does not declare is refused by its name.
func TestForeign(t *testing.T) {
	for _, f := range []struct {
		change func(*Artifact)
		says   string
	}{
		{func(a *Artifact) { a.Events[0].Kind = "quantum_fault" }, `kind "quantum_fault"`},
		{func(a *Artifact) { a.Events[0].Attrs["flavour"] = evidence.IntOf(1) }, `attribute "flavour"`},
		{func(a *Artifact) { a.Events[0].Attrs["gpu"] = evidence.TextOf("1") }, `"gpu" of the kind "gpu_usage" as text`},
		{func(a *Artifact) { a.Facts[0].Name = "run.flavour" }, `fact named "run.flavour"`},
		{func(a *Artifact) { a.Facts[0].Value = evidence.TextOf("8") }, `"run.world" as text`},
		{func(a *Artifact) { a.Facts[0].Value = evidence.Value{} }, `"run.world" as invalid`},
		{func(a *Artifact) { a.Events[0].Who.Host = "$(id)" }, `host named "$(id)"`},
		{func(a *Artifact) { a.Events[0].Stamp.Host = "a b" }, `host named "a b"`},
		{func(a *Artifact) { a.Facts[0].Who.Host = "-x" }, `host named "-x"`},
		{func(a *Artifact) { a.Owners[0].Host = "a;b" }, `host named "a;b"`},
		{func(a *Artifact) { a.Host = "`id`" }, "host named \"`id`\""},
	} {
		a := sample("a", 5)
		f.change(a)
		if _, err := Decode(a.Encode()); err == nil || !strings.Contains(err.Error(), f.says) {
			t.Errorf("want %s, got %v", f.says, err)
		}
	}
}
