package memsnap

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// A memory timeline is JSON in one of two forms (torch/profiler/_memory_profiler.py,
// MemoryProfileTimeline):
//
//	.json      [[t, t, ...], [[0, b, b, ...], ...]]: times in microseconds, and for each the bytes of the
//	           eight categories behind a 0 that is there for plotting
//	.raw.json  [[t, action, bytes, category], ...]: nanoseconds, or -1 for what was there before; bytes are
//	           negative where they are given back; of a new version of a tensor the old and the new one
//
// The HTML form holds a picture only.

const (
	maxPoints = 1 << 26
	maxDigits = 64 // of one number
)

// isTimeline reports whether head begins as lists of numbers within a list.
func isTimeline(head []byte) bool {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	open, digits := 0, 0
	for _, c := range head {
		switch {
		case c == '[' && digits == 0:
			open++
		case c == '[' || c == ']' || c == ',' || c == ' ' || c == '\n' || c == '\r' || c == '\t':
		case c >= '0' && c <= '9' || c == '-' || c == '.' || c == 'e' || c == 'E' || c == '+':
			digits++
		default:
			return false
		}
	}
	return open == 2 && digits > 0
}

// numbers reads nested lists of numbers.
type numbers struct {
	r  *bufio.Reader
	at int64
}

var errTimeline = errors.New("no memory timeline: lists of numbers are expected")

// next returns the next byte that is no blank or comma.
func (n *numbers) next() (byte, error) {
	for {
		c, err := n.r.ReadByte()
		if err != nil {
			return 0, err
		}
		n.at++
		switch c {
		case ' ', '\t', '\r', '\n', ',', 0xef, 0xbb, 0xbf:
		default:
			return c, nil
		}
	}
}

// list reads a list of numbers of which the opening bracket was read, and hands each to add.
func (n *numbers) list(add func(int64) bool) error {
	for {
		c, err := n.next()
		if err != nil {
			return err
		}
		if c == ']' {
			return nil
		}
		v, err := n.number(c)
		if err != nil {
			return err
		}
		if !add(v) {
			return errTimeline
		}
	}
}

// number reads a number that begins with c. Fractions are cut.
func (n *numbers) number(c byte) (int64, error) {
	var digits [maxDigits]byte
	k := 0
	for c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E' {
		if k == maxDigits {
			return 0, errTimeline
		}
		digits[k] = c
		k++
		var err error
		if c, err = n.r.ReadByte(); err != nil {
			return 0, err // a number that the end cuts is not known
		}
		n.at++
	}
	if err := n.r.UnreadByte(); err != nil {
		return 0, err
	}
	n.at--
	if v, err := strconv.ParseInt(string(digits[:k]), 10, 64); err == nil {
		return v, nil
	}
	f, err := strconv.ParseFloat(string(digits[:k]), 64)
	if err != nil {
		return 0, errTimeline
	}
	v, _ := value{tag: tFloat, n: math.Float64bits(f)}.number()
	return v, nil
}

// fromTimeline reads a memory timeline.
func fromTimeline(r io.Reader) (*result, error) {
	n := &numbers{r: bufio.NewReaderSize(r, 64<<10)}
	t := &evidence.MemTimeline{}
	got := &result{MemSnapshot: &evidence.MemSnapshot{Form: "timeline", Timeline: t, Stacks: [][]uint32{nil}, Streams: make([]uint64, 1), Pools: make([][2]int64, 1), Notes: make([]evidence.MemNote, 1)}, first: map[int]int64{}}
	err := got.timeline(n)
	if err == nil {
		return got, nil
	}
	if len(t.Points) == 0 {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("at offset %d: %w", n.at, err)
	}
	text := err.Error()
	if err == io.EOF {
		text = "the list ends early"
	}
	got.Damage = append(got.Damage, evidence.SnapDamage{Offset: n.at, Text: text})
	got.cut, got.Cut = true, true
	return got, nil
}

// timeline reads either form.
func (r *result) timeline(n *numbers) error {
	for range 2 {
		if c, err := n.next(); err != nil {
			return err
		} else if c != '[' {
			return errTimeline
		}
	}
	var times chunked
	if err := n.list(times.add); err != nil {
		return err
	}
	c, err := n.next()
	switch {
	case err != nil:
		return err
	case c == ']' && times.n == 4:
		r.Timeline.Form = "raw"
		return r.change(n, times.at(0), times.at(1), times.at(2), times.at(3))
	case c != '[':
		return errTimeline
	}
	c, err = n.next()
	if err != nil {
		return err
	}
	if c == '[' {
		r.Timeline.Form = "coalesced"
		return r.states(n, &times)
	}
	if times.n != 4 {
		return errTimeline
	}
	r.Timeline.Form = "raw"
	return r.changes(n, c, &times)
}

// states reads the sizes of the coalesced form, the first bracket of the first read.
func (r *result) states(n *numbers, times *chunked) error {
	for i := 0; i < times.n; i++ {
		if len(r.Timeline.Points) >= maxPoints {
			return fmt.Errorf("more than %d states", maxPoints)
		}
		p, k := evidence.MemPoint{Time: times.at(i)}, 0
		if err := n.list(func(v int64) bool {
			if k > 0 && k <= len(p.Bytes) {
				p.Bytes[k-1] = v
			}
			k++
			return k <= 1+len(p.Bytes)
		}); err != nil {
			return err
		}
		r.point(n, p)
		c, err := n.next()
		switch {
		case err != nil:
			return err
		case c == ']' && i == times.n-1:
			return nil
		case c != '[':
			return fmt.Errorf("%d times, but %d states", times.n, i+1)
		}
	}
	return errTimeline
}

// changes reads the raw form, the first list and the first byte of the second read.
func (r *result) changes(n *numbers, c byte, first *chunked) error {
	if err := r.change(n, first.at(0), first.at(1), first.at(2), first.at(3)); err != nil {
		return err
	}
	for {
		var v [4]int64
		var err error
		k := 0
		add := func(x int64) bool {
			if k < 4 {
				v[k] = x
			}
			k++
			return k <= 4
		}
		if c != 0 {
			if v[0], err = n.number(c); err != nil {
				return err
			}
			k, c = 1, 0
		}
		if err := n.list(add); err != nil {
			return err
		}
		if k != 4 {
			return errTimeline
		}
		if err := r.change(n, v[0], v[1], v[2], v[3]); err != nil {
			return err
		}
		switch b, err := n.next(); {
		case err != nil:
			return err
		case b == ']':
			return nil
		case b != '[':
			return errTimeline
		}
	}
}

// Actions of the raw form (torch/profiler/_memory_profiler.py, Action).
const (
	preexisting = 1
	lastAction  = 4
)

// change adds one change of the raw form.
func (r *result) change(n *numbers, ns, action, bytes, category int64) error {
	if action < preexisting || action > lastAction || category < 0 || category >= int64(len(evidence.MemCategories)) {
		return errTimeline
	}
	t := &r.Timeline.Points
	us := ns
	if ns > 0 {
		us = ns / 1000
	}
	p := evidence.MemPoint{Time: us}
	if k := len(*t); k > 0 {
		p.Bytes = (*t)[k-1].Bytes
		if (*t)[k-1].Time == us {
			(*t)[k-1].Bytes[category] += bytes
			return nil
		}
	}
	if len(*t) >= maxPoints {
		return fmt.Errorf("more than %d states", maxPoints)
	}
	p.Bytes[category] += bytes
	r.point(n, p)
	return nil
}

func (r *result) point(n *numbers, p evidence.MemPoint) {
	if len(r.Timeline.Points) == 0 {
		r.first[0] = n.at
	}
	r.Timeline.Points = append(r.Timeline.Points, p)
}

// chunked are many numbers.
type chunked struct {
	chunks [][]int64
	n      int
}

func (c *chunked) add(v int64) bool {
	if c.n%8192 == 0 {
		c.chunks = append(c.chunks, make([]int64, 8192))
	}
	c.chunks[c.n/8192][c.n%8192] = v
	c.n++
	return c.n <= maxPoints
}

func (c *chunked) at(i int) int64 { return c.chunks[i/8192][i%8192] }
