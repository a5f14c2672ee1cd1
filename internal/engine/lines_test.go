package engine_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/incident"
)

// shownLines asks for a window of a file and must not fail.
func shownLines(t testing.TB, name string, p engine.Place) *incident.Lines {
	t.Helper()
	if p.Artifact == "" {
		p.Artifact = filepath.ToSlash(name)
	}
	l, err := engine.Lines(context.Background(), options(t, name), p)
	if err != nil {
		t.Fatal(err)
	}
	checkLines(t, l, p)
	return l
}

// checkLines holds what is true of every window.
func checkLines(t testing.TB, l *incident.Lines, p engine.Place) {
	t.Helper()
	total, marked := 0, 0
	for i, x := range l.Lines {
		total += len(x.Text)
		if len(x.Text) > 4<<10+8 || !utf8.ValidString(x.Text) {
			t.Errorf("line %d has %d bytes", x.N, len(x.Text))
		}
		for _, r := range x.Text {
			if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
				t.Errorf("line %d holds %U", x.N, r)
				break
			}
		}
		if x.Marked {
			marked++
		}
		if i > 0 && (x.N != l.Lines[i-1].N+1 || x.Offset <= l.Lines[i-1].Offset) {
			t.Errorf("line %d at %d stands behind line %d at %d", x.N, x.Offset, l.Lines[i-1].N, l.Lines[i-1].Offset)
		}
		if x.Cut < 0 {
			t.Errorf("%d bytes of line %d are cut", x.Cut, x.N)
		}
	}
	if total > 256<<10+4<<10 || len(l.Lines) > 1000 {
		t.Errorf("%d lines of %d bytes", len(l.Lines), total)
	}
	if len(l.Lines) > 0 && (marked != 1 || l.First != l.Lines[0].N || l.Before != (l.First > 1)) {
		t.Errorf("%d lines are marked, the first is %d, before is %v", marked, l.First, l.Before)
	}
	if len(l.Lines) == 0 && len(l.Limits) == 0 {
		t.Error("an empty window without a reason")
	}
}

func writeTemp(t testing.TB, name string, data []byte) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// trainingLog has n lines of training.
func trainingLog(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "step %d loss 2.5\n", i+1)
	}
	return b.Bytes()
}

func TestLines(t *testing.T) {
	name := writeTemp(t, "rank_0.log", trainingLog(5000))
	at := int64(bytes.Index(trainingLog(5000), []byte("step 2500 ")))
	for _, c := range []struct {
		p             engine.Place
		first, last   int64
		before, after bool
	}{
		{engine.Place{Line: 2500, Offset: -1, Before: 2, After: 3}, 2498, 2503, true, true},
		{engine.Place{Line: 2500, Offset: at, Before: 2, After: 3}, 2498, 2503, true, true},
		{engine.Place{Line: 2500, Offset: at + 7, Before: 2, After: 3}, 2498, 2503, true, true}, // within the line
		{engine.Place{Line: 0, Offset: at, Before: 1, After: 1}, 2499, 2501, true, true},
		{engine.Place{Line: 3, Offset: at, Before: 1, After: 1}, 2, 4, true, true}, // the offset is of another line
		{engine.Place{Line: 1, Offset: 0, Before: 5, After: 0}, 1, 1, false, true},
		{engine.Place{Line: 1, Offset: -1, Before: 9, After: 1}, 1, 2, false, true},
		{engine.Place{Line: 5000, Offset: -1, Before: 1, After: 9}, 4999, 5000, true, false},
		{engine.Place{Line: 2500, Offset: -1, Before: 1 << 30, After: 1 << 30}, 1501, 2500, true, true},
		{engine.Place{Line: 2500, Offset: at, Before: -4, After: 1 << 30}, 2500, 3499, true, true},
		{engine.Place{}, 1, 1, false, true},
	} {
		l := shownLines(t, name, c.p)
		if len(l.Lines) == 0 {
			t.Errorf("%+v: nothing, %q", c.p, l.Limits)
			continue
		}
		last := l.Lines[len(l.Lines)-1]
		if l.First != c.first || last.N != c.last || l.Before != c.before || l.After != c.after {
			t.Errorf("%+v: %d to %d, before %v, after %v", c.p, l.First, last.N, l.Before, l.After)
		}
		for _, x := range l.Lines {
			if want := fmt.Sprintf("step %d loss 2.5", x.N); x.Text != want || x.Cut != 0 {
				t.Errorf("%+v: line %d is %q", c.p, x.N, x.Text)
			}
		}
	}
	for _, p := range []engine.Place{{Line: 5001, Offset: -1}, {Line: 1 << 62, Offset: -1}, {Line: 0, Offset: 1 << 40}, {Line: 1<<63 - 1, Offset: 1<<63 - 1, After: 999}} {
		if l := shownLines(t, name, p); len(l.Lines) != 0 || len(l.Limits) != 1 {
			t.Errorf("%+v: %d lines, %q", p, len(l.Lines), l.Limits)
		}
	}
}

func TestLinesOfEveryForm(t *testing.T) {
	text := string(trainingLog(40))
	zipped := func(b []byte) []byte {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		w.Write(b)
		w.Close()
		return out.Bytes()
	}
	tarred := func(name string, b []byte) []byte {
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(b))})
		w.Write(b)
		w.Close()
		return out.Bytes()
	}
	wide := []byte{0xff, 0xfe}
	for i := range len(text) {
		wide = append(wide, text[i], 0)
	}
	for _, c := range []struct {
		name, member string
		data         []byte
	}{
		{"plain.log", "", []byte(text)},
		{"crlf.log", "", []byte(strings.ReplaceAll(text, "\n", "\r\n"))},
		{"wide.log", "", wide},
		{"rank.log.gz", "", zipped([]byte(text))},
		{"job.tar", "!in/rank_0.log", tarred("in/rank_0.log", []byte(text))},
		{"job.tar.gz", "!in/rank_0.log", zipped(tarred("in/rank_0.log", []byte(text)))},
		{"nest.tar", "!a.tar.gz!rank_0.log", tarred("a.tar.gz", zipped(tarred("rank_0.log", []byte(text))))},
	} {
		name := writeTemp(t, c.name, c.data)
		for _, off := range []int64{-1, int64(strings.Index(text, "step 20 "))} {
			if c.name == "crlf.log" && off >= 0 {
				off += 19
			}
			l := shownLines(t, name, engine.Place{Artifact: filepath.ToSlash(name) + c.member, Line: 20, Offset: off, Before: 1, After: 1})
			if len(l.Lines) != 3 || l.Lines[1].Text != "step 20 loss 2.5" || !l.Lines[1].Marked || l.Kind != "ranklog" || !l.After {
				t.Errorf("%s at %d: %+v", c.name, off, l)
			}
		}
	}
}

func TestLinesThatAreNone(t *testing.T) {
	for name, data := range map[string]string{
		"x.db":      "SQLite format 3\x00" + strings.Repeat("\x00\x01", 2000),
		"ckpt.bin":  strings.Repeat("\x80\x02\x8a\nl\xfc\x9c\x00", 900),
		"empty.log": "",
	} {
		l := shownLines(t, writeTemp(t, name, []byte(data)), engine.Place{Line: 1, Offset: -1, After: 5})
		if len(l.Lines) != 0 {
			t.Errorf("%s: %+v", name, l)
		}
	}
	l := shownLines(t, "-", engine.Place{Artifact: "-", Line: 1})
	if !strings.Contains(l.Limits[0], "standard input") {
		t.Errorf("standard input: %q", l.Limits)
	}
	name := writeTemp(t, "rank_0.log", trainingLog(3))
	for _, artifact := range []string{"gone.log", "../rank_0.log", filepath.ToSlash(name) + "!x", ""} {
		if _, err := engine.Lines(t.Context(), options(t, name), engine.Place{Artifact: artifact, Line: 1}); !errors.Is(err, engine.ErrNoLines) {
			t.Errorf("%q: %v", artifact, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := engine.Lines(ctx, options(t, name), engine.Place{Artifact: filepath.ToSlash(name), Line: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A log in which a zero stands here and there is diagnosed, and its lines are shown.
func TestLinesWithStrayZeros(t *testing.T) {
	name := writeTemp(t, "rank_0.log", []byte("2026-01-01 00:00:00 step 1 loss 2.5\nstep 2 \x00loss 2.4\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"))
	l := shownLines(t, name, engine.Place{Line: 2, Offset: -1, Before: 1, After: 1})
	if len(l.Lines) != 3 || l.Lines[1].Text != "step 2 loss 2.4" {
		t.Errorf("%+v, %q", l.Lines, l.Limits)
	}
}

// TestLongLines shows lines that nobody can read whole, within bounded memory.
func TestLongLines(t *testing.T) {
	size := 100 << 20
	if testing.Short() {
		size = 5 << 20
	}
	long := make([]byte, 0, size+100)
	long = append(long, "step 1 loss 2.5\n"...)
	mid := len(long) + size/2
	for len(long) < size {
		long = append(long, "words of a line without an end "...)
	}
	copy(long[mid:], " THE PLACE ")
	end := len(long)
	long = append(long, "\nstep 2 loss 2.4\n"...)
	name := writeTemp(t, "rank_0.log", long)
	var m0, m1 runtime.MemStats
	runtime.ReadMemStats(&m0)
	for _, p := range []engine.Place{{Line: 2, Offset: -1, Before: 1, After: 1}, {Line: 2, Offset: 16, Before: 1, After: 1}} {
		l := shownLines(t, name, p)
		if len(l.Lines) != 3 || l.Lines[1].Cut < int64(end-16-4100) || l.Lines[2].Text != "step 2 loss 2.4" || len(l.Limits) == 0 || !strings.HasPrefix(l.Lines[1].Text, "words of a line") {
			t.Errorf("%+v: %d lines, %q", p, len(l.Lines), l.Limits)
		}
	}
	l := shownLines(t, name, engine.Place{Line: 2, Offset: int64(mid), Before: 1, After: 1})
	if len(l.Lines) != 3 || !strings.Contains(l.Lines[1].Text, "THE PLACE") || !strings.HasPrefix(l.Lines[1].Text, "…") || !strings.HasSuffix(l.Lines[1].Text, "…") {
		t.Errorf("in the middle: %d lines, %q", len(l.Lines), l.Limits)
	}
	l = shownLines(t, name, engine.Place{Line: 3, Offset: int64(end + 1), Before: 2})
	if len(l.Lines) != 3 || l.Lines[0].Text != "step 1 loss 2.5" {
		t.Errorf("behind it: %+v", l.Limits)
	}
	runtime.ReadMemStats(&m1)
	if grown := m1.TotalAlloc - m0.TotalAlloc; grown > 128<<20 {
		t.Errorf("%d MiB were allocated", grown>>20)
	}
}

func TestLinesAreBounded(t *testing.T) {
	name := writeTemp(t, "rank_0.log", append(trainingLog(2), []byte(strings.Repeat(strings.Repeat("w ", 3000)+"\n", 1000))...))
	l := shownLines(t, name, engine.Place{Line: 500, Offset: -1, Before: 400, After: 400})
	if n := len(l.Lines); n < 50 || n > 90 || l.Lines[n/2].N < 490 || l.Lines[n/2].N > 510 {
		t.Errorf("%d lines from %d", n, l.First)
	}
	if len(l.Limits) != 2 {
		t.Errorf("%q", l.Limits)
	}
}

// TestProgressBars shows of a line that was written over what was last to be seen.
func TestProgressBars(t *testing.T) {
	frames := strings.Repeat(" 10%|#  | 1/10 [00:01<00:09]\r", 4000) + "100%|###| 10/10 [00:10<00:00]\r"
	name := writeTemp(t, "rank_0.log", []byte("step 1 loss 2.5\n"+frames+"\nshort 1\rshort 2\r\n"))
	l := shownLines(t, name, engine.Place{Line: 2, Offset: -1, Before: 1, After: 1})
	if got := l.Lines[1]; got.Text != "100%|###| 10/10 [00:10<00:00]" || got.Cut < 100_000 {
		t.Errorf("%+v", got)
	}
	if got := l.Lines[2].Text; got != "short 2" {
		t.Errorf("%q", got)
	}
	if len(l.Limits) != 1 {
		t.Errorf("%q", l.Limits)
	}
}

// TestLinesHoldNoSecret looks for secrets at the edges of windows and of cut lines.
func TestLinesHoldNoSecret(t *testing.T) {
	token := "hf_" + strings.Repeat("aBcD3fGh", 5)
	jwt := "eyJhbGciOiJIUzI1NiJ9." + strings.Repeat("eyJzdWIiOiIx", 200) + "." + strings.Repeat("SflKxwRJ", 5)
	key := "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat("MIIEpAIBAAKCAQEA75hV1nq0bWZ8\n", 40) + "-----END RSA PRIVATE KEY-----\n"
	for pad := 3800; pad < 6200; pad += 37 {
		filler := strings.Repeat("wo ", pad/3)
		text := "step 1 loss 2.5\n" + filler + token + strings.Repeat(" x", 4000) + token + strings.Repeat(" y", 1000) + "\n" + filler + jwt + strings.Repeat(" z", 4000) + "\nstep 2 loss 2.4\n"
		name := writeTemp(t, "rank_0.log", []byte(text))
		for _, off := range []int64{-1, 16 + int64(len(filler)) + 5000} {
			l := shownLines(t, name, engine.Place{Line: 2, Offset: off, Before: 1, After: 2})
			for _, x := range l.Lines {
				for _, bad := range []string{"aBcD3f", "eyJzdWIiOiIxeyJz", "SflKx"} {
					if strings.Contains(x.Text, bad) {
						t.Fatalf("%s in line %d, %d bytes before it", bad, x.N, pad)
					}
				}
			}
		}
	}
	name := writeTemp(t, "rank_0.log", []byte("step 1 loss 2.5\n"+key+"step 2 loss 2.4\n"))
	for line := int64(1); line <= 44; line++ {
		for _, off := range []int64{-1, 16} {
			if off >= 0 && line != 2 {
				continue
			}
			l := shownLines(t, name, engine.Place{Line: line, Offset: off, Before: 2, After: 2})
			for _, x := range l.Lines {
				if strings.Contains(x.Text, "MIIEp") {
					t.Fatalf("a line of a key is shown: %+v", x)
				}
			}
		}
	}
	if l := shownLines(t, name, engine.Place{Line: 44, Offset: -1}); l.Lines[0].Text != "step 2 loss 2.4" {
		t.Errorf("behind the key: %+v", l.Lines)
	}
}

// FuzzLines holds windows against a plain splitting of the text.
func FuzzLines(f *testing.F) {
	f.Add([]byte("step 1 loss 2.5\nstep 2 loss 2.4\n\nx\r\ny"), int64(2), int64(-1), 1, 2)
	f.Add([]byte("step 1 loss 2.5\n\x1b[31mred\x1b[0m \xff\xfe\u202e\n\n\n\n"), int64(3), int64(20), 4, 0)
	f.Add(bytes.Repeat([]byte("step 1 loss 2.5 "), 3000), int64(1), int64(40000), 0, 0)
	f.Add([]byte("step 1 loss 2.5\r\rstep 2\r\n-----BEGIN PRIVATE KEY-----\nabc\n"), int64(9), int64(3), 9, 9)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte, line, off int64, before, after int) {
		name := filepath.Join(dir, "rank_0.log")
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		o := engine.Options{Paths: []string{name}}
		p := engine.Place{Artifact: filepath.ToSlash(name), Line: line, Offset: off, Before: before % 64, After: after % 64}
		l, err := engine.Lines(t.Context(), o, p)
		if err != nil {
			t.Fatal(err)
		}
		checkLines(t, l, p)
		if len(l.Lines) == 0 || bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) || bytes.IndexByte(data, 0) >= 0 {
			return
		}
		for _, x := range l.Lines {
			if x.Offset > int64(len(data)) || x.Offset > 0 && data[x.Offset-1] != '\n' {
				t.Fatalf("line %d does not begin at %d", x.N, x.Offset)
			}
			if off < 0 || line == 0 {
				if n := int64(bytes.Count(data[:x.Offset], []byte("\n"))) + 1; n != x.N {
					t.Fatalf("line %d is line %d", x.N, n)
				}
			}
		}
	})
}

// BenchmarkLines is how fast a line is found by its number alone, and by its offset.
func BenchmarkLines(b *testing.B) {
	data := trainingLog(8 << 20)
	name := filepath.Join(b.TempDir(), "rank_0.log")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		b.Fatal(err)
	}
	for way, off := range map[string]int64{"number": -1, "offset": int64(bytes.LastIndex(data, []byte("step 8388000 ")))} {
		b.Run(way, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				shownLines(b, name, engine.Place{Line: 8388000, Offset: off, Before: 50, After: 50})
			}
		})
	}
}

// TestLinesOfEvidence shows what a scan kept of a log that is not at hand.
func TestLinesOfEvidence(t *testing.T) {
	dir := t.TempDir()
	log := string(trainingLog(200)) + "ValueError: hf_" + strings.Repeat("aBcD3fGh", 5) + "\n" + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB.\n"
	name := filepath.Join(dir, "rank_0.log")
	if err := os.WriteFile(name, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	kept := scan(t, dir, name)
	inc := diagnose(t, kept)
	if inc.FirstFault == nil {
		t.Fatal("no first fault")
	}
	sp := inc.FirstFault.Span
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	l, err := engine.Lines(t.Context(), options(t, kept), engine.Place{Artifact: sp.Artifact, Line: sp.Line, Offset: sp.Offset, Before: 2, After: 1})
	if err != nil {
		t.Fatal(err)
	}
	at := -1
	for i, x := range l.Lines {
		if x.Marked {
			at = i
		}
		if strings.Contains(x.Text, "aBcD3f") {
			t.Errorf("%+v", x)
		}
	}
	if at < 0 || l.Lines[at].N != 202 || l.Lines[at].Offset != sp.Offset || !strings.Contains(l.Lines[at].Text, "out of memory") || len(l.Lines) != 3 || len(l.Limits) != 1 {
		t.Errorf("%+v", l)
	}
	if l, err := engine.Lines(t.Context(), options(t, kept), engine.Place{Artifact: sp.Artifact, Line: 300, Offset: -1}); err != nil || len(l.Lines) != 0 || len(l.Limits) == 0 {
		t.Errorf("a line that was not kept: %+v, %v", l, err)
	}
	if _, err := engine.Lines(t.Context(), options(t, kept), engine.Place{Artifact: "another.log", Line: 1}); !errors.Is(err, engine.ErrNoLines) {
		t.Errorf("%v", err)
	}
}
