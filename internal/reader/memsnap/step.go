package memsnap

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/format/pickle"
)

// step runs one opcode, any.
func (m *machine) step(t *pickle.Token) error {
	switch t.Op {
	case pickle.Proto:
		if t.Int > 5 {
			return fmt.Errorf("protocol %d is unknown", t.Int)
		}
		return nil
	case pickle.Frame:
		return nil
	case pickle.Mark:
		if len(m.marks) >= maxDepth {
			return errors.New("nested deeper than the limit")
		}
		m.marks = append(m.marks, open{height: len(m.stack)})
		return nil
	case pickle.Appends, pickle.SetItems, pickle.AddItems:
		return m.closeMark(t.Op)
	case pickle.Append, pickle.SetItem:
		return m.addOne(t.Op)
	case pickle.Put, pickle.BinPut, pickle.LongBinPut, pickle.Memoize:
		return m.put(t)
	case pickle.Get, pickle.BinGet, pickle.LongBinGet:
		n, err := slotOf(t)
		if err != nil {
			return err
		}
		v, err := m.fetch(n)
		if err != nil {
			return err
		}
		m.stack = append(m.stack, v)
		return nil
	case pickle.Pop, pickle.PopMark, pickle.Dup:
		return m.shuffle(t.Op)
	case pickle.EmptyDict:
		m.flush()
		m.push(value{tag: tDict})
		return nil
	case pickle.EmptyList:
		m.push(value{tag: tList})
		return nil
	case pickle.EmptyTuple, pickle.EmptySet:
		m.push(value{tag: tOther})
		return nil
	case pickle.Tuple, pickle.Tuple1, pickle.Tuple2, pickle.Tuple3, pickle.List, pickle.Dict, pickle.FrozenSet:
		return m.gather(t.Op)
	}
	if t.Op.Acts() {
		return m.act(t)
	}
	return m.scalar(t)
}

func (m *machine) push(v value) {
	v.slot = noSlot
	m.stack = append(m.stack, v)
}

// pop takes n values that lie above the last mark.
func (m *machine) pop(n int) ([]value, error) {
	at := len(m.stack) - n
	if at < m.floor() {
		if k := len(m.marks); k > 0 && m.marks[k-1].ate {
			return nil, errMoved
		}
		return nil, errUnderflow
	}
	out := m.stack[at:]
	m.stack = m.stack[:at]
	return out, nil
}

// popMark takes what lies above the last mark, and the mark.
func (m *machine) popMark() ([]value, error) {
	k := len(m.marks) - 1
	if k < 0 {
		return nil, errNoMark
	}
	o := m.marks[k]
	if o.ate {
		return nil, errMoved
	}
	m.marks = m.marks[:k]
	out := m.stack[o.height:]
	m.stack = m.stack[:o.height]
	return out, nil
}

// addOne runs APPEND and SETITEM.
func (m *machine) addOne(op pickle.Op) error {
	n := 1
	if op == pickle.SetItem {
		n = 2
	}
	if len(m.stack)-n <= m.floor() {
		return errUnderflow
	}
	items, err := m.pop(n)
	if err != nil {
		return err
	}
	if op == pickle.SetItem {
		return m.fill(m.top1(), items, true)
	}
	return m.extend(m.top1(), items)
}

// slotOf is the memo number that an opcode names.
func slotOf(t *pickle.Token) (int64, error) {
	n := t.Int
	if t.Op == pickle.Put || t.Op == pickle.Get {
		var err error
		if n, err = strconv.ParseInt(string(t.Data), 10, 64); err != nil {
			n = -1
		}
	}
	if n < 0 {
		return 0, errors.New("no memo number")
	}
	return n, nil
}

// put stores the top in the memo.
func (m *machine) put(t *pickle.Token) error {
	if len(m.stack) == m.floor() {
		return errUnderflow
	}
	n := int64(m.memo.count)
	if t.Op != pickle.Memoize {
		var err error
		if n, err = slotOf(t); err != nil {
			return err
		}
	}
	if n >= math.MaxUint32 {
		return errors.New("a memo number over the limit")
	}
	v := m.top1()
	m.store(uint32(n), *v)
	v.slot = uint32(n)
	return nil
}

// shuffle runs POP, POP_MARK and DUP.
func (m *machine) shuffle(op pickle.Op) error {
	switch op {
	case pickle.Dup:
		if len(m.stack) == m.floor() {
			return errUnderflow
		}
		m.stack = append(m.stack, *m.top1())
		return nil
	case pickle.Pop:
		if k := len(m.marks); k == 0 || m.marks[k-1].height < len(m.stack) {
			_, err := m.pop(1)
			return err
		}
	}
	_, err := m.popMark()
	return err
}

// gather makes a tuple, list, dict or set of what lies on the stack.
func (m *machine) gather(op pickle.Op) error {
	var items []value
	var err error
	switch op {
	case pickle.Tuple1, pickle.Tuple2, pickle.Tuple3:
		items, err = m.pop(int(op-pickle.Tuple1) + 1)
	default:
		items, err = m.popMark()
	}
	if err != nil {
		return err
	}
	m.ripenAll(items)
	below := len(m.stack)
	switch {
	case op == pickle.Dict, op == pickle.List:
		v := value{slot: noSlot, tag: tList}
		if op == pickle.List {
			err = m.extend(&v, items)
		} else if v.tag = tDict; len(items) > 0 {
			err = m.fill(&v, items, true)
		}
		m.stack = append(m.stack, v)
		return err
	case op == pickle.FrozenSet:
	case len(items) == 1 && below > 0 && m.stack[below-1].tag == tBuilder:
		m.stack = append(m.stack, items[0])
		m.calls = below
		return nil
	case len(items) == 2 && isInt(items[0]) && isInt(items[1]):
		v := m.pair(items[0], items[1])
		m.push(v)
		return nil
	}
	m.push(value{tag: tOther})
	return nil
}

func isInt(v value) bool {
	return v.tag == tInt || v.tag == tUint || v.tag == tFloat || v.tag == tBeyond
}

// act runs the opcodes that act, which are refused, save for the builders of lists.
func (m *machine) act(t *pickle.Token) error {
	switch {
	case t.Op == pickle.Global && pickle.ListBuilder(t.Data):
		m.push(value{tag: tBuilder})
		return nil
	case t.Op == pickle.Reduce && m.calls > 0 && len(m.stack) == m.calls+1 && m.stack[m.calls-1].tag == tBuilder && m.calls-1 >= m.floor():
		m.stack[m.calls-1] = m.stack[m.calls]
		m.stack = m.stack[:m.calls]
		m.calls = 0
		return nil
	}
	return errActs
}

// scalar pushes a number, a string, None or bytes.
func (m *machine) scalar(t *pickle.Token) error {
	switch t.Op {
	case pickle.None:
		m.push(value{tag: tNone})
	case pickle.NewTrue, pickle.NewFals:
		m.push(value{tag: tInt, n: uint64(pickle.NewFals - t.Op)})
	case pickle.BinInt, pickle.BinInt1, pickle.BinInt2:
		m.push(value{tag: tInt, n: uint64(t.Int)})
	case pickle.Long1, pickle.Long4:
		m.push(long(t))
	case pickle.BinFloat:
		m.push(value{tag: tFloat, n: math.Float64bits(t.Float)})
	case pickle.BinUnicode, pickle.ShortBinUnicode, pickle.BinUnicode8, pickle.BinString, pickle.ShortBinString:
		return m.string(t.Data)
	case pickle.BinBytes, pickle.ShortBinBytes, pickle.BinBytes8, pickle.ByteArray8:
		m.push(value{tag: tOther})
	case pickle.IntText, pickle.LongText:
		return m.line(t)
	case pickle.FloatText:
		f, err := strconv.ParseFloat(strings.TrimSpace(string(t.Data)), 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return errors.New("no number")
		}
		m.push(value{tag: tFloat, n: math.Float64bits(f)})
	case pickle.StringText, pickle.UnicodeText:
		return m.string(t.Data)
	default:
		return errors.New("not an opcode of data")
	}
	return nil
}

func (m *machine) string(b []byte) error {
	if len(m.texts.list) >= maxTexts {
		return errTexts
	}
	m.push(value{tag: tText, n: uint64(m.texts.id(m.seed, b))})
	return nil
}

// long reads an integer of any length.
func long(t *pickle.Token) value {
	if !t.Big {
		return value{tag: tInt, n: uint64(t.Int)}
	}
	return big(t.Data)
}

// big is an integer of more than 8 bytes.
func big(b []byte) value {
	fill := byte(0)
	if b[len(b)-1]&0x80 != 0 {
		fill = 0xff
	}
	for _, c := range b[8:] {
		if c != fill {
			return value{tag: tBeyond, n: uint64(1 &^ fill)}
		}
	}
	n, _ := pickle.Long(b[:8])
	switch {
	case fill == 0 && n < 0:
		return value{tag: tUint, n: uint64(n)}
	case fill != 0 && n >= 0:
		return value{tag: tBeyond}
	}
	return value{tag: tInt, n: uint64(n)}
}

// line reads an integer written with digits.
func (m *machine) line(t *pickle.Token) error {
	s := strings.TrimSuffix(strings.TrimSpace(string(t.Data)), "L")
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err == nil:
		m.push(value{tag: tInt, n: uint64(n)})
		return nil
	case !errors.Is(err, strconv.ErrRange):
		return errors.New("no integer")
	}
	if u, err := strconv.ParseUint(s, 10, 64); err == nil {
		m.push(value{tag: tUint, n: u})
		return nil
	}
	v := value{tag: tBeyond, n: 1}
	if s[0] == '-' {
		v.n = 0
	}
	m.push(v)
	return nil
}
