package ranklog

import (
	"bytes"
	"math"
	"math/bits"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// megatronState is what the rule for omitted losses needs of the lines before.
type megatronState struct {
	hadLoss  bool
	told     bool
	last     int64 // iteration of the last line
	interval int64 // iterations between the last two lines
	skipped  int64 // cumulative
}

// iteration reads Megatron-LM's training line and that of its forks:
//
//	[time] iteration      120/  500000 | consumed samples:  30720 | … | lm loss: 2.345678E+00 | loss scale: 1.0 | grad norm: 1.234 | number of skipped iterations:   0 | number of nan iterations:   0 |
//
// A loss whose average is NaN has no field at all. It
// returns false where the text is no such line.
func (m *metrics) iteration(raw []byte) bool {
	at := m.iterationAt
	if at+len("iteration") > len(raw) || string(raw[at:at+len("iteration")]) != "iteration" || bytes.IndexByte(raw[:at], 'i') >= 0 {
		if at = bytes.Index(raw, []byte("iteration")); at < 0 {
			return false
		}
		m.iterationAt = at
	}
	i := skipSpaces(raw, at+len("iteration"))
	step, end := parseInteger(raw, i)
	if end == i {
		return false
	}
	i = skipSpaces(raw, end)
	if i >= len(raw) || raw[i] != '/' {
		return false
	}
	i = skipSpaces(raw, i+1)
	total, end := parseInteger(raw, i)
	bar := bytes.IndexByte(raw[end:], '|')
	if end == i || bar < 0 {
		return false
	}
	m.step = step
	m.count(srcMegatron, 0, step, total, math.NaN(), true)
	m.steps(total, at, end)
	st := m.lastMegatron
	if st == nil || m.lastMegOwner != m.owner || m.again {
		if st = m.megatron[m.rank]; st == nil || m.again {
			if len(m.megatron) >= maxTracks {
				return true
			}
			st = &megatronState{last: evidence.None}
			m.megatron[m.rank] = st
		}
		m.lastMegatron, m.lastMegOwner = st, m.owner
	}
	skipped, loss, grad := m.megatronFields(raw, end+bar+1)
	if st.last >= 0 && step > st.last {
		st.interval = step - st.last
	}
	st.last = step
	if skipped > 0 {
		st.skipped += skipped
	}
	if skipped >= 0 {
		m.addTo(&m.ofSkipped, float64(st.skipped), at, end)
	}
	m.settle()
	m.omitted(st, skipped, loss, notFinite(grad), at, end)
	return true
}

// A megatronField is the text before one value of a line, from the bar to the
// colon, and what the value is. The lines of a run have the same fields in the
// same order, so each field is first compared with that of the line before.
type megatronField struct {
	text fixedText
	use  megatronUse
	of   trackOf // of a value
}

type megatronUse uint8

const (
	useNothing megatronUse = iota
	useValue
	useMillis // a step time
	useSkipped
)

// maxMegatronFields bounds the fields that are remembered.
const maxMegatronFields = 64

// megatronFields adds the fields of a line from offset i on. skipped is -1 and
// grad 0 where the line has none; loss says that it has a loss field.
func (m *metrics) megatronFields(raw []byte, i int) (skipped int64, loss bool, grad float64) {
	skipped = -1
	m.here()
	for k := 0; i < len(raw); {
		if k == len(m.fields) {
			m.fields = append(m.fields, megatronField{})
		}
		f := &m.fields[k]
		end := -1 // of the field, where it is that of the line before
		if f.text.at(raw, i) && len(f.text.text) > 0 {
			if end = barOrColon(raw, i+len(f.text.text)); end < len(raw) && raw[end] == ':' {
				end = -1
			}
		}
		if end < 0 {
			n := bytes.IndexByte(raw[i:], '|')
			if n < 0 {
				n = len(raw) - i
			}
			colon := bytes.LastIndexByte(raw[i:i+n], ':')
			if colon < 2 {
				i += n + 1
				continue
			}
			end = i + n
			f.text.set(raw[i : i+colon+1])
			f.of.track = nil
			f.use, f.of.slot = m.megatronKey(bytes.TrimLeft(raw[i:i+colon], " "))
		}
		if k < maxMegatronFields {
			k++
		}
		at := i + len(f.text.text)
		if f.use != useNothing {
			at = skipSpaces(raw, at)
		}
		switch f.use {
		case useSkipped:
			skipped, _ = parseInteger(raw, at)
		case useMillis:
			if v, to := parseNumber(raw, at); to > at {
				m.addTo(&f.of, v/1e3, at, to)
			}
		case useValue:
			v, to := parseValue(raw, at)
			loss = loss || f.of.slot.id == idLoss
			if to == at {
				break
			}
			if f.of.slot.id == idGradNorm {
				grad = v
			}
			m.addTo(&f.of, v, at, to)
		}
		i = end + 1
	}
	return skipped, loss, grad
}

// megatronKey says what the value of a key is.
func (m *metrics) megatronKey(key []byte) (megatronUse, metricSlot) {
	s := metricSlot{src: srcMegatron, trust: evidence.Raw}
	switch string(key) {
	case "consumed samples", "global batch size", "throughput per GPU (TFLOP/s/GPU)", "number of nan iterations", "consumed tokens", "num zeros", "params norm":
		return useNothing, s
	case "lm loss", "loss", "lm-loss":
		s.id, s.trust = idLoss, evidence.Omitted
	case "grad norm":
		s.id = idGradNorm
	case "learning rate":
		s.id = idLR
	case "loss scale":
		s.id = idLossScale
	case "number of skipped iterations":
		return useSkipped, s
	case "elapsed time per iteration (ms)":
		s.id = idStepTime
		return useMillis, s
	case "actual seqlen":
		s.id = idSeqLen
	default:
		m.f.key = append(m.f.key[:0], key...)
		lowerASCII(m.f.key)
		if !lossLike(m.f.key) {
			return useNothing, s
		}
		id, ok := m.other(m.f.key)
		if !ok {
			return useNothing, s
		}
		s.id, s.trust = id, evidence.Omitted
	}
	return useValue, s
}

// omitted applies MEGATRON_LOSS_OMITTED: lines before had a loss and this one
// has none, although not every iteration of its window was skipped.
func (m *metrics) omitted(st *megatronState, skipped int64, loss, badGrad bool, from, to int) {
	if loss {
		st.hadLoss, st.told = true, false
		return
	}
	interval := max(st.interval, 1)
	if !st.hadLoss || st.told || skipped >= interval && !badGrad {
		return
	}
	st.told = true
	if m.events >= maxMetricEvents {
		return
	}
	m.events++
	who, stamp := m.identity()
	who.Rank = m.rank
	who.Launch = m.launch
	span := m.span(from, to)
	m.s.Event(evidence.Event{Kind: evidence.LossOmitted, Who: who, Stamp: stamp, Step: m.step, Text: printableText([]byte(span.Quote)), Span: span,
		Attrs: evidence.Attrs{"metric": evidence.TextOf("loss")}})
}

// barOrColon returns the offset of the first bar or colon at or behind i, or that
// of the end.
func barOrColon(b []byte, i int) int {
	const low, high = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(b); i += 8 {
		x := word(b, i)
		bar, colon := x^'|'*low, x^':'*low
		if found := ((bar-low)&^bar | (colon-low)&^colon) & high; found != 0 { // exact up to the first
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for i < len(b) && b[i] != '|' && b[i] != ':' {
		i++
	}
	return i
}

// skipSpaces returns the offset of the first byte at or behind i that is no space.
func skipSpaces(b []byte, i int) int {
	for i+8 <= len(b) {
		if x := word(b, i) ^ 0x2020202020202020; x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
		i += 8
	}
	for i < len(b) && b[i] == ' ' {
		i++
	}
	return i
}
