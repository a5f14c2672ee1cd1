package memsnap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/pickle"
)

// Limits of one snapshot. What goes beyond them is counted and told as damage. Below them
// memory is bounded by what was read: no opcode makes the machine keep more than
// 48 bytes for each byte that it and its argument take in the pickle.
const (
	maxEvents   = 1<<idBits - 1
	maxBlocks   = 1 << 26
	maxSegments = 1 << 24
	maxFrames   = 1 << 24
	maxStacks   = 1 << 25
	maxTexts    = 1 << 26
	maxText     = 16 << 20 // bytes of one string
	maxNotes    = 1 << 22
	maxPairs    = 1 << 20
	maxMarks    = 1 << 22
	maxOOMs     = 1 << 12
	maxTops     = 64
	maxSmall    = 1<<16 - 1 // indices of 16 bits: streams, pools
	maxDevices  = 1 << 10
	maxDepth    = 1000      // of open marks
	maxBoxes    = 1 << 20   // values in the memo that are no string or container
	slack       = 64 << 10  // frames in stacks beyond one for each byte read
	aliases     = 256 << 10 // blocks, and entries, beyond those of the file, for lists of them that segments or devices share
)

// over counts what went beyond the limits.
type over struct {
	events, blocks, segments, frames, stacks, notes, streams, pools, marks, devices, boxes, ooms, sharers int64
}

// An open mark.
type open struct {
	height int
	ate    bool // events above it have gone to their list before its end was read
}

// An oom is an entry of that action: where it ends in the pickle.
type oom struct {
	number uint32
	offset int64
}

// A machine runs the pickle of one snapshot.
type machine struct {
	sc    *pickle.Scanner
	stack []value
	marks []open
	plain bool
	calls int // height at which the only argument of a builder lies
	memo  memo
	at    int64 // behind the opcode that is being run

	texts      texts
	frames     []frame
	frameIndex table
	stacks     stacks
	runs       runs // by the references in a list of frames
	dicts      runs // by the bytes of a frame's dict
	runHints   hints
	dictHints  hints
	tree       tree        // of lists of such dicts
	frameCodes [][3]uint16 // by frame: what the memo has for it, its name and its file
	seed       maphash.Seed
	mixer      uint64

	vals   [keys]value
	round  [wPowers]int64
	powers uint32
	ids    []uint32

	foundry foundry

	pend   []pending
	events int
	traces []*trace
	spans  []span
	ooms   []oom

	blocks   blocks
	ranges   [][]blockRange
	pasts    []past
	segments []segment
	lists    [][]int32
	parts    []part
	boxes    []value

	notes      []noteKey
	noteIDs    map[noteKey]uint32
	lastNote   noteKey
	lastNoteID uint32

	streams      []uint64
	streamIDs    map[uint64]uint16
	lastStream   uint64
	lastStreamID uint16
	pools        [][2]int64
	poolIDs      map[[2]int64]uint16
	pairs        [][2]int64
	solos        []value
	pairIDs      map[[2]int64]uint32

	annotations []mark
	settings    []evidence.MemSettings
	roundups    [][16]int64
	tops        []top

	has    evidence.MemSections
	over   over
	strays int64 // items of lists of another sort than the list
	late   int64 // dicts filled on after they were complete
}

func newMachine(r io.Reader) *machine {
	seed := maphash.MakeSeed()
	m := &machine{
		sc: pickle.NewScanner(r, maxText), seed: seed, mixer: maphash.String(seed, "frames"),
		stack: make([]value, 0, 4096), noteIDs: map[noteKey]uint32{{}: 0}, notes: make([]noteKey, 1),
		streams: make([]uint64, 1), streamIDs: map[uint64]uint16{0: 0},
		pools: make([][2]int64, 1), poolIDs: map[[2]int64]uint16{{}: 0}, pairIDs: map[[2]int64]uint32{},
	}
	for _, w := range known {
		m.texts.id(seed, []byte(w))
	}
	m.stacks.id(m.mixer, nil)
	return m
}

var (
	errUnderflow = errors.New("the stack is empty")
	errNoMark    = errors.New("no MARK")
	errActs      = errors.New("would import, call or ask for something; only data is read")
	errMoved     = errors.New("events of a list are taken for something else")
	errTexts     = errors.New("more strings than the limit")
)

// run runs the pickle to its STOP.
func (m *machine) run() error {
	var t pickle.Token
	for {
		if !m.plain {
			if err := m.fast(); err != nil {
				return err
			}
		}
		if err := m.sc.Next(&t); err != nil {
			return err
		}
		m.at = t.End
		if t.Op == pickle.Stop {
			if len(m.stack) != 1 || len(m.marks) > 0 {
				return &pickle.Error{Offset: t.Offset, Op: t.Op, Reason: fmt.Sprintf("%d values on the stack", len(m.stack))}
			}
			m.ripen(&m.stack[0])
			return nil
		}
		if err := m.step(&t); err != nil {
			return &pickle.Error{Offset: t.Offset, Op: t.Op, Reason: err.Error()}
		}
	}
}

const (
	margin = 512      // bytes that must lie in the window for fast to go on
	runMin = 16 << 10 // bytes that should lie there where a stack begins
)

// fast runs opcodes straight from the window. It returns before one that step
// must run, and at the end of the input.
func (m *machine) fast() error {
	if err := m.sc.Buffer(margin); err != nil {
		return nil // Next meets it again, and knows where
	}
	w, i := m.sc.Window(), 0
	base := m.sc.Offset()
	for {
		if len(w)-i < margin {
			m.sc.Discard(i)
			if err := m.sc.Buffer(margin); err != nil {
				return nil
			}
			w, i, base = m.sc.Window(), 0, m.sc.Offset()
			if len(w) < margin {
				return nil
			}
		}
		var v value
		n := 1
		switch op := pickle.Op(w[i]); op {
		case pickle.BinGet:
			slot := uint32(w[i+1])
			if v = unpack(m.memo.get(slot), slot); v.tag == tUnset || v.tag == tBoxed {
				m.sc.Discard(i)
				return nil
			}
			n = 2
		case pickle.LongBinGet:
			slot := binary.LittleEndian.Uint32(w[i+1:])
			if v = unpack(m.memo.get(slot), slot); v.tag == tUnset || v.tag == tBoxed {
				m.sc.Discard(i)
				return nil
			}
			n = 5
		case pickle.BinInt1:
			v, n = value{n: uint64(w[i+1]), slot: noSlot, tag: tInt}, 2
		case pickle.BinInt2:
			v, n = value{n: uint64(binary.LittleEndian.Uint16(w[i+1:])), slot: noSlot, tag: tInt}, 3
		case pickle.BinInt:
			v, n = value{n: uint64(int64(int32(binary.LittleEndian.Uint32(w[i+1:])))), slot: noSlot, tag: tInt}, 5
		case pickle.Long1:
			k := int(w[i+1])
			if k > 8 {
				m.sc.Discard(i)
				return nil
			}
			v, n = value{n: long8(w[i+2:], k), slot: noSlot, tag: tInt}, 2+k
		case pickle.NewTrue, pickle.NewFals:
			v = value{n: uint64(pickle.NewFals - op), slot: noSlot, tag: tInt}
		case pickle.None:
			v = value{slot: noSlot, tag: tNone}
		case pickle.ShortBinUnicode:
			k := int(w[i+1])
			if len(m.texts.list) >= maxTexts {
				return m.fail(i, op, errTexts)
			}
			v, n = value{n: uint64(m.texts.id(m.seed, w[i+2:i+2+k])), slot: noSlot, tag: tText}, 2+k
		case pickle.EmptyDict:
			m.flush()
			if t := m.next(); t != nil {
				if len(w)-i < runMin {
					m.sc.Discard(i)
					w, i, base = m.ahead()
				}
				if k := m.entries(w[i:], base+int64(i), t); k > 0 {
					i += k
					continue
				}
			}
			if k := m.frameDicts(w[i:], base+int64(i)); k > 0 {
				i += k
				continue
			}
			v = value{slot: noSlot, tag: tDict}
		case pickle.EmptyList:
			v = value{slot: noSlot, tag: tList}
		case pickle.Memoize:
			if len(m.stack) == m.floor() || m.memo.n != m.memo.count || m.top1().tag <= tFloat {
				m.sc.Discard(i)
				return nil
			}
			t := m.top1()
			t.slot = m.memo.n
			m.memo.put(t.slot, pack(t.tag, t.n))
			i++
			continue
		case pickle.Mark:
			if len(m.marks) >= maxDepth {
				m.sc.Discard(i)
				return nil
			}
			i++
			if k := len(m.stack); k > m.floor() && (m.stack[k-1].tag == tDict || m.stack[k-1].tag == tList) {
				if len(w)-i < runMin {
					m.sc.Discard(i)
					w, i, base = m.ahead()
				}
				if m.stack[k-1].tag == tDict {
					i += m.dictRun(w[i:], base+int64(i))
					continue
				}
				m.at = base + int64(i)
				if id, n := m.frameRun(w[i:]); n > 0 {
					m.become(m.top1(), value{n: uint64(id), tag: tStack})
					i += n
					continue
				}
			}
			m.marks = append(m.marks, open{height: len(m.stack)})
			continue
		case pickle.SetItems:
			m.at = base + int64(i) + 1
			if err := m.closeMark(op); err != nil {
				return m.fail(i, op, err)
			}
			i++
			continue
		case pickle.Appends:
			m.at = base + int64(i) + 1
			if err := m.closeMark(op); err != nil {
				return m.fail(i, op, err)
			}
			i++
			continue
		default:
			m.sc.Discard(i)
			return nil
		}
		m.stack = append(m.stack, v)
		i += n
	}
}

// ahead reads until much lies in the window. A read error comes again where the bytes end that
// were there before it.
func (m *machine) ahead() (w []byte, i int, base int64) {
	_ = m.sc.Buffer(runMin)
	return m.sc.Window(), 0, m.sc.Offset()
}

// fail is the error of the opcode at i in the window, which is taken with what lies before it.
func (m *machine) fail(i int, op pickle.Op, err error) error {
	m.sc.Discard(i)
	at := m.sc.Offset()
	m.sc.Discard(min(1, len(m.sc.Window())))
	return &pickle.Error{Offset: at, Op: op, Reason: err.Error()}
}

// resolve is the stack that references to the memo make, if all are frames.
func (m *machine) resolve(raw []byte) (id uint32, ok bool) {
	m.ids = m.ids[:0]
	for len(raw) > 0 {
		var slot uint32
		if raw[0] == byte(pickle.BinGet) {
			slot, raw = uint32(raw[1]), raw[2:]
		} else {
			slot, raw = binary.LittleEndian.Uint32(raw[1:]), raw[5:]
		}
		v := unpack(m.memo.get(slot), slot)
		if v.tag != tFrame {
			return 0, false
		}
		m.ids = append(m.ids, uint32(v.n))
	}
	id = m.intern(m.ids)
	return id, id != 0
}

func (m *machine) floor() int { return m.floorAt(len(m.marks) - 1) }

// floorAt is where the values above mark k begin.
func (m *machine) floorAt(k int) int {
	if k < 0 {
		return 0
	}
	return m.marks[k].height
}

func (m *machine) top1() *value { return &m.stack[len(m.stack)-1] }

// flush hands an event that lies complete on the list it will be added to to that list, when
// the next one begins, so that a long list is never held as values.
func (m *machine) flush() {
	k := len(m.marks)
	if k == 0 {
		return
	}
	o := &m.marks[k-1]
	if o.height == 0 || len(m.stack) != o.height+1 || m.stack[o.height].tag != tEvent {
		return
	}
	l := &m.stack[o.height-1]
	if l.tag != tTrace && l.tag != tList {
		return
	}
	if m.extend(l, m.stack[o.height:]) == nil {
		m.stack = m.stack[:o.height]
		o.ate = true
	}
}

// closeMark runs APPENDS, SETITEMS and ADDITEMS.
func (m *machine) closeMark(op pickle.Op) error {
	k := len(m.marks) - 1
	if k < 0 {
		return errNoMark
	}
	o := m.marks[k]
	if floor := m.floorAt(k - 1); o.height <= floor {
		return errUnderflow
	}
	into := &m.stack[o.height-1]
	items := m.stack[o.height:]
	var err error
	switch {
	case op == pickle.Appends:
		err = m.extend(into, items)
	case o.ate:
		err = errMoved
	case op == pickle.SetItems:
		err = m.fill(into, items, false)
	}
	if err != nil {
		return err
	}
	m.marks = m.marks[:k]
	m.stack = m.stack[:o.height]
	return nil
}

// store puts v in the memo.
func (m *machine) store(slot uint32, v value) {
	w := pack(v.tag, v.n)
	switch v.tag {
	case tInt, tUint, tBeyond, tFloat:
		if len(m.boxes) >= maxBoxes {
			m.over.boxes++
			w = pack(tOther, 0)
			break
		}
		m.boxes = append(m.boxes, v)
		w = pack(tBoxed, uint64(len(m.boxes)-1))
	}
	switch m.memo.holds(slot) {
	case tFrame:
		m.runs.forget()
	case tText:
		m.dicts.forget()
		m.tree.forget()
		m.foundry.forget()
	case tPair:
		m.foundry.forget()
	}
	m.memo.put(slot, w)
}

// fetch is what the memo has in a slot.
func (m *machine) fetch(slot int64) (value, error) {
	if slot < 0 || slot > math.MaxUint32-1 {
		return value{}, fmt.Errorf("memo %d is empty", slot)
	}
	v := unpack(m.memo.get(uint32(slot)), uint32(slot))
	switch v.tag {
	case tUnset:
		return value{}, fmt.Errorf("memo %d is empty", slot)
	case tBoxed:
		v = m.boxes[v.n]
		v.slot = uint32(slot)
	}
	return v, nil
}
