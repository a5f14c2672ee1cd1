package scan

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// lower folds ASCII letters only.
func lower(b []byte) []byte {
	out := bytes.Clone(b)
	for i, c := range out {
		if 'A' <= c && c <= 'Z' {
			out[i] = c + 0x20
		}
	}
	return out
}

// naive is Scan by one bytes.Index after another.
func naive(atoms []Atom, buf []byte) []Hit {
	var hits []Hit
	folded := lower(buf)
	for id, a := range atoms {
		text, in := []byte(a.Text), buf
		if a.Fold {
			text, in = lower(text), folded
		}
		if len(text) == 0 {
			continue
		}
		for at := 0; ; at++ {
			i := bytes.Index(in[at:], text)
			if i < 0 {
				break
			}
			at += i
			if a.Except != nil && (slices.ContainsFunc(a.Except.Behind, func(s string) bool { return strings.HasSuffix(string(buf[:at]), s) }) ||
				slices.ContainsFunc(a.Except.Before, func(s string) bool { return strings.HasPrefix(string(buf[at+len(text):]), s) })) {
				continue
			}
			hits = append(hits, Hit{at, int32(id)})
		}
	}
	slices.SortFunc(hits, func(a, b Hit) int {
		if a.Off != b.Off {
			return a.Off - b.Off
		}
		return int(a.Atom - b.Atom)
	})
	return hits
}

func checkScan(t *testing.T, atoms []Atom, buf []byte) {
	t.Helper()
	want := naive(atoms, buf)
	for _, m := range matchers(atoms) {
		kept := []Hit{{-7, 99}} // Scan appends
		got := m.Scan(buf, slices.Clone(kept))
		if !slices.Equal(got[:1], kept) {
			t.Fatalf("Scan changed the hits it was given to %v", got[:1])
		}
		if !slices.Equal(got[1:], want) {
			t.Fatalf("%T atoms %+v in %.200q (%d bytes):\n got %.20v (%d)\nwant %.20v (%d)", m.filters, atoms, buf, len(buf), got[1:], len(got)-1, want, len(want))
		}
	}
}

// matchers returns matchers of each kind that this processor can run: by no plan,
// and by one without sense, of which a part fits no atom.
func matchers(atoms []Atom) []*Matcher {
	plan := Plan{of: map[planKey]planned{}}
	for i, a := range atoms {
		plan.of[planKey{a.Text, a.Fold}] = planned{place{7 * i % (len(a.Text) + 1), i % 9}, place{5 * i % (len(a.Text) + 1), 3 * i % 17}, 3 * i % (len(a.Text) + 2)}
	}
	var out []*Matcher
	for use := plainGo; use <= best; use++ {
		out = append(out, build(atoms, Plan{}, use), build(atoms, plan, use))
	}
	return out
}

func TestScan(t *testing.T) {
	tests := []struct {
		name  string
		atoms []Atom
		text  string
	}{
		{"nothing to look for", nil, "some text"},
		{"empty text", literals("error", "a long literal"), ""},
		{"empty atom", literals("", "text"), "text text"},
		{"whole text", literals("exactly this"), "exactly this"},
		{"at the end", literals("the very end"), "up to the very end"},
		{"text shorter than the atom", literals("device-side assert"), "device-side asser"},
		{"every length", literals("a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg", "abcdefgh", "abcdefghi"), "xabcdefghi abcdefgh abcdefg abcdef abcde abcd abc ab a"},
		{"same atom twice", literals("NCCL WARN", "NCCL WARN"), "n NCCL WARN x NCCL WARN"},
		{"one inside the other", literals("out of memory", "memory", "CUDA out of memory. Tried"), "torch: CUDA out of memory. Tried to"},
		{"overlapping itself", literals("aaaaaaaaaa", "aaa", "aa"), strings.Repeat("a", 50)},
		{"overlapping each other", literals("abababab", "babababa"), strings.Repeat("ab", 30)},
		{"fold", []Atom{{Text: "Segmentation Fault", Fold: true}, {Text: "sigbus", Fold: true}}, "SEGMENTATION FAULT, segmentation fault, SigBus, SIGBUS, sigbus"},
		{"fold and not, same text", []Atom{{Text: "error 12", Fold: true}, {Text: "error 12"}}, "Error 12 error 12 ERROR 12"},
		{"fold touches letters only", []Atom{{Text: "[rank0]: @", Fold: true}, {Text: "k~{|}", Fold: true}}, "{rank0}: ` [RANK0]: @ [rank0]: ` K^[\\] K~{|}"},
		{"fold leaves other letters", []Atom{{Text: "stra\u00dfe \u00c4", Fold: true}}, "STRA\u00dfE \u00c4 stra\u00dfe \u00e4"},
		{"bytes of all kinds", literals("\x00\x00\x00\x00\x00\x00\x00\x00", "\xff\xfe", "\r\n"), "\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xfe\xff\r\n\r"},
		{"gram at the end of the text", literals("ab"), "ab"},
		{"NUL is not the end of the text", literals("ab\x00"), "ab"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { checkScan(t, tt.atoms, []byte(tt.text)) })
	}
}

// TestScanEverywhere puts an atom of every length at every place of short texts
// and around the borders of blocks.
func TestScanEverywhere(t *testing.T) {
	const text = "Xid 79, GPU has fallen off the bus"
	for n := 1; n <= len(text); n++ {
		for _, m := range matchers([]Atom{{Text: text[:n]}, {Text: "unrelated words"}}) {
			for at := range 70 {
				for after := range 10 {
					buf := []byte(strings.Repeat(".", at) + text[:n] + strings.Repeat(".", after))
					if got := m.Scan(buf, nil); len(got) != 1 || got[0] != (Hit{at, 0}) {
						t.Fatalf("%q at %d, %d bytes after: got %v", text[:n], at, after, got)
					}
				}
			}
			buf := bytes.Repeat([]byte("."), 3*scanBlock)
			for at := 2*scanBlock - 40; at < 2*scanBlock+8; at++ {
				copy(buf[at:], text[:n])
				if got := m.Scan(buf, nil); len(got) != 1 || got[0] != (Hit{at, 0}) {
					t.Fatalf("%q at %d: got %v", text[:n], at, got)
				}
				copy(buf[at:], strings.Repeat(".", n))
			}
		}
	}
}

// randomAtoms makes atoms of few different letters, so that they occur.
func randomAtoms(r *rand.Rand, letters string, n, longest int) []Atom {
	atoms := make([]Atom, n)
	for i := range atoms {
		atoms[i] = Atom{Text: string(randomText(r, letters, 1+r.IntN(longest))), Fold: r.IntN(4) == 0}
	}
	return atoms
}

func randomText(r *rand.Rand, letters string, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[r.IntN(len(letters))]
	}
	return b
}

func TestScanRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, letters := range []string{"a", "ab", "aA", "aAbB \n", "loss: nan\n'[]", "\x00\x20\x40\x60\xff"} {
		for range 60 {
			atoms := randomAtoms(r, letters, 1+r.IntN(20), 1+r.IntN(14))
			for i := range r.IntN(len(atoms)) {
				atoms[i].Except = &Except{Behind: []string{letters[:1], letters[len(letters)-1:]}, Before: []string{letters[:min(len(letters), 2)]}}
			}
			checkScan(t, atoms, randomText(r, letters, r.IntN(400)))
		}
	}
	// More atoms than a small bitmap is used for, and several blocks.
	checkScan(t, randomAtoms(r, "abcd", 200, 12), randomText(r, "abcd", 2*scanBlock+5))
	// So many that nibbleTables need more buckets, and of all bytes.
	var every strings.Builder
	for c := range 256 {
		every.WriteByte(byte(c))
	}
	many := randomAtoms(r, every.String(), 700, 9)
	buf := randomText(r, every.String(), 3*scanBlock+77)
	for range 500 {
		copy(buf[r.IntN(len(buf)):], many[r.IntN(len(many))].Text)
	}
	checkScan(t, many, buf)
	// So many hits that they are far from order when found.
	checkScan(t, literals(strings.Repeat("a", 40), "aaaaaaaa", "aa"), bytes.Repeat([]byte("a"), 2*scanBlock))
}

// TestScanEnds cuts a text at every length around the borders of the blocks that
// kernels take, inside and outside of a buffer that goes on.
func TestScanEnds(t *testing.T) {
	atoms := []Atom{{Text: "ab"}, {Text: "b\n"}, {Text: "xyz1"}, {Text: "YZ12", Fold: true}, {Text: "xyz123456"}, {Text: "\xe2\x80\xa6 done"}, {Text: "\n"}}
	text := bytes.Repeat([]byte("ab\nxyz123456 \xe2\x80\xa6 done, XYZ12\n--"), 2+scanBlock/30)
	ms := matchers(atoms)
	for _, base := range []int{0, 64, 128, scanBlock} {
		for n := max(base-70, 0); n < base+70; n++ {
			want := naive(atoms, text[:n])
			for use, m := range ms {
				for _, buf := range [][]byte{text[:n], bytes.Clone(text[:n])} {
					if got := m.Scan(buf, nil); !slices.Equal(got, want) {
						t.Fatalf("matcher %d, %d bytes: got %v, want %v", use, n, got, want)
					}
				}
			}
		}
	}
}

// TestMarks compares the newlines that kernels leave with those of the text.
func TestMarks(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	for _, m := range matchers(literals("needle", "x")) {
		if !m.marking {
			continue
		}
		for _, n := range []int{0, 1, 63, 64, 65, 69, 128, scanBlock - 1, scanBlock, scanBlock + 1, 2*scanBlock + 63} {
			buf := randomText(r, "\n\nab\x8a\x1a", n)
			marks := make([]uint64, n/64+1)
			m.scan(new(pass), buf, nil, marks)
			text := lines{text: append(buf, '\n'), marks: nil}
			marked := lines{text: text.text, marks: marks}
			for i := range n {
				if got, want := marks[i/64]>>(i%64)&1 == 1, buf[i] == '\n'; got != want {
					t.Fatalf("%d bytes: mark %d is %v", n, i, got)
				}
			}
			for range 50 {
				from := r.IntN(n + 1)
				to := from + r.IntN(n-from+1)
				if got, want := marked.count(from, to), text.count(from, to); got != want {
					t.Fatalf("count(%d, %d) = %d, want %d", from, to, got, want)
				}
				if to == n {
					continue
				}
				at, skipped := marked.of(from, to)
				wantAt, wantSkipped := text.of(from, to)
				if at != wantAt || skipped != wantSkipped {
					t.Fatalf("of(%d, %d) = %d, %d, want %d, %d", from, to, at, skipped, wantAt, wantSkipped)
				}
				if i := bytes.IndexByte(buf[to:], '\n'); i >= 0 && marked.end(to) != to+i {
					t.Fatalf("end(%d) = %d, want %d", to, marked.end(to), to+i)
				}
			}
		}
	}
}

func FuzzScan(f *testing.F) {
	f.Add("CUDA error\nXid\nnan", "step 3: CUDA error: nan\nNVRM: Xid 31", uint64(2))
	f.Add("aa\naaa\naaaaaaaa", "aaaaaaaaaaaaaaaaaaaaAAAA", uint64(7))
	f.Add("\x00\n\xff", "\x00\xff\x00", uint64(0))
	f.Add("loss=\ntime\nSXid\nDBE\nerror: \nA", "sxid DBE lossloss=timeERROR: ", uint64(20))
	f.Fuzz(func(t *testing.T, words, text string, fold uint64) {
		atoms := literals(strings.Split(words, "\n")...)
		for i := range atoms {
			atoms[i].Fold = fold>>(i%64)&1 == 1
		}
		checkScan(t, atoms, []byte(text))
		// The same around the borders of blocks.
		checkScan(t, atoms, []byte(strings.Repeat(text+".", min(200, 2*scanBlock/(len(text)+1)))))
	})
}

// TestLeadsAlike has all matchers leave out the same.
func TestLeadsAlike(t *testing.T) {
	atoms := []Atom{{Text: "it/s", Leads: true, Follows: true}, {Text: "loss=", Fold: true, Follows: true}, {Text: "loss':"}, {Text: "memory allocated", Follows: true}}
	r := rand.New(rand.NewPCG(41, 42))
	pieces := []string{"\r 10% 5/50 [3.2it/s, loss=2]", "\n", "{'loss': 1}", "LOSS=3 ", "memory allocated: 7 ", strings.Repeat(" ", 300)}
	var text []byte
	for len(text) < 4*scanBlock {
		text = append(text, pieces[r.IntN(len(pieces))]...)
	}
	ms := matchers(atoms)
	want := ms[0].Scan(text, nil)
	for use, m := range ms {
		if got := m.Scan(text, nil); !slices.Equal(got, want) {
			t.Errorf("matcher %d: %d hits, others than the first's %d", use, len(got), len(want))
		}
	}
}

// TestLeads checks what may be left out behind an atom that leads, and what not.
func TestLeads(t *testing.T) {
	atoms := []Atom{{Text: "it/s", Leads: true, Follows: true}, {Text: "loss=", Follows: true}, {Text: "loss':"}}
	frame := "\r 10% 5/50 [3.2it/s, loss=2]"
	tests := []struct {
		name, text string
		want       []Hit
	}{
		{"one frame", frame, []Hit{{15, 0}}},
		{"frames of one line", frame + frame + frame, []Hit{{15, 0}}},
		{"the next line", frame + "\n" + frame, []Hit{{15, 0}, {44, 0}}},
		{"before it", "loss=1 " + frame, []Hit{{0, 1}, {22, 0}}},
		{"others", frame + "{'loss': 1}" + frame, []Hit{{15, 0}, {30, 2}}},
		{"a long line", frame + strings.Repeat(" ", maxDim) + frame, []Hit{{15, 0}, {28 + maxDim + 15, 0}}},
	}
	for _, tt := range tests {
		for _, m := range matchers(atoms) {
			if got := m.Scan([]byte(tt.text), nil); !slices.Equal(got, tt.want) {
				t.Errorf("%s, %T: got %v, want %v", tt.name, m.filters[0], got, tt.want)
			}
		}
	}
}
