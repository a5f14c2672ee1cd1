// Package safetensors reads the header of a safetensors file: which tensors it holds, of what
// type and shape, and where their bytes lie. The bytes themselves are left to the caller.
//
//	offset  size  what
//	0       8     n: length of the header, little-endian; at most 100 MB
//	8       n     JSON object, padded with blanks: name -> {dtype, shape, data_offsets: [begin, end]},
//	              and perhaps __metadata__: name -> text
//	8+n     rest  the tensors, row-major and little-endian, one behind the other without a hole;
//	              data_offsets count from here
//
// Specified in the README of github.com/huggingface/safetensors, whose own reader refuses what
// is refused here: a header that is no object, a name that stands twice, tensors that overlap or
// leave a hole, a size that is not that of type and shape, bytes behind the last tensor.
package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// MaxHeader is the longest header that the format allows, in bytes.
const MaxHeader = 100_000_000

// ErrTruncated is wrapped by the error of a file that ends before what its header announces.
var ErrTruncated = errors.New("the file ends early")

// A File is what the header says.
type File struct {
	Metadata map[string]string
	Tensors  []Tensor // in the order of their bytes
	Begin    int64    // offset of the first tensor's bytes
}

// A Tensor is one tensor. Begin and End are offsets in the file.
type Tensor struct {
	Name       string
	DType      string // F32, BF16, I64, …
	Shape      []int64
	Begin, End int64
}

// bits are the sizes of the types. Those of less than a byte are packed.
var bits = map[string]int64{
	"BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
	"I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "I64": 64, "U64": 64, "F64": 64, "C64": 64,
	"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}

// Looks reports whether head, the first bytes of a file of size bytes, is how such a file begins.
func Looks(head []byte, size int64) bool {
	if len(head) < 9 {
		return false
	}
	n := binary.LittleEndian.Uint64(head)
	return n >= 2 && n <= MaxHeader && head[8] == '{' && int64(n) <= max(size, 1<<20)
}

// Read reads the header of a file of size bytes. With an error it returns what of the header
// could be used, nil where nothing could: a file that is cut has a header whose tensors are not
// all there.
func Read(r io.ReaderAt, size int64) (*File, error) {
	var head [8]byte
	if size < 8 {
		return nil, fmt.Errorf("read safetensors header: %d bytes: %w", size, ErrTruncated)
	}
	if _, err := r.ReadAt(head[:], 0); err != nil {
		return nil, fmt.Errorf("read safetensors header: %w", err)
	}
	n := binary.LittleEndian.Uint64(head[:])
	switch {
	case n > MaxHeader:
		return nil, fmt.Errorf("read safetensors header: it would be %d bytes long, more than the format allows", n)
	case int64(n) > size-8:
		return nil, fmt.Errorf("read safetensors header: %d of %d bytes: %w", size-8, n, ErrTruncated)
	}
	text, err := io.ReadAll(io.NewSectionReader(r, 8, int64(n)))
	if err != nil {
		return nil, fmt.Errorf("read safetensors header: %w", err)
	}
	f, err := parse(text, 8+int64(n))
	if err != nil {
		return nil, fmt.Errorf("read safetensors header: %w", err)
	}
	return f, f.check(size)
}

// parse reads the JSON of a header; begin is where the tensors' bytes begin.
func parse(text []byte, begin int64) (*File, error) {
	if len(text) == 0 || text[0] != '{' {
		return nil, errors.New("it does not begin with {")
	}
	f := &File{Begin: begin, Metadata: map[string]string{}}
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := key.(string)
		if seen[name] {
			return nil, fmt.Errorf("the name %q stands twice", name)
		}
		seen[name] = true
		if name == "__metadata__" {
			if err := d.Decode(&f.Metadata); err != nil {
				return nil, fmt.Errorf("metadata: %w", err)
			}
			continue
		}
		var t struct {
			DType   string   `json:"dtype"`
			Shape   []int64  `json:"shape"`
			Offsets *[]int64 `json:"data_offsets"`
		}
		if err := d.Decode(&t); err != nil {
			return nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		if t.Offsets == nil || len(*t.Offsets) != 2 {
			return nil, fmt.Errorf("tensor %q: no data_offsets of two numbers", name)
		}
		lo, hi := (*t.Offsets)[0], (*t.Offsets)[1]
		if lo < 0 || hi < lo || hi > math.MaxInt64-begin {
			return nil, fmt.Errorf("tensor %q: its bytes are said to lie at %d to %d", name, lo, hi)
		}
		f.Tensors = append(f.Tensors, Tensor{Name: name, DType: t.DType, Shape: t.Shape, Begin: begin + lo, End: begin + hi})
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if rest := bytes.TrimSpace(text[d.InputOffset():]); len(rest) > 0 {
		return nil, errors.New("something stands behind its object")
	}
	slices.SortStableFunc(f.Tensors, func(a, b Tensor) int {
		switch {
		case a.Begin != b.Begin:
			return int(min(max(a.Begin-b.Begin, -1), 1))
		default:
			return int(min(max(a.End-b.End, -1), 1))
		}
	})
	return f, nil
}

// check compares the tensors with each other and with the file's size.
func (f *File) check(size int64) error {
	at := f.Begin
	for i := range f.Tensors {
		t := &f.Tensors[i]
		switch {
		case t.Begin < at:
			return fmt.Errorf("tensor %q overlaps the one before it", t.Name)
		case t.Begin > at:
			return fmt.Errorf("%d bytes before tensor %q belong to none", t.Begin-at, t.Name)
		}
		at = t.End
		if want, ok := t.bytes(); !ok {
			return fmt.Errorf("tensor %q: %s of shape %v has no size that can be", t.Name, t.DType, t.Shape)
		} else if want >= 0 && want != t.End-t.Begin {
			return fmt.Errorf("tensor %q: %s of shape %v takes %d bytes, and it has %d", t.Name, t.DType, t.Shape, want, t.End-t.Begin)
		}
	}
	switch {
	case at > size:
		return fmt.Errorf("%d of %d bytes: %w", size, at, ErrTruncated)
	case at < size:
		return fmt.Errorf("%d bytes behind the last tensor belong to none", size-at)
	}
	return nil
}

// Elements is how many numbers t holds, false where its shape is none.
func (t *Tensor) Elements() (int64, bool) {
	n := int64(1)
	for _, d := range t.Shape {
		if d < 0 || d > 0 && n > math.MaxInt64/64/d {
			return 0, false
		}
		n *= d
	}
	return n, true
}

// bytes is the size that type and shape call for; -1 for a type that is not known here.
func (t *Tensor) bytes() (int64, bool) {
	n, ok := t.Elements()
	if !ok {
		return 0, false
	}
	b, known := bits[t.DType]
	if !known {
		return -1, true
	}
	if n*b%8 != 0 {
		return 0, false
	}
	return n * b / 8, true
}
