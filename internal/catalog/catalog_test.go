package catalog

import (
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/inquest-dev/inquest/encyclopedia"
	"github.com/inquest-dev/inquest/internal/evidence"
)

// goodFiles returns the files of testdata/good.
func goodFiles(t testing.TB) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	dir := os.DirFS("testdata/good")
	err := fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(dir, name)
		out[name] = &fstest.MapFile{Data: data}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// compiledGood is testdata/good in the compiled form alone.
func compiledGood(t testing.TB) fstest.MapFS {
	t.Helper()
	files, err := Compile(goodFiles(t))
	if err != nil {
		t.Fatal(err)
	}
	out := fstest.MapFS{}
	for name, data := range files {
		out[name] = &fstest.MapFile{Data: data}
	}
	return out
}

// TestLoad checks that YAML and its compiled form make the same catalogue.
func TestLoad(t *testing.T) {
	for _, form := range []struct {
		name string
		fsys fs.FS
	}{{"yaml", goodFiles(t)}, {"compiled", compiledGood(t)}} {
		t.Run(form.name, func(t *testing.T) {
			c, err := Load(form.fsys)
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, h := range c.Entries() {
				ids = append(ids, h.ID)
			}
			if got := strings.Join(ids, " "); got != "pool-held stopped-by-hand" {
				t.Errorf("entries %s", got)
			}
			e, err := c.Entry("pool-held")
			if err != nil || e.Remedy.Compute != "alloc_conf" || e.Examples.Match[0].Standing != "supported" {
				t.Errorf("entry %+v, %v", e, err)
			}
			if _, err := c.Entry("nothing"); err == nil {
				t.Error("no error for an entry that does not exist")
			}
			if got := c.Candidates("interrupted", "xid"); len(got) != 1 || got[0].ID != "stopped-by-hand" {
				t.Errorf("candidates %v", got)
			}
			p := c.Plan()
			if len(p.Wordings) != 3 {
				t.Fatalf("%d wordings", len(p.Wordings))
			}
			w := p.Wordings[0]
			if w.Kind != evidence.DeviceOOM || w.Attrs.Str("backend") != "cuda" || w.ID != "demo/refused" {
				t.Errorf("wording %+v", w)
			}
			if w := p.Wordings[1]; w.Kind != "" || w.Facts["run.batch"] != "{n}" || !w.Fold {
				t.Errorf("wording %+v", w)
			}
			facts := map[string]evidence.Value{"oom.reserved_unallocated": evidence.SizeOf(9, 9), "oom.requested": evidence.SizeOf(5, 5)}
			if got := c.Eval(e.For[0].When, facts); got.Verdict != Unknown || strings.Join(got.Unknown, " ") != "oom.free" {
				t.Errorf("outcome %+v", got)
			}
		})
	}
}

func TestLoadExtra(t *testing.T) {
	extra := fstest.MapFS{
		"lines/house.yaml": {Data: []byte(`
source: house
doc: Words of our own launcher.
lines:
  - id: house/bell
    event: signal_received
    literal: the bell rang
    samples: [{text: "worker 3: the bell rang"}]
`)},
		"entries/outside/bell.yaml": {Data: []byte(strings.NewReplacer("id: stopped-by-hand", "id: bell", "A person stopped the run", "The bell rang",
			"[interrupted, signal_received]", "[signal_received]").Replace(string(goodFiles(t)["entries/outside/stopped-by-hand.yaml"].Data)))},
		"entries/device-memory/pool-held.yaml": {Data: []byte(strings.Replace(string(goodFiles(t)["entries/device-memory/pool-held.yaml"].Data), "prior: 4", "prior: 8", 1))},
	}
	c, err := Load(compiledGood(t), extra)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(c.Entries()); got != 3 {
		t.Errorf("%d entries", got)
	}
	if e, _ := c.Entry("pool-held"); e.Prior != 8 {
		t.Errorf("pool-held was not replaced: prior %d", e.Prior)
	}
	if got := c.Candidates("signal_received"); len(got) != 2 || got[0].ID != "bell" {
		t.Errorf("candidates %v", got)
	}
	if got := len(c.Plan().Wordings); got != 4 {
		t.Errorf("%d wordings", got)
	}

	bad := []struct {
		name, file, text, want string
	}{
		{"empty", "readme.txt", "nothing", "no lines/*.yaml"},
		{"unknown field", "entries/outside/x.yaml", "id: x\ncolour: red\n", `entries/outside/x.yaml:2: unknown field "colour"`},
		{"not YAML", "entries/outside/x.yaml", "id: [x\n", "entries/outside/x.yaml:1: "},
		{"takes an embedded wording's line", "lines/house.yaml", "source: house\ndoc: d\nlines:\n  - id: house/card\n    event: device_oom\n    literal: pool refused\n    samples:\n      - text: pool refused 2.00 GiB on card 3\n",
			"lines/house.yaml:8: house/card: sample \"pool refused 2.00 GiB on card 3\" is also taken by demo/refused"},
	}
	for _, f := range bad {
		_, err := Load(compiledGood(t), fstest.MapFS{f.file: {Data: []byte(f.text)}})
		if err == nil || !strings.Contains(err.Error(), f.want) {
			t.Errorf("%s: error %v, want %s", f.name, err, f.want)
		}
	}
}

func TestRecognise(t *testing.T) {
	c, err := Load(compiledGood(t))
	if err != nil {
		t.Fatal(err)
	}
	got := c.Recognise("what is this?\n[3]: 2031-05-06 10:11:12,345 pool refused 4.00 GiB on card 7\r\n")
	if len(got) != 1 || got[0].Wording != "demo/refused" || got[0].Kind != evidence.DeviceOOM {
		t.Errorf("recognised %v", got)
	}
	if got := c.Recognise("pool party"); len(got) != 0 {
		t.Errorf("recognised %v", got)
	}
}

func TestConvert(t *testing.T) {
	for _, f := range []struct {
		t        evidence.Type
		in, want string
	}{
		{evidence.Int, "1,024", "1024"}, {evidence.Int, "007", "7"}, {evidence.Int, "0x10", "16"}, {evidence.Int, "-3", "-3"}, {evidence.Int, "x", ""},
		{evidence.Float, "1e-4", "0.0001"}, {evidence.Float, "nan", "NaN"}, {evidence.Bool, "True", "true"}, {evidence.Bool, "maybe", ""},
		{evidence.Size, "2.50 GiB", "2.50 GiB"}, {evidence.Size, "1,024 kB", "1.00 MiB"}, {evidence.Size, "512 bytes", "512 bytes"}, {evidence.Size, "3 lumps", ""},
		{evidence.Size, "99999999 PiB", ""}, {evidence.Ints, "[3, 1]", "1, 3"}, {evidence.Ints, "3-5", ""}, {evidence.Text, " a ", "a"},
	} {
		v, err := Convert(f.t, f.in)
		if got := v.String(); got != f.want || (err != nil) != (f.want == "") {
			t.Errorf("Convert(%s, %q) = %q, %v; want %q", f.t, f.in, got, err, f.want)
		}
	}
	if v, _ := Convert(evidence.Size, "1.5 GiB"); v.Lo != 1556925645 || v.Hi != 1664299827 {
		t.Errorf("1.5 GiB is %d..%d", v.Lo, v.Hi)
	}
}

func BenchmarkLoad(b *testing.B) {
	fsys := encyclopedia.FS
	for b.Loop() {
		if _, err := Load(fsys); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkColdDeviceOOM is what a diagnosis of an out-of-memory asks of the
// catalogue: load, candidates and each of their conditions once.
func BenchmarkColdDeviceOOM(b *testing.B) {
	fsys := encyclopedia.FS
	environment()
	n := 0
	for b.Loop() {
		c, err := Load(fsys)
		if err != nil {
			b.Fatal(err)
		}
		n = 0
		for _, e := range c.Candidates("device_oom") {
			for _, expr := range e.conditions() {
				c.Eval(expr, nil)
				n++
			}
		}
	}
	b.ReportMetric(float64(n), "conditions")
}

// TestUnpackDamaged reads cut and changed compiled files: never a panic, and a
// cut one never passes.
func TestUnpackDamaged(t *testing.T) {
	files := compiledGood(t)
	data := string(files[entryFile("pool-held")].Data)
	for n := range len(data) {
		var ce compiledEntry
		if err := unpack(data[:n], &ce); err == nil {
			t.Fatalf("no error for the first %d of %d bytes", n, len(data))
		}
	}
	var ce compiledEntry
	if err := unpack(strings.Replace(data, "\n1\n", "\n999999\n", 1), &ce); err == nil {
		t.Error("no error for a length past the end")
	}
	if err := unpack(data, &ce); err != nil {
		t.Error(err)
	}
	if again, err := pack(ce); err != nil || string(again) != data {
		t.Errorf("does not round-trip: %v", err)
	}
	if _, err := pack("a␊"); err == nil {
		t.Error("no error for the newline mark in a text")
	}
}

// TestConcurrentUse shares one catalogue among goroutines, as a server does.
func TestConcurrentUse(t *testing.T) {
	c, err := Load(compiledGood(t))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, e := range c.Candidates("device_oom", "interrupted") {
				for _, expr := range e.conditions() {
					if o := c.Eval(expr, nil); o.Err != nil {
						t.Error(o.Err)
					}
				}
			}
			c.Recognise("pool refused 1.00 GiB on card 2")
		})
	}
	wg.Wait()
}
