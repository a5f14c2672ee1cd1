package evidencefile

import (
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
)

var errRecord = errors.New("a record that does not decode")

// A coder writes a record, or reads one: each method puts its argument into the
// record, or sets it from there, so that the two directions cannot differ. Whole
// numbers are varints; a text stands in full the first time and as its ordinal
// after that. Reading stops at the first thing that is wrong: err is set, and
// everything after it reads as zero.
type coder struct {
	reading bool
	buf     []byte // what was written, or what is left to read
	texts   []string
	index   map[string]int
	err     error
}

func newEncoder() *coder            { return &coder{index: map[string]int{}} }
func newDecoding(buf []byte) *coder { return &coder{reading: true, buf: buf} }

func (c *coder) fail() {
	if c.err == nil {
		c.err = errRecord
	}
	c.buf = nil
}

func (c *coder) uint(v *uint64) {
	if !c.reading {
		c.buf = binary.AppendUvarint(c.buf, *v)
		return
	}
	n, k := binary.Uvarint(c.buf)
	if k <= 0 {
		c.fail()
		*v = 0
		return
	}
	*v, c.buf = n, c.buf[k:]
}

func (c *coder) int64(v *int64) {
	u := uint64(*v)<<1 ^ uint64(*v>>63)
	c.uint(&u)
	*v = int64(u>>1) ^ -int64(u&1)
}

func (c *coder) int(v *int) {
	n := int64(*v)
	c.int64(&n)
	*v = int(n)
}

func (c *coder) bool(v *bool) {
	n := uint64(0)
	if *v {
		n = 1
	}
	c.uint(&n)
	*v = n != 0
}

// count codes the length of a list whose elements take at least one byte each.
func (c *coder) count(n int) int {
	u := uint64(n)
	c.uint(&u)
	if c.reading && u > uint64(len(c.buf)) {
		c.fail()
		return 0
	}
	return int(u)
}

func (c *coder) text(s *string) {
	if !c.reading {
		if k, ok := c.index[*s]; ok {
			u := uint64(k + 1)
			c.uint(&u)
			return
		}
		c.index[*s] = len(c.index)
		u := uint64(0)
		c.uint(&u)
		u = uint64(len(*s))
		c.uint(&u)
		c.buf = append(c.buf, *s...)
		return
	}
	var u uint64
	c.uint(&u)
	switch {
	case u > uint64(len(c.texts)):
		c.fail()
		*s = ""
	case u > 0:
		*s = c.texts[u-1]
	default:
		c.uint(&u)
		if u > uint64(len(c.buf)) {
			c.fail()
			*s = ""
			return
		}
		*s = string(c.buf[:u])
		c.buf = c.buf[u:]
		c.texts = append(c.texts, *s)
	}
}

// float codes a value by its decimal digits where it is short in them, as what was
// printed is, else by its bits.
func (c *coder) float(v *float64) {
	if !c.reading {
		if digits, exp, ok := decimal(*v); ok {
			u := uint64(exp + 400)
			c.uint(&u)
			c.int64(&digits)
			return
		}
		u := uint64(0)
		c.uint(&u)
		c.buf = binary.LittleEndian.AppendUint64(c.buf, math.Float64bits(*v))
		return
	}
	var u uint64
	c.uint(&u)
	if u == 0 {
		if len(c.buf) < 8 {
			c.fail()
			*v = 0
			return
		}
		*v, c.buf = math.Float64frombits(binary.LittleEndian.Uint64(c.buf)), c.buf[8:]
		return
	}
	var digits int64
	c.int64(&digits)
	if u > 800 {
		c.fail()
		return
	}
	*v, _ = strconv.ParseFloat(strconv.FormatInt(digits, 10)+"e"+strconv.Itoa(int(u)-400), 64)
}

// decimal splits v into a whole number and a power of ten; not for what is no
// number, negative zero, or longer than 17 digits.
func decimal(v float64) (digits int64, exp int, ok bool) {
	if v-v != 0 || v == 0 && math.Signbit(v) {
		return 0, 0, false
	}
	s := strconv.FormatFloat(v, 'e', -1, 64)
	mantissa, power, _ := strings.Cut(s, "e")
	whole, frac, _ := strings.Cut(mantissa, ".")
	digits, err := strconv.ParseInt(whole+frac, 10, 64)
	if err != nil {
		return 0, 0, false
	}
	exp, err = strconv.Atoi(power)
	exp -= len(frac)
	return digits, exp, err == nil && exp > -400 && exp < 400
}

func (c *coder) time(t *time.Time) {
	known := !t.IsZero()
	c.bool(&known)
	if !known {
		*t = time.Time{}
		return
	}
	sec, ns := t.Unix(), int64(t.Nanosecond())
	c.int64(&sec)
	c.int64(&ns)
	if c.reading {
		*t = time.Unix(sec, ns).UTC()
	}
}

func (c *coder) stamp(s *evidence.Stamp) {
	known := s.Known()
	c.bool(&known)
	if !known {
		*s = evidence.Stamp{}
		return
	}
	c.time(&s.Time)
	c.text(&s.Written)
	c.text(&s.Zone)
	flags := uint64(0)
	if s.NoDate {
		flags |= 1
	}
	if s.NoYear {
		flags |= 2
	}
	c.uint(&flags)
	s.NoDate, s.NoYear = flags&1 != 0, flags&2 != 0
	d := int64(s.Error)
	c.int64(&d)
	s.Error = time.Duration(d)
	c.text(&s.Clock)
	c.text(&s.Host)
}

func (c *coder) who(w *evidence.Who) {
	c.text(&w.Attempt)
	c.int(&w.Launch)
	c.text(&w.Host)
	c.int(&w.Rank)
	c.int(&w.LocalRank)
	c.int(&w.Device)
	c.text(&w.BusID)
	c.int(&w.PID)
}

// span codes a span whose artifact is mostly the record's own.
func (c *coder) span(s *evidence.Span) {
	c.text(&s.Artifact)
	c.text(&s.Kind)
	c.int64(&s.Line)
	c.int(&s.Column)
	c.int64(&s.Offset)
	c.int64(&s.Length)
	plain := s.Table == "" && s.Row == 0 && s.Record == 0 && s.Pointer == "" && s.Device == 0 && s.Index == 0 && s.Stack == "" && s.Quote == ""
	c.bool(&plain)
	if plain {
		return
	}
	c.text(&s.Table)
	c.int64(&s.Row)
	c.int64(&s.Record)
	c.text(&s.Pointer)
	c.int(&s.Device)
	c.int64(&s.Index)
	c.text(&s.Stack)
	c.text(&s.Quote)
}

func (c *coder) value(v *evidence.Value) {
	t := uint64(v.T)
	c.uint(&t)
	if t > uint64(evidence.Ints) {
		c.fail()
		return
	}
	switch v.T = evidence.Type(t); v.T {
	case evidence.Text:
		c.text(&v.S)
	case evidence.Int, evidence.Bool:
		c.int64(&v.I)
	case evidence.Float:
		c.float(&v.F)
	case evidence.Size:
		c.int64(&v.Lo)
		c.int64(&v.Hi)
	case evidence.Ints:
		each(c, &v.L, maxInts, c.int64)
	}
}

// each codes a list of at most most elements; a longer one does not decode.
func each[T any](c *coder, list *[]T, most int, one func(*T)) {
	n := c.count(len(*list))
	if c.reading && n > most {
		c.fail()
		return
	}
	if !c.reading {
		for i := range *list {
			one(&(*list)[i])
		}
		return
	}
	*list = nil
	for range n {
		if c.err != nil {
			return
		}
		var x T
		one(&x)
		*list = append(*list, x)
	}
}
