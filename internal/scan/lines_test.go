package scan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// visited is a Line copied, with the hits as text.
type visited struct {
	number, offset, length, windowAt int64
	text                             string
	hits                             []Hit
	last                             bool
}

func (v visited) String() string {
	return fmt.Sprintf("{line %d at %d, %d bytes, window %d, %.60q, hits %v, last %v}", v.number, v.offset, v.length, v.windowAt, v.text, v.hits, v.last)
}

// wantsMore is what the visits of these tests return: it depends on the line only.
func wantsMore(number int64) bool { return number%3 == 1 }

func collect(t *testing.T, m *Matcher, r io.Reader) ([]visited, Stats) {
	t.Helper()
	var out []visited
	stats, err := m.Lines(context.Background(), r, func(l *Line) bool {
		out = append(out, visited{l.Number, l.Offset, l.Length, l.WindowAt, string(l.Text), append([]Hit(nil), l.Hits...), l.Last})
		return wantsMore(l.Number)
	})
	if err != nil {
		t.Fatal(err)
	}
	return out, stats
}

// naiveLines is Lines by splitting, for lines of at most MaxLine bytes.
func naiveLines(atoms []Atom, text []byte) (out []visited, stats Stats) {
	offset, want := 0, false
	for number := int64(1); offset < len(text); number++ {
		line, _, ended := bytes.Cut(text[offset:], newline)
		shown := bytes.TrimSuffix(line, []byte("\r"))
		hits := naive(atoms, shown)
		stats.Lines++
		if len(hits) > 0 || want {
			out = append(out, visited{number, int64(offset), int64(len(line)), 0, string(shown), hits, !ended})
			want = wantsMore(number)
		}
		offset += len(line) + 1
	}
	stats.Bytes, stats.Visited = int64(len(text)), int64(len(out))
	stats.EndsInNewline = bytes.HasSuffix(text, newline)
	return out, stats
}

// choppy reads r in pieces of random sizes, now and then of none.
type choppy struct {
	r    io.Reader
	rand *rand.Rand
	most int
}

func (c choppy) Read(p []byte) (int, error) {
	return c.r.Read(p[:min(len(p), c.rand.IntN(c.most+1))])
}

func checkLines(t *testing.T, atoms []Atom, text []byte, seed uint64) {
	t.Helper()
	want, wantStats := naiveLines(atoms, text)
	for use, m := range matchers(atoms) {
		readers := map[string]io.Reader{
			"whole":           bytes.NewReader(text),
			"with the error":  iotest.DataErrReader(bytes.NewReader(text)),
			"random pieces":   choppy{bytes.NewReader(text), rand.New(rand.NewPCG(seed, 1)), 1 + int(seed%100)},
			"bytes one a one": iotest.OneByteReader(bytes.NewReader(text)),
		}
		for name, r := range readers {
			got, stats := collect(t, m, r)
			if stats != wantStats {
				t.Fatalf("%s, matcher %d: %.200q:\n got %+v\nwant %+v", name, use, text, stats, wantStats)
			}
			if fmt.Sprint(got) != fmt.Sprint(want) || !slices.EqualFunc(got, want, func(a, b visited) bool { return a.text == b.text }) {
				t.Fatalf("%s, matcher %d: atoms %+v in %.200q:\n got %v\nwant %v", name, use, atoms, text, got, want)
			}
		}
	}
}

func TestLines(t *testing.T) {
	atoms := literals("loss", "NCCL WARN", "end\r", "two\nlines", "\x00")
	tests := []struct{ name, text string }{
		{"empty", ""},
		{"no hit", "one\ntwo\n"},
		{"first and last", "loss 1\nother\nloss 2\n"},
		{"no final newline", "a\nloss 1"},
		{"only newlines", "\n\n\n"},
		{"asked for, then the end", "loss\n"},
		{"asked for, empty line", "loss\n\nx\n"},
		{"asked for, unfinished line", "loss\nthe rest"},
		{"carriage returns", "loss\r\n10%\r20% loss\r\nthe end\r\nthe end\r"},
		{"literal over a line's end", "two\nlines\n"},
		{"NUL bytes", "a\x00b\n\x00\x00\n\n"},
		{"two on a line", "x loss NCCL WARN loss\n\n\nloss"},
		{"far apart", "loss\n" + strings.Repeat("nothing here\n", 300) + "loss\n" + strings.Repeat("\n", 2000) + "loss"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { checkLines(t, atoms, []byte(tt.text), 3) })
	}
}

func TestLinesRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for i := range 150 {
		atoms := randomAtoms(r, "abcA\r\n", 1+r.IntN(6), 10)
		checkLines(t, atoms, randomText(r, "abcABC\r\n\n", r.IntN(300)), uint64(i))
	}
}

// TestLinesOverReads has lines and hits over the borders of the reads.
func TestLinesOverReads(t *testing.T) {
	var text []byte
	for i := 0; len(text) < 3*readSize; i++ {
		text = fmt.Appendf(text, "line %d %s{'loss': %d}%s\n", i, strings.Repeat("-", i%701), i, strings.Repeat("=", i%97))
	}
	atoms := literals("'loss': ", "line 1", "=}", "{'l")
	want, wantStats := naiveLines(atoms, text)
	for _, skip := range []int{0, 1, 2, 3, 5, 8, 13, 100} {
		for use, m := range matchers(atoms) {
			got, stats := collect(t, m, io.MultiReader(bytes.NewReader(text[:skip]), bytes.NewReader(text[skip:])))
			if stats != wantStats || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("cut at %d, matcher %d: other lines than by splitting, %+v, want %+v", skip, use, stats, wantStats)
			}
		}
	}
}

// TestLongLines puts hits on one long line and checks what the windows promise.
func TestLongLines(t *testing.T) {
	const mark = "<<marked here>>"
	atoms := literals(mark, "tail")
	for _, length := range []int{MaxLine, MaxLine + 1, MaxLine + 20, 3 * MaxLine, keepLine - 1, keepLine, keepLine + readSize + 3, 3*keepLine + 77} {
		for _, asked := range []bool{false, true} {
			for _, ended := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d,asked=%v,ended=%v", length, asked, ended), func(t *testing.T) {
					long := bytes.Repeat([]byte("0123456789."), length/11+1)[:length]
					places := map[int64]bool{}
					for _, at := range []int{0, 9, 20000, 70000, 70030, MaxLine - 7, length / 2, keepLine - MaxLine - 3, keepLine - MaxLine + 20, keepLine - 8, 2*keepLine - 5, length - len(mark)} {
						if at >= 0 && at+len(mark) <= length && !bytes.ContainsAny(long[at:at+len(mark)], "<>") {
							copy(long[at:], mark)
							places[int64(at)] = true
						}
					}
					before := "short\n"
					if asked {
						before += "tail\n" // visited, and asks for the long line
					}
					text := before + string(long)
					if ended {
						text += "\nand the tail of it\nplain\n"
					}
					number := int64(strings.Count(before, "\n") + 1)
					visits := 0
					stats, err := New(atoms).Lines(context.Background(), strings.NewReader(text), func(l *Line) bool {
						if l.Number != number {
							return true
						}
						visits++
						if len(l.Text) > MaxLine {
							t.Errorf("%d bytes of text", len(l.Text))
						}
						if l.Offset != int64(len(before)) || l.Last != (!ended && l.Ended) {
							t.Errorf("offset %d, last %v", l.Offset, l.Last)
						}
						if l.Ended && l.Length != int64(length) || l.Length > int64(length) || length < keepLine && !l.Ended {
							t.Errorf("length %d, ended %v", l.Length, l.Ended)
						}
						if string(l.Text) != string(long[l.WindowAt:l.WindowAt+int64(len(l.Text))]) {
							t.Errorf("text is not the window at %d", l.WindowAt)
						}
						if visits == 1 && asked && (l.WindowAt != 0 || len(l.Text) != min(length, MaxLine)) {
							t.Errorf("asked for, but given %d bytes at %d", len(l.Text), l.WindowAt)
						}
						for _, h := range l.Hits {
							at := l.WindowAt + int64(h.Off)
							if !places[at] {
								t.Errorf("hit at %d twice or not at all there", at)
							}
							delete(places, at)
							if context := min(int64(leftContext), at); int64(h.Off) < context && visits > 1 && h == l.Hits[0] {
								t.Errorf("hit at %d has %d bytes before it", at, h.Off)
							}
						}
						return false
					})
					if err != nil {
						t.Fatal(err)
					}
					if len(places) > 0 {
						t.Errorf("not reported: %v", places)
					}
					long64 := int64(0)
					if length > MaxLine {
						long64 = 1
					}
					lines := number
					if ended {
						lines += 2
					}
					if stats.Lines != lines || stats.LongLines != long64 || stats.Bytes != int64(len(text)) {
						t.Errorf("%+v, want %d lines, %d long", stats, lines, long64)
					}
				})
			}
		}
	}
}

// TestLineAfterLong asks for the line after one that was too long to keep.
func TestLineAfterLong(t *testing.T) {
	text := strings.Repeat("x", 10) + "NEEDLE IN IT" + strings.Repeat("y", 2*keepLine) + "\nnext\nnot this\n"
	var got []string
	_, err := New(literals("NEEDLE IN IT")).Lines(context.Background(), strings.NewReader(text), func(l *Line) bool {
		got = append(got, fmt.Sprint(l.Number, " ", l.Offset, " ", len(l.Text), " ", len(l.Hits)))
		return l.Number == 1
	})
	want := []string{"1 0 65536 1", fmt.Sprintf("2 %d 4 0", len(text)-14)}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

// endless is n bytes of the same letter.
type endless struct{ n int64 }

func (e *endless) Read(p []byte) (int, error) {
	if e.n == 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), e.n))
	for i := range p[:n] {
		p[i] = 'z'
	}
	e.n -= int64(n)
	return n, nil
}

func TestHugeLineMemory(t *testing.T) {
	const size = 48 << 20
	m := New(literals("never there", "nor"))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	stats, err := m.Lines(context.Background(), &endless{size}, func(*Line) bool { return false })
	runtime.ReadMemStats(&after)
	if err != nil || stats.Lines != 1 || stats.LongLines != 1 || stats.Bytes != size {
		t.Fatalf("%+v, %v", stats, err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > size/8 {
		t.Errorf("%d bytes allocated for one line of %d", got, int64(size))
	}
}

func TestNoAllocationForEachLine(t *testing.T) {
	text := bytes.Repeat([]byte("{'loss': 1.25, 'epoch': 0.5}\n"), 20000)
	m := New(literals("'loss': "))
	r := bytes.NewReader(text)
	allocs := testing.AllocsPerRun(5, func() {
		r.Reset(text)
		if stats, err := m.Lines(context.Background(), r, func(*Line) bool { return false }); err != nil || stats.Visited != 20000 {
			t.Fatal(stats, err)
		}
	})
	if allocs > 20 {
		t.Errorf("%.0f allocations for 20000 lines", allocs)
	}
}

func TestLinesStops(t *testing.T) {
	m := New(literals("needle"))
	t.Run("context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		_, err := m.Lines(ctx, io.MultiReader(strings.NewReader("needle\n"), &endless{1 << 40}), func(*Line) bool {
			cancel()
			return false
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("error", func(t *testing.T) {
		broken := errors.New("broken stream")
		var got []string
		stats, err := m.Lines(context.Background(), io.MultiReader(strings.NewReader("a needle\ncut nee"), strings.NewReader("dle"), iotest.ErrReader(broken)), func(l *Line) bool {
			got = append(got, fmt.Sprintf("%s %v", l.Text, l.Last))
			return false
		})
		if !errors.Is(err, broken) || !strings.Contains(err.Error(), "after byte 19") {
			t.Errorf("error %v", err)
		}
		if want := []string{"a needle false", "cut needle true"}; !slices.Equal(got, want) || stats.Lines != 2 {
			t.Errorf("got %q, %+v, want %q", got, stats, want)
		}
	})
	t.Run("no progress", func(t *testing.T) {
		_, err := m.Lines(context.Background(), choppy{strings.NewReader(""), rand.New(rand.NewPCG(1, 1)), 0}, func(*Line) bool { return false })
		if err != nil {
			t.Errorf("an empty stream: %v", err)
		}
		if _, err = m.Lines(context.Background(), stuck{}, nil); !errors.Is(err, io.ErrNoProgress) {
			t.Errorf("a stuck stream: %v", err)
		}
	})
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

func TestLastNewline(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 2000 {
		b := randomText(r, "\n\n\x0b\x09\x8a\x00aaaaaaaaaaaaaaaaaaaaa", r.IntN(40))
		if got, want := lastNewline(b), bytes.LastIndexByte(b, '\n'); got != want {
			t.Fatalf("lastNewline(%q) = %d, want %d", b, got, want)
		}
	}
}

func FuzzLines(f *testing.F) {
	f.Add("loss\nNCCL WARN", "step 1\nloss 2\r\nNCCL WARN\n\nloss", uint64(5))
	f.Add("a\r\naaaaaaaa", "\naaaaaaaaaa\r\r\na", uint64(1))
	f.Fuzz(func(t *testing.T, words, text string, seed uint64) {
		atoms := literals(strings.Split(words, "\n")...)
		for i := range atoms {
			atoms[i].Fold = seed>>(i%64)&1 == 1
		}
		checkLines(t, atoms, []byte(text[:min(len(text), MaxLine)]), seed)
	})
}
