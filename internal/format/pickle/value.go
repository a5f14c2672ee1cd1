package pickle

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Kind is what a Value is.
type Kind uint8

const (
	KindNone   Kind = iota
	KindBool        // Int is 0 or 1
	KindInt         // Int
	KindBig         // Text has the decimal digits of an integer beyond 64 bits
	KindFloat       // Float
	KindString      // Text, UTF-8 with invalid bytes replaced
	KindBytes       // Text has the bytes
	KindList        // Items
	KindTuple       // Items
	KindSet         // Items; frozen or not
	KindDict        // Items are key, value, key, value
	// Kinds of the inert mode: what Python would have imported, called or asked for.
	KindGlobal // Text is "module name", or "extension N"
	KindCall   // Items: what is called, its arguments, then what was added: a Dict, a List, or a State
	KindState  // Items: the argument of BUILD
	KindPersID // Items: the id
	KindBuffer // a buffer outside the pickle
)

// A Value is one Python object. Values are shared where the pickle shares them and may
// contain themselves; who walks them bounds the walk.
type Value struct {
	Kind   Kind
	Offset int64 // of the opcode that made it
	End    int64 // behind the opcode that made it or last added to it
	Int    int64
	Text   string
	Items  []*Value
}

// Float returns the number of a float or an integer.
func (v *Value) Float() float64 {
	if v.Kind == KindFloat {
		return math.Float64frombits(uint64(v.Int))
	}
	return float64(v.Int)
}

// Get returns the value that a dict has under a string key, nil if there is none.
// As in Python, the last of several counts.
func (v *Value) Get(key string) *Value {
	if v == nil || v.Kind != KindDict {
		return nil
	}
	for i := len(v.Items) - 2; i >= 0; i -= 2 {
		if k := v.Items[i]; k.Kind == KindString && k.Text == key {
			return v.Items[i+1]
		}
	}
	return nil
}

// A Mode says what becomes of opcodes that act.
type Mode uint8

const (
	Data  Mode = iota // they are errors, save for calls of a ListBuilder, which are left out
	Inert             // they become KindGlobal, KindCall, KindPersID and the like
)

// Options bound a reading. Zeros mean the stated defaults.
type Options struct {
	Mode  Mode
	Nodes int   // values made; 2 million
	Bytes int64 // of all strings and numbers together; 256 MiB
	Depth int   // of open marks; 1000
}

// Read reads one pickle from r, to its STOP, and returns its value. With an error, always an
// *Error, the value is what had been built by then with the open containers closed,
// nil if nothing had: of a pickle that is cut, its readable part.
func Read(r io.Reader, o Options) (*Value, error) {
	if o.Nodes <= 0 {
		o.Nodes = 2 << 20
	}
	if o.Bytes <= 0 {
		o.Bytes = 256 << 20
	}
	if o.Depth <= 0 {
		o.Depth = 1000
	}
	b := &builder{Options: o, sparse: map[int64]*Value{}, pushes: 8 * o.Nodes}
	s := NewScanner(r, o.Bytes)
	var t Token
	for {
		if err := s.Next(&t); err != nil {
			return b.salvage(), err
		}
		if t.Op == Stop {
			if len(b.stack) != 1 || len(b.marks) > 0 {
				err := &Error{t.Offset, t.Op, fmt.Sprintf("%d values on the stack", len(b.stack)), nil}
				return b.salvage(), err
			}
			return b.stack[0], nil
		}
		if err := b.step(&t); err != nil {
			return b.salvage(), &Error{t.Offset, t.Op, err.Error(), nil}
		}
	}
}

// A builder is the stack machine.
type builder struct {
	Options
	stack  []*Value
	marks  []int    // heights of the stack
	memo   []*Value // dense part
	sparse map[int64]*Value
	pushes int // left
	text   int64
}

var (
	errUnderflow = errors.New("the stack is empty")
	errNodes     = errors.New("more values than the limit")
	errBytes     = errors.New("more bytes of text than the limit")
)

func (b *builder) push(v *Value) error {
	if b.pushes--; b.pushes < 0 {
		return errNodes
	}
	b.stack = append(b.stack, v)
	return nil
}

func (b *builder) add(t *Token, v Value) error {
	if b.Nodes--; b.Nodes < 0 {
		return errNodes
	}
	if b.text += int64(len(v.Text)); b.text > b.Bytes {
		return errBytes
	}
	v.Offset, v.End = t.Offset, t.End
	return b.push(&v)
}

func (b *builder) floor() int {
	if n := len(b.marks); n > 0 {
		return b.marks[n-1]
	}
	return 0
}

func (b *builder) pop(n int) ([]*Value, error) {
	at := len(b.stack) - n
	if at < b.floor() {
		return nil, errUnderflow
	}
	out := b.stack[at:]
	b.stack = b.stack[:at]
	return out, nil
}

// popMark returns a copy of what lies above the last mark.
func (b *builder) popMark() ([]*Value, error) {
	n := len(b.marks)
	if n == 0 {
		return nil, errors.New("no MARK")
	}
	at := b.marks[n-1]
	b.marks = b.marks[:n-1]
	out := append([]*Value(nil), b.stack[at:]...)
	b.stack = b.stack[:at]
	return out, nil
}

func (b *builder) top() (*Value, error) {
	if len(b.stack) <= b.floor() {
		return nil, errUnderflow
	}
	return b.stack[len(b.stack)-1], nil
}

// step runs one opcode.
func (b *builder) step(t *Token) error {
	if t.Op.Acts() {
		if b.Mode == Data {
			return b.harmless(t)
		}
		return b.act(t)
	}
	switch t.Op {
	case Proto:
		if t.Int > 5 {
			return fmt.Errorf("protocol %d is unknown", t.Int)
		}
		return nil
	case Frame:
		return nil
	case Mark:
		if len(b.marks) >= b.Depth {
			return errors.New("nested deeper than the limit")
		}
		b.marks = append(b.marks, len(b.stack))
		return nil
	case Pop:
		if n := len(b.marks); n > 0 && b.marks[n-1] == len(b.stack) { // as Python does
			b.marks = b.marks[:n-1]
			return nil
		}
		_, err := b.pop(1)
		return err
	case PopMark:
		_, err := b.popMark()
		return err
	case Dup:
		v, err := b.top()
		if err != nil {
			return err
		}
		return b.push(v)
	case Put, BinPut, LongBinPut, Memoize, Get, BinGet, LongBinGet:
		return b.remember(t)
	case Append, Appends, SetItem, SetItems, AddItems:
		return b.extend(t)
	case EmptyList, EmptyTuple, EmptyDict, EmptySet, List, Tuple, Tuple1, Tuple2, Tuple3, Dict, FrozenSet:
		return b.container(t)
	}
	return b.scalar(t)
}

// remember stores in the memo, or fetches from it.
func (b *builder) remember(t *Token) error {
	n := t.Int
	switch t.Op {
	case Put, Get:
		var err error
		if n, err = strconv.ParseInt(string(t.Data), 10, 64); err != nil || n < 0 {
			return errors.New("no memo number")
		}
	case Memoize:
		n = int64(len(b.memo) + len(b.sparse))
	}
	switch t.Op {
	case Get, BinGet, LongBinGet:
		v := b.sparse[n]
		if n < int64(len(b.memo)) {
			v = b.memo[n]
		}
		if v == nil {
			return fmt.Errorf("memo %d is empty", n)
		}
		return b.push(v)
	}
	v, err := b.top()
	if err != nil {
		return err
	}
	switch {
	case n < int64(len(b.memo)):
		b.memo[n] = v
		return nil
	case len(b.memo)+len(b.sparse) >= 4*b.pushes+1<<16:
		return errNodes
	case n == int64(len(b.memo)):
		b.memo = append(b.memo, v)
		delete(b.sparse, n)
	default:
		b.sparse[n] = v
	}
	return nil
}

// container makes a list, tuple, dict or set.
func (b *builder) container(t *Token) error {
	var v Value
	var err error
	switch t.Op {
	case EmptyList:
		v.Kind = KindList
	case EmptyTuple:
		v.Kind = KindTuple
	case EmptyDict:
		v.Kind = KindDict
	case EmptySet:
		v.Kind = KindSet
	case Tuple1, Tuple2, Tuple3:
		v.Kind = KindTuple
		if v.Items, err = b.pop(int(t.Op-Tuple1) + 1); err == nil {
			v.Items = append([]*Value(nil), v.Items...)
		}
	case List, Tuple, Dict, FrozenSet:
		v.Kind = map[Op]Kind{List: KindList, Tuple: KindTuple, Dict: KindDict, FrozenSet: KindSet}[t.Op]
		v.Items, err = b.popMark()
	}
	if err == nil && v.Kind == KindDict && len(v.Items)%2 != 0 {
		err = errors.New("a key without a value")
	}
	if err != nil {
		return err
	}
	return b.add(t, v)
}

// extend adds items to the container below them.
func (b *builder) extend(t *Token) error {
	var items []*Value
	var err error
	switch t.Op {
	case Append:
		items, err = b.pop(1)
	case SetItem:
		items, err = b.pop(2)
	default:
		items, err = b.popMark()
	}
	if err != nil {
		return err
	}
	v, err := b.top()
	if err != nil {
		return err
	}
	pairs := t.Op == SetItem || t.Op == SetItems
	if pairs && len(items)%2 != 0 {
		return errors.New("a key without a value")
	}
	switch {
	case pairs && v.Kind == KindDict, t.Op == AddItems && v.Kind == KindSet, !pairs && t.Op != AddItems && v.Kind == KindList:
		v.Items = append(v.Items, items...)
		v.End = t.End
		return nil
	case v.Kind == KindCall: // an OrderedDict, or a subclass of list
		into := &Value{Kind: KindList, Offset: t.Offset}
		if pairs {
			into.Kind = KindDict
		}
		into.Items = append(into.Items, items...)
		v.Items = append(v.Items, into)
		return nil
	}
	return errors.New("the value below is no such container")
}

// scalar pushes a number, a string, None or a truth value.
func (b *builder) scalar(t *Token) error {
	switch t.Op {
	case None:
		return b.add(t, Value{})
	case NewTrue, NewFals:
		v := Value{Kind: KindBool}
		if t.Op == NewTrue {
			v.Int = 1
		}
		return b.add(t, v)
	case BinInt, BinInt1, BinInt2:
		return b.add(t, Value{Kind: KindInt, Int: t.Int})
	case Long1, Long4:
		if t.Big {
			return b.big(t)
		}
		return b.add(t, Value{Kind: KindInt, Int: t.Int})
	case BinFloat:
		return b.add(t, Value{Kind: KindFloat, Int: int64(math.Float64bits(t.Float))})
	case BinUnicode, ShortBinUnicode, BinUnicode8, BinString, ShortBinString:
		return b.add(t, Value{Kind: KindString, Text: valid(string(t.Data))})
	case BinBytes, ShortBinBytes, BinBytes8, ByteArray8:
		return b.add(t, Value{Kind: KindBytes, Text: string(t.Data)})
	}
	v, err := fromLine(t)
	if err != nil {
		return err
	}
	return b.add(t, v)
}

func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// maxDigits bounds the bytes of an integer that is turned into digits, which
// takes more than linear time.
const maxDigits = 1 << 12

// big pushes an integer of more than 8 bytes.
func (b *builder) big(t *Token) error {
	if len(t.Data) > maxDigits {
		return fmt.Errorf("an integer of %d bytes", len(t.Data))
	}
	be := make([]byte, len(t.Data))
	for i, c := range t.Data {
		be[len(be)-1-i] = c
	}
	n := new(big.Int).SetBytes(be)
	if be[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(be))))
	}
	if n.IsInt64() {
		return b.add(t, Value{Kind: KindInt, Int: n.Int64()})
	}
	return b.add(t, Value{Kind: KindBig, Text: n.String()})
}

// fromLine reads the argument of a text opcode.
func fromLine(t *Token) (Value, error) {
	s := string(t.Data)
	switch t.Op {
	case IntText, LongText:
		if t.Op == IntText && (s == "00" || s == "01") {
			return Value{Kind: KindBool, Int: int64(s[1] - '0')}, nil
		}
		s = strings.TrimSuffix(strings.TrimSpace(s), "L")
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return Value{Kind: KindInt, Int: n}, nil
		}
		if len(s) > maxDigits {
			return Value{}, errors.New("an integer of too many digits")
		}
		if n, ok := new(big.Int).SetString(s, 10); ok {
			return Value{Kind: KindBig, Text: n.String()}, nil
		}
		return Value{}, errors.New("no integer")
	case FloatText:
		f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return Value{}, errors.New("no number")
		}
		return Value{Kind: KindFloat, Int: int64(math.Float64bits(f))}, nil
	case StringText:
		if len(s) < 2 || s[0] != s[len(s)-1] || s[0] != '\'' && s[0] != '"' {
			return Value{}, errors.New("no quoted string")
		}
		return Value{Kind: KindString, Text: valid(unescape(s[1:len(s)-1], true))}, nil
	case UnicodeText:
		return Value{Kind: KindString, Text: valid(unescape(latin(s), false))}, nil
	}
	return Value{}, errors.New("not an opcode of data")
}

// latin reads bytes as Latin-1.
func latin(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		b.WriteRune(rune(s[i]))
	}
	return b.String()
}

// unescape resolves backslashes: those of a Python literal, or only \u and \U, as in
// raw-unicode-escape.
func unescape(s string, literal bool) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		if digits := map[byte]int{'u': 4, 'U': 8}[s[i+1]]; digits > 0 && !literal {
			if r, ok := hex(s[i+2:], digits); ok {
				b.WriteRune(r)
				i += 1 + digits
				continue
			}
		}
		if !literal {
			b.WriteByte(s[i])
			continue
		}
		i++
		if s[i] == 'x' {
			if r, ok := hex(s[i+1:], 2); ok {
				b.WriteByte(byte(r))
				i += 2
				continue
			}
		}
		if at := strings.IndexByte(`abfnrtv\'"`, s[i]); at >= 0 {
			b.WriteByte("\a\b\f\n\r\t\v\\'\""[at])
			continue
		}
		b.WriteByte('\\')
		b.WriteByte(s[i])
	}
	return b.String()
}

func hex(s string, digits int) (rune, bool) {
	if len(s) < digits {
		return 0, false
	}
	n, err := strconv.ParseUint(s[:digits], 16, 32)
	return rune(n), err == nil && n <= utf8.MaxRune
}

var errActs = errors.New("would import, call or ask for something; only data is read")

// harmless runs the opcodes that act, in data mode: a ListBuilder is a node until
// it is called, and its argument takes the place of the call.
func (b *builder) harmless(t *Token) error {
	switch {
	case t.Op == Global && ListBuilder(t.Data):
		return b.add(t, Value{Kind: KindGlobal, Text: global(t.Data)})
	case t.Op == Reduce:
		args, err := b.pop(2)
		if err != nil {
			return err
		}
		if call, of := args[0], args[1]; call.Kind == KindGlobal && of.Kind == KindTuple && len(of.Items) == 1 {
			return b.push(of.Items[0])
		}
	}
	return errActs
}

// act makes the inert node of an opcode that acts.
func (b *builder) act(t *Token) error {
	node := Value{}
	var args []*Value
	var err error
	switch t.Op {
	case Global:
		node = Value{Kind: KindGlobal, Text: global(t.Data)}
	case Ext1, Ext2, Ext4:
		node = Value{Kind: KindGlobal, Text: fmt.Sprintf("extension %d", t.Int)}
	case StackGlobal:
		if args, err = b.pop(2); err == nil {
			node = Value{Kind: KindGlobal, Text: args[0].Text + " " + args[1].Text}
		}
	case PersID:
		node = Value{Kind: KindPersID, Items: []*Value{{Kind: KindString, Offset: t.Offset, Text: valid(string(t.Data))}}}
	case BinPersID:
		args, err = b.pop(1)
		node = Value{Kind: KindPersID, Items: append([]*Value(nil), args...)}
	case NextBuffer:
		node = Value{Kind: KindBuffer}
	case ReadonlyBuffer:
		return nil
	case Reduce, NewObj:
		args, err = b.pop(2)
		node = Value{Kind: KindCall, Items: append([]*Value(nil), args...)}
	case NewObjEx:
		args, err = b.pop(3)
		node = Value{Kind: KindCall, Items: append([]*Value(nil), args...)}
	case Inst, Obj:
		if args, err = b.popMark(); err != nil {
			break
		}
		callee := &Value{Kind: KindGlobal, Offset: t.Offset}
		if t.Op == Inst {
			callee.Text = global(t.Data)
		} else if len(args) > 0 {
			callee, args = args[0], args[1:]
		}
		node = Value{Kind: KindCall, Items: []*Value{callee, {Kind: KindTuple, Offset: t.Offset, Items: args}}}
	case Build:
		return b.build(t)
	}
	if err != nil {
		return err
	}
	return b.add(t, node)
}

func global(lines []byte) string {
	return valid(strings.ReplaceAll(strings.ReplaceAll(string(lines), "\r", ""), "\n", " "))
}

// build adds the argument of BUILD to the object below it.
func (b *builder) build(t *Token) error {
	args, err := b.pop(1)
	if err != nil {
		return err
	}
	v, err := b.top()
	if err != nil {
		return err
	}
	if v.Kind != KindCall {
		return errors.New("the value below is no object")
	}
	v.Items = append(v.Items, &Value{Kind: KindState, Offset: t.Offset, Items: append([]*Value(nil), args...)})
	return nil
}

// salvage closes what is open and returns the bottom of the stack.
func (b *builder) salvage() *Value {
	for len(b.marks) > 0 {
		items, _ := b.popMark()
		b.close(items)
	}
	if len(b.stack) > 1 {
		rest := append([]*Value(nil), b.stack[1:]...)
		b.stack = b.stack[:1]
		b.close(rest)
	}
	if len(b.stack) == 0 {
		return nil
	}
	return b.stack[0]
}

// close adds to the container on top what would have been added to it. What lies
// in a tuple that is not finished is lost.
func (b *builder) close(items []*Value) {
	if len(b.stack) == 0 {
		b.stack = append(b.stack, items...)
		if len(b.stack) > 1 {
			b.stack = b.stack[:1]
		}
		return
	}
	v := b.stack[len(b.stack)-1]
	switch v.Kind {
	case KindDict:
		v.Items = append(v.Items, items[:len(items)/2*2]...)
	case KindList, KindSet:
		v.Items = append(v.Items, items...)
	}
}
