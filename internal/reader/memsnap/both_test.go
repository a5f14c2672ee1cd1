package memsnap

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/inquest-dev/inquest/internal/testkit/allocmodel"
)

// behind is put behind a pickle's STOP: entries are compared with moulds only where much
// more than one lies in the window.
var behind = make([]byte, runMin+pairsMin)

// bothWays reads data opcode by opcode, and as Decode does, and tells how the results differ.
func bothWays(data []byte, through func(io.Reader) io.Reader) string {
	data = append(bytes.Clone(data), behind...)
	var said [2]string
	for i, plain := range []bool{true, false} {
		var r io.Reader = bytes.NewReader(data)
		if through != nil {
			r = through(r)
		}
		s, err := Decode(context.Background(), r, Options{plain: plain})
		if err != nil {
			said[i] = err.Error()
			continue
		}
		said[i] = fmt.Sprintf("%s\n%v %v\n%+v\n", dumped(s), s.Damage, s.Cut, s.Has)
	}
	if said[0] != said[1] {
		return difference(said[1], said[0])
	}
	return ""
}

// TestBothWays compares the fast ways with the general one, on whole files and on files with
// some bytes changed.
func TestBothWays(t *testing.T) {
	files := map[string][]byte{"history": history(3000)}
	names, _ := filepath.Glob("testdata/*.p*kl*")
	more, _ := filepath.Glob("../../../../shared/data/memory_snapshots/*")
	for _, name := range append(append(names, more...), "testdata/torch/snapshot.pickle", "testdata/page.html") {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = data
	}
	for seed := range uint64(6) {
		for name, p := range map[string]allocmodel.Pickler{"CPython": allocmodel.CPython, "Torch": allocmodel.Torch} {
			var b bytes.Buffer
			if err := allocmodel.WritePickle(&b, allocmodel.New(seed, 200).Snapshot(), p); err != nil {
				t.Fatal(err)
			}
			files[fmt.Sprint(name, seed)] = b.Bytes()
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		data := files[name]
		if d := bothWays(data, nil); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if len(data) > 150_000 {
			continue
		}
		if d := bothWays(data, iotest.HalfReader); d != "" {
			t.Errorf("%s, by halves: %s", name, d)
		}
		for range 6 {
			changed := bytes.Clone(data)
			for range 1 + r.IntN(3) {
				changed[r.IntN(len(changed))] = changed[r.IntN(len(changed))]
			}
			if d := bothWays(changed, nil); d != "" {
				t.Errorf("%s, changed: %s", name, d)
			}
		}
	}
}

// TestMouldsFit checks that entries which are alike take the fast way.
func TestMouldsFit(t *testing.T) {
	m := newMachine(bytes.NewReader(append(history(3000), behind...)))
	if err := m.run(); err != nil {
		t.Fatal(err)
	}
	if m.foundry.used < 2900 || m.events != 3000 {
		t.Errorf("%d of %d entries fitted a mould", m.foundry.used, m.events)
	}
}

// alike is a snapshot of n entries with the keys action, addr, size, which the memo has in
// slots 1, 2, 3 as it has alloc in 4. What between returns stands before entry i, whose
// bytes entry returns.
func alike(n int, entry, between func(i int) string) []byte {
	var b bytes.Buffer
	b.WriteString("\x80\x04}(\x8c\x0ddevice_traces\x94\x8c\x06action\x940\x8c\x04addr\x940\x8c\x04size\x940\x8c\x05alloc\x940](](")
	for i := range n {
		b.WriteString(between(i))
		b.WriteString(entry(i))
	}
	b.WriteString("eeu.")
	return b.Bytes()
}

// TestMouldsForget puts other words where moulds have theirs, and entries that are nearly those
// of a mould.
func TestMouldsForget(t *testing.T) {
	plain := func(i int) string {
		return fmt.Sprintf("}(h\x01h\x04h\x02M%c%ch\x03K%cu", byte(i%100), byte(i%7), byte(i%100))
	}
	none := func(int) string { return "" }
	every := func(k int, s string) func(int) string {
		return func(i int) string {
			if i%k == k-1 {
				return s
			}
			return ""
		}
	}
	for name, data := range map[string][]byte{
		"alike":            alike(2000, plain, none),
		"another action":   alike(2000, plain, every(500, "\x8c\x04free\x71\x040")),
		"keys change":      alike(2000, plain, every(700, "\x8c\x04addrq\x030\x8c\x04sizeq\x020")),
		"another object":   alike(2000, plain, every(900, "}q\x040")),
		"memoized between": alike(2000, plain, every(300, "\x8c\x01x\x940")),
		"a slot far away":  alike(2000, plain, every(1000, "\x8c\x01xr\x00\x00\x10\x000")),
		"a key twice":      alike(2000, func(i int) string { return plain(i)[:len(plain(i))-1] + "h\x03K\x05u" }, none),
		"a key more":       alike(2000, func(i int) string { return plain(i)[:len(plain(i))-1] + "\x8c\x07time_usK\x05u" }, every(2, plain(3))),
		"big numbers":      alike(2000, func(i int) string { return "}(h\x01h\x04h\x02\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00h\x03K\x05u" }, every(3, plain(3))),
		"many shapes":      alike(2000, func(i int) string { return fmt.Sprintf("}(h\x01\x8c\x02%02dh\x02K\x01u", i%50) }, none),
		"strings":          alike(2000, func(i int) string { return "}\x94(h\x01\x8c\x04free\x94h\x02K\x01u" }, none),
		"referred to":      alike(2000, func(i int) string { return "}\x94(h\x01h\x04h\x02K\x01u" }, every(100, "h\x05h\x09")),
		"kept elsewhere":   alike(2000, plain, every(100, "]")),
	} {
		if d := bothWays(data, nil); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// dictList is a list of frames that are dicts in it: name, filename and line are in slots 5, 6, 7.
func dictList(frames ...int) string {
	s := "]\x94("
	for _, f := range frames {
		s += fmt.Sprintf("}\x94(h\x05\x8c\x0afunction%02d\x94h\x06\x8c\x05%02d.py\x94h\x07K%cu", f%100, f%7, byte(f%100))
	}
	return s + "e"
}

// TestDictLists has lists of frames that are not shared: said again, with more or fewer frames, and
// with what else may stand in them.
func TestDictLists(t *testing.T) {
	keys := "\x8c\x04nameq\x050\x8c\x08filenameq\x060\x8c\x04lineq\x070\x8c\x06framesq\x080"
	entry := func(list func(i int) string) func(i int) string {
		return func(i int) string {
			return fmt.Sprintf("}\x94(h\x01h\x04h\x02M%c%ch\x08%sh\x03K%cu", byte(i%100), byte(i%7), list(i), byte(i%100))
		}
	}
	plain := func(i int) string { return dictList(i%3, i%5, 7, i%11, 9) }
	once := func(at int, s string) func(int) string {
		return func(i int) string {
			switch i {
			case 0:
				return keys
			case at:
				return s
			}
			return ""
		}
	}
	either := func(k int, other string) func(int) string {
		return func(i int) string {
			if i%k == k-1 {
				return other
			}
			return plain(i)
		}
	}
	for name, data := range map[string][]byte{
		"again":              alike(2000, entry(plain), once(0, "")),
		"keys change":        alike(2000, entry(plain), once(1000, "\x8c\x04liveq\x050\x8c\x08filenumbq\x060")),
		"names and files":    alike(2000, entry(plain), once(1000, "\x8c\x08filenameq\x050\x8c\x04nameq\x060")),
		"a slot far away":    alike(2000, entry(plain), once(1000, "\x8c\x01xr\x00\x00\x10\x000")),
		"shorter":            alike(2000, entry(either(4, dictList(1, 2))), once(0, "")),
		"longer":             alike(2000, entry(either(4, dictList(1, 2, 7, 8, 9, 10, 11, 12))), once(0, "")),
		"none":               alike(2000, entry(either(4, dictList())), once(0, "")),
		"many":               alike(500, entry(either(9, dictList(make([]int, 1000)...))), once(0, "")),
		"in two parts":       alike(2000, entry(either(4, dictList(1, 2)+dictList(3)[2:])), once(0, "")),
		"with a number":      alike(2000, entry(either(4, dictList(1, 2)[:len(dictList(1, 2))-1]+"K\x05e")), once(0, "")),
		"with a reference":   alike(2000, entry(either(4, dictList(1, 2)[:len(dictList(1, 2))-1]+"h\x0be")), once(0, "")),
		"memoized otherwise": alike(2000, entry(either(4, "]r\x00\x00\x20\x00"+dictList(1, 2)[2:])), once(0, "")),
		"not memoized":       alike(2000, entry(func(i int) string { return "]" + plain(i)[2:] }), once(0, "")),
		"referred to":        alike(2000, entry(either(20, "h\x0bh\x03K\x04h\x08h\x0a")), once(0, "")),
	} {
		if d := bothWays(data, nil); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	m := newMachine(bytes.NewReader(append(alike(200, entry(plain), once(0, "")), behind...)))
	if err := m.run(); err != nil {
		t.Fatal(err)
	}
	list := plain(50)[3:]
	id, n := m.dictList(append([]byte(list), behind...))
	if n != len(list) || len(m.stacks.list[id]) != 5 {
		t.Errorf("a list that was read is %d of %d bytes, stack %d", n, len(list), id)
	}
}
