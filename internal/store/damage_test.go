package store

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/incident"
)

// TestPrefixes reads every prefix of a file of records: no error, and at most the last record
// is lost.
func TestPrefixes(t *testing.T) {
	s := Open(t.TempDir())
	tr, records := failedTrial(1, "f")
	put(t, s, tr, records)
	b, err := os.ReadFile(filepath.Join(s.TrialDir(tr), recordFile))
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(b) + 1 {
		got := 0
		d, err := readRecords(bytes.NewReader(b[:n]), func(r *incident.Record) {
			if r.Seq != got {
				t.Errorf("%d bytes: record %d has number %d", n, got, r.Seq)
			}
			got++
		})
		if want := bytes.Count(b[:n], []byte("\n")); err != nil || got != want || d.broken > 0 {
			t.Fatalf("%d bytes: %d records, want %d; %+v, %v", n, got, want, d, err)
		}
		if tail := n - 1 - bytes.LastIndexByte(b[:n], '\n'); int(d.torn) != tail {
			t.Fatalf("%d bytes: %d torn, want %d", n, d.torn, tail)
		}
		r, err := foldTrial(s.TrialDir(tr), tr.ID, bytes.NewReader(b[:n]), true)
		if err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if n < len(b) && len(r.Trial.Problems) == 0 && b[n-1] != '\n' {
			t.Errorf("%d bytes: nothing is said of the torn record", n)
		}
	}
}

// TestTornWrite fails a write within a line: neither it nor the next record is lost to the other.
func TestTornWrite(t *testing.T) {
	s := Open(t.TempDir())
	tr, records := failedTrial(1, "f")
	w, err := s.Begin(tr)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(w.Dir(), recordFile)
	whole, err := encode(incident.Record{Seq: 1, Kind: incident.RecordVerdict, Verdict: &incident.TrialVerdict{Result: "never"}}, "")
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n < len(whole); n++ { // what a short write leaves, its line's end never among it
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.Write(whole[:n])
		f.Close()
		w.torn = true
		if err := w.Put(incident.Record{Kind: incident.RecordSamples, Samples: []incident.Sample{{Seconds: float64(n)}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Put(records[2]); err != nil {
		t.Fatal(err)
	}
	r, err := s.Trial(tr.ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Trial.Samples) != len(whole)-1 || r.Trial.Exit == nil || r.Trial.Verdict.Result == "never" {
		t.Errorf("%d samples of %d, exit %v, verdict %+v", len(r.Trial.Samples), len(whole)-1, r.Trial.Exit, r.Trial.Verdict)
	}
	if want := fmt.Sprintf("%d lines of its records cannot be read; the first is line 2: its writing failed", len(whole)-1); !strings.Contains(strings.Join(r.Trial.Problems, "\n"), want) {
		t.Errorf("problems %q, want %q", r.Trial.Problems, want)
	}
}

// TestFullDevice puts records where nothing fits any more.
func TestFullDevice(t *testing.T) {
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("there is no /dev/full")
	}
	w := &Writer{file: f, dir: t.TempDir()}
	for range 3 {
		if err := w.Put(incident.Record{Kind: incident.RecordSamples}); err == nil {
			t.Error("a record was put on a full disk")
		}
	}
	if w.seq != 0 {
		t.Errorf("%d records are counted", w.seq)
	}
	w.Close()
	if err := w.Put(incident.Record{}); err == nil {
		t.Error("a record was put into a closed file")
	}
}

// TestLargeRecord puts a record that is too large for a line, and one that is too large.
func TestLargeRecord(t *testing.T) {
	s := Open(t.TempDir())
	tr, _ := failedTrial(1, "f")
	w, err := s.Begin(tr)
	if err != nil {
		t.Fatal(err)
	}
	d := &incident.Incident{Fingerprint: "big", Outcome: strings.Repeat("long ", 2<<20)}
	if err := w.Put(incident.Record{Kind: incident.RecordDiagnosis, Diagnosis: d}); err != nil {
		t.Fatal(err)
	}
	if err := w.Put(incident.Record{Kind: incident.RecordDiagnosis, Diagnosis: &incident.Incident{Outcome: strings.Repeat("x", maxRecord)}}); err == nil {
		t.Error("a record over the bound was put")
	}
	if err := w.Put(incident.Record{Kind: incident.RecordVerdict, Verdict: &incident.TrialVerdict{Result: incident.TrialFailed}}); err != nil {
		t.Fatal(err)
	}
	r, err := s.Trial(tr.ID)
	if err != nil {
		t.Fatal(err)
	}
	if r.Diagnosis == nil || r.Diagnosis.Outcome != d.Outcome || r.Trial.Verdict.Fingerprint != "big" || len(r.Trial.Problems) > 0 {
		t.Errorf("read %d bytes; verdict %+v; problems %q", len(r.Diagnosis.Outcome), r.Trial.Verdict, r.Trial.Problems)
	}
	name := filepath.Join(w.Dir(), "record-1.json.gz")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for what, damage := range map[string]func() error{
		"cut":     func() error { return os.WriteFile(name, b[:len(b)/2], 0o600) },
		"another": func() error { b[len(b)/2] ^= 1; return os.WriteFile(name, b, 0o600) },
		"gone":    func() error { return os.Remove(name) },
		"a link":  func() error { return os.Symlink("/etc/passwd", name) },
	} {
		if what == "a link" {
			os.Remove(name)
		}
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		r, err := s.Trial(tr.ID)
		if err != nil || r.Diagnosis != nil || r.Trial.Verdict == nil || len(r.Trial.Problems) != 1 {
			t.Errorf("%s: %v, %+v", what, err, r)
		}
	}
}

// TestHostile reads a store in which somebody has put what this program does not write.
func TestHostile(t *testing.T) {
	s := Open(t.TempDir())
	tr, records := failedTrial(1, "f")
	put(t, s, tr, records)
	outside := t.TempDir()
	other := Open(outside)
	ot, or := failedTrial(2, "secret")
	put(t, other, ot, or)
	month := filepath.Join(s.Dir(), "trials", "2026-11")
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(os.Symlink(other.TrialDir(ot), filepath.Join(month, ot.ID)))
	do(os.Symlink(filepath.Join(outside, "trials"), filepath.Join(s.Dir(), "trials", "2026-10")))
	do(os.MkdirAll(filepath.Join(month, "t-linked"), 0o700))
	do(os.Symlink(filepath.Join(other.TrialDir(ot), recordFile), filepath.Join(month, "t-linked", recordFile)))
	do(os.MkdirAll(filepath.Join(month, "t-folder", recordFile), 0o700))
	do(os.MkdirAll(filepath.Join(month, "name with\x1b[31m colour"), 0o700))
	line := func(text string) string {
		return text + fmt.Sprintf("\t%08x\n", crc32.Checksum([]byte(text), castagnoli))
	}
	for name, text := range map[string]string{
		"t-empty":   "",
		"t-noise":   strings.Repeat("\x00\xff\n", 1000),
		"t-long":    strings.Repeat("a", 3<<20) + "\n",
		"t-nested":  line(`{"kind":"samples","samples":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`),
		"t-newer":   line(`{"kind":"begun","begun":{"id":"t-newer","begun":"2026-11-30T10:00:00Z"}}`) + line(`{"kind":"oracle","oracle":7}`),
		"t-another": line(`{"kind":"begun","begun":{"id":"../../../etc","begun":"2026-11-30T10:00:00Z"}}`),
		"t-attach":  line(`{"kind":"begun","attached":{"name":"../../x","bytes":7,"digest":""}}`) + line(`{"kind":"begun","attached":{"name":"x.gz","bytes":-7}}`),
		"t-twice":   line(`{"kind":"begun","begun":{"id":"t-twice","scenario":"a"}}`) + line(`{"kind":"begun","begun":{"id":"t-twice","scenario":"b"}}`),
		"t-null":    line(`{"kind":"begun"}`) + line(`null`) + line(`7`) + line(`{"kind":"ended"}`),
	} {
		do(os.MkdirAll(filepath.Join(month, name), 0o700))
		do(os.WriteFile(filepath.Join(month, name, recordFile), []byte(text), 0o600))
	}
	do(os.MkdirAll(filepath.Join(s.Dir(), "acts", "2026-11"), 0o700))
	do(os.WriteFile(filepath.Join(s.Dir(), "acts", "2026-11", "a1.jsonl"), []byte("{}"), 0o600))
	do(os.WriteFile(filepath.Join(s.Dir(), "acts", "2026-11", ".act-half"), []byte("{"), 0o600))
	for range 2 { // from the files, and from the index
		c, err := s.Contents(t.Context())
		do(err)
		for _, x := range c.Trials {
			if x.Verdict != nil && x.Verdict.Fingerprint == "secret" {
				t.Error("a link out of the store was followed")
			}
			if strings.HasPrefix(x.ID, "t-") && len(x.Problems) == 0 {
				t.Errorf("%s: nothing is said of its damage", x.ID)
			}
		}
		if len(c.Trials) != 10 || len(c.Acts) != 0 {
			t.Errorf("%d trials, %d acts", len(c.Trials), len(c.Acts))
		}
		all := strings.Join(c.Problems, "\n")
		for _, want := range []string{"2026-10: a link; it is not followed", ot.ID + ": a link; it is not followed", "t-linked: not a regular file", "t-folder: not a regular file", "its name is no id", "a1.jsonl: it holds no act"} {
			if !strings.Contains(all, want) {
				t.Errorf("problems lack %q:\n%s", want, all)
			}
		}
	}
	if _, err := s.Trial("../" + tr.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("a path for an id: %v", err)
	}
	if _, err := s.Trial(ot.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("a link for a trial: %v", err)
	}
	newer, err := s.Trial("t-newer")
	do(err)
	if want := `1 record of a kind "oracle", which this version does not know; kept as they are`; !reflect.DeepEqual(newer.Trial.Problems, []string{want}) {
		t.Errorf("problems %q", newer.Trial.Problems)
	}
}

// TestDamagedIndex lists with an index that is none, is another's, or is damaged anywhere.
func TestDamagedIndex(t *testing.T) {
	s := Open(t.TempDir())
	for n := range 12 {
		tr, records := failedTrial(n, fmt.Sprint("f", n%4))
		put(t, s, tr, records)
	}
	want, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(s.Dir(), indexFile)
	good, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	try := func(what string, b []byte) {
		t.Helper()
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if l, err := s.List(t.Context()); err != nil || !reflect.DeepEqual(l, want) {
				t.Fatalf("%s: %v\n%+v\nwant\n%+v", what, err, l, want)
			}
			if c, err := s.Contents(t.Context()); err != nil || len(c.Trials) != 12 {
				t.Fatalf("%s: %v", what, err)
			}
		}
	}
	try("empty", nil)
	try("noise", bytes.Repeat([]byte("noise"), 10_000))
	for n := 0; n < len(good); n += len(good) / 23 {
		try(fmt.Sprint("cut at ", n), good[:n])
	}
	for n := 0; n < len(good); n += max(1, len(good)/97) {
		b := bytes.Clone(good)
		for i := n; i < min(n+16, len(b)); i++ {
			b[i] ^= 0x5a
		}
		try(fmt.Sprint("changed at ", n), b)
	}
	os.Remove(name)
	if err := os.Mkdir(name, 0o700); err != nil {
		t.Fatal(err)
	}
	if l, err := s.List(t.Context()); err != nil || !reflect.DeepEqual(l, want) {
		t.Fatalf("a folder in its place: %v", err)
	}
}

// TestReadOnly lists a store that cannot be written.
func TestReadOnly(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("the superuser writes anywhere")
	}
	s := Open(t.TempDir())
	tr, records := failedTrial(1, "f")
	put(t, s, tr, records)
	if err := os.Chmod(s.Dir(), 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(s.Dir(), 0o700)
	if l, err := s.List(t.Context()); err != nil || len(l.Incidents) != 1 {
		t.Errorf("%+v, %v", l, err)
	}
	if s.Writable() {
		t.Error("it is said to be writable")
	}
}

func FuzzRecords(f *testing.F) {
	s := Open(f.TempDir())
	tr, records := failedTrial(1, "f")
	put(f, s, tr, records)
	b, err := os.ReadFile(filepath.Join(s.TrialDir(tr), recordFile))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Add([]byte("!\n"))
	f.Add([]byte(`{"kind":"begun","attached":{"name":"a"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := foldTrial(t.TempDir(), "t1", bytes.NewReader(b), true)
		if err != nil {
			t.Fatal(err)
		}
		if r.Trial.ID != "t1" || r.Trial.Verdict == nil || r.Trial.Command == nil || r.Trial.Problems == nil {
			t.Errorf("read %+v", r.Trial)
		}
		// A record behind whatever stands there is read.
		w, err := encode(incident.Record{Kind: incident.RecordVerdict, Verdict: &incident.TrialVerdict{Result: "last"}}, "")
		if err != nil {
			t.Fatal(err)
		}
		more := append(append(bytes.Clone(b), "!\n"...), w...)
		if r, err = foldTrial(t.TempDir(), "t1", bytes.NewReader(more), true); err != nil || r.Trial.Verdict.Result != "last" {
			t.Errorf("the record behind it is lost: %v", err)
		}
	})
}
