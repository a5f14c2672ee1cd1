package allocmodel

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// Writers of pickles.
type Pickler uint8

const (
	// CPython is pickle.dump of CPython 3.8 to 3.13: protocol 4 with frames of at least 64 KiB, every string,
	// list, dict and tuple memoized, batches of 1000. It gives the bytes that CPython gives for the
	// object it loads from them.
	CPython Pickler = iota
	// Torch is PyTorch's own pickler (torch/csrc/jit/serialization/pickler.cpp), as
	// _memory_snapshot_pickled uses it: protocol 2, no frames, strings memoized by value, containers that occur
	// more than once memoized after their content, integers of 1, 4 or 8 bytes.
	Torch
)

// WritePickle writes s as p would. Equal stacks that are one in s are one object.
func WritePickle(w io.Writer, s *evidence.MemSnapshot, p Pickler) error {
	top := compose(s)
	if p == Torch {
		t := &torchPickler{uses: map[any]int{}, memo: map[any]int{}, words: map[string]int{}}
		t.count(top)
		t.out = append(t.out, 0x80, 2)
		t.save(top)
		t.out = append(t.out, '.')
		_, err := w.Write(t.out)
		return err
	}
	c := &cpythonPickler{memo: map[any]int{}, start: -1}
	c.out = append(c.out, 0x80, 4)
	c.framing = true
	c.save(top)
	c.write('.')
	c.closeFrame()
	_, err := w.Write(c.out)
	return err
}

const batch = 1000

type cpythonPickler struct {
	out     []byte
	framing bool
	start   int // of the open frame, -1: none
	memo    map[any]int
}

const frameHeader = 9

func (c *cpythonPickler) write(b ...byte) {
	if c.framing && c.start < 0 {
		c.start = len(c.out)
		c.out = append(c.out, make([]byte, frameHeader)...)
	}
	c.out = append(c.out, b...)
}

func (c *cpythonPickler) closeFrame() {
	if c.start < 0 {
		return
	}
	n := len(c.out) - c.start - frameHeader
	c.out[c.start] = 0x95
	binary.LittleEndian.PutUint64(c.out[c.start+1:], uint64(n))
	c.start = -1
}

func (c *cpythonPickler) get(v any) bool {
	i, ok := c.memo[v]
	switch {
	case !ok:
		return false
	case i < 256:
		c.write('h', byte(i))
	default:
		c.write(binary.LittleEndian.AppendUint32([]byte{'j'}, uint32(i))...)
	}
	return true
}

func (c *cpythonPickler) put(v any) {
	c.memo[v] = len(c.memo)
	c.write(0x94)
}

func (c *cpythonPickler) save(v any) {
	if c.start >= 0 && len(c.out)-c.start-frameHeader >= 64<<10 {
		c.closeFrame()
	}
	switch v := v.(type) {
	case bool:
		c.write(pickledBool(v))
	case int64:
		c.write(pickledInt(v)...)
	case uint64:
		c.write(pickledInt(int64(v))...)
	case float64:
		c.write(pickledFloat(v)...)
	case *text:
		if c.get(v) {
			return
		}
		if len(v.s) < 256 {
			c.write(0x8c, byte(len(v.s)))
		} else {
			c.write(binary.LittleEndian.AppendUint32([]byte{'X'}, uint32(len(v.s)))...)
		}
		c.write([]byte(v.s)...)
		c.put(v)
	case *tuple:
		if len(v.items) != 2 {
			panic(fmt.Sprintf("allocmodel: a tuple of %d", len(v.items)))
		}
		if c.get(v) {
			return
		}
		c.save(v.items[0])
		c.save(v.items[1])
		c.write(0x86)
		c.put(v)
	case *list:
		c.saveList(v)
	case *dict:
		c.saveDict(v)
	default:
		panic(fmt.Sprintf("allocmodel: a %T in a pickle", v))
	}
}

func (c *cpythonPickler) saveList(v *list) {
	if c.get(v) {
		return
	}
	c.write(']')
	c.put(v)
	if len(v.items) == 1 {
		c.save(v.items[0])
		c.write('a')
		return
	}
	for i := 0; i < len(v.items); {
		c.write('(')
		for end := min(i+batch, len(v.items)); i < end; i++ {
			c.save(v.items[i])
		}
		c.write('e')
	}
}

func (c *cpythonPickler) saveDict(v *dict) {
	if c.get(v) {
		return
	}
	if len(v.keys) == 0 || len(v.keys) >= batch {
		panic(fmt.Sprintf("allocmodel: a dict of %d", len(v.keys)))
	}
	c.write('}')
	c.put(v)
	if len(v.keys) == 1 {
		c.save(v.keys[0])
		c.save(v.vals[0])
		c.write('s')
		return
	}
	c.write('(')
	for i, k := range v.keys {
		c.save(k)
		c.save(v.vals[i])
	}
	c.write('u')
}

func pickledBool(v bool) byte {
	if v {
		return 0x88
	}
	return 0x89
}

func pickledFloat(v float64) []byte {
	return binary.BigEndian.AppendUint64([]byte{'G'}, math.Float64bits(v))
}

// pickledInt is v in the fewest bytes, as CPython writes it.
func pickledInt(v int64) []byte {
	switch {
	case v >= 0 && v < 1<<8:
		return []byte{'K', byte(v)}
	case v >= 0 && v < 1<<16:
		return []byte{'M', byte(v), byte(v >> 8)}
	case v == int64(int32(v)):
		return binary.LittleEndian.AppendUint32([]byte{'J'}, uint32(v))
	}
	b := binary.LittleEndian.AppendUint64(nil, uint64(v))
	n := 8
	for n > 1 && (b[n-1] == 0 && b[n-2] < 0x80 || b[n-1] == 0xff && b[n-2] >= 0x80) {
		n--
	}
	return append([]byte{0x8a, byte(n)}, b[:n]...)
}

type torchPickler struct {
	out   []byte
	uses  map[any]int // of containers
	memo  map[any]int
	words map[string]int
	n     int // memo entries so far
}

// count counts how often each container occurs.
func (t *torchPickler) count(v any) {
	switch v.(type) {
	case *list, *dict, *tuple:
		t.uses[v]++
		if t.uses[v] > 1 {
			return
		}
	}
	switch v := v.(type) {
	case *list:
		for _, x := range v.items {
			t.count(x)
		}
	case *dict:
		for _, x := range v.vals {
			t.count(x)
		}
	}
}

func (t *torchPickler) get(i int) {
	if i < 256 {
		t.out = append(t.out, 'h', byte(i))
		return
	}
	t.out = binary.LittleEndian.AppendUint32(append(t.out, 'j'), uint32(i))
}

func (t *torchPickler) put() int {
	i := t.n
	t.n++
	if i < 256 {
		t.out = append(t.out, 'q', byte(i))
	} else {
		t.out = binary.LittleEndian.AppendUint32(append(t.out, 'r'), uint32(i))
	}
	return i
}

func (t *torchPickler) save(v any) {
	switch x := v.(type) {
	case bool:
		t.out = append(t.out, pickledBool(x))
	case int64:
		t.int(x)
	case uint64:
		t.int(int64(x))
	case float64:
		t.out = append(t.out, pickledFloat(x)...)
	case *text:
		if i, ok := t.words[x.s]; ok {
			t.get(i)
			return
		}
		t.out = binary.LittleEndian.AppendUint32(append(t.out, 'X'), uint32(len(x.s)))
		t.out = append(t.out, x.s...)
		t.words[x.s] = t.put()
	default:
		if i, ok := t.memo[v]; ok {
			t.get(i)
			return
		}
		t.container(v)
		if t.uses[v] > 1 {
			t.memo[v] = t.put()
		}
	}
}

func (t *torchPickler) container(v any) {
	switch v := v.(type) {
	case *list:
		t.out = append(t.out, ']', '(')
		for _, x := range v.items {
			t.save(x)
		}
		t.out = append(t.out, 'e')
	case *dict:
		t.out = append(t.out, '}', '(')
		for i, k := range v.keys {
			t.save(k)
			t.save(v.vals[i])
		}
		t.out = append(t.out, 'u')
	case *tuple:
		t.save(v.items[0])
		t.save(v.items[1])
		t.out = append(t.out, 0x86)
	}
}

func (t *torchPickler) int(v int64) {
	switch {
	case v >= 0 && v < 1<<8:
		t.out = append(t.out, 'K', byte(v))
	case v == int64(int32(v)):
		t.out = binary.LittleEndian.AppendUint32(append(t.out, 'J'), uint32(v))
	default:
		t.out = binary.LittleEndian.AppendUint64(append(t.out, 0x8a, 8), uint64(v))
	}
}
