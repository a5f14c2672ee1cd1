package ranklog

import (
	"bytes"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// barState follows the bars of one launch to give the lines that carry no step
// of their own (Hugging Face's dicts) the step of the bar before them. The bar
// of the training loop is the one without a description that stood before the
// first training dict; bars with another total are evaluations and the like.
type barState struct {
	n, total   int64 // last bar without a description
	have       bool
	main       int64 // total of the training loop's bar, 0 unknown
	mainN      int64
	used       int64 // step given to the last training dict
	fresh      bool  // the main bar was seen since the last training dict
	mismatches int   // training dicts in a row that followed only other bars
}

// see takes note of a bar without a description.
func (s *barState) see(n, total int64) {
	s.n, s.total, s.have = n, total, true
	if total == s.main {
		s.mainN, s.fresh = n, true
	}
}

// mainStep returns the step of the training bar at a training dict. A bar that
// stands at 0, or where it stood at the dict before, was not drawn in time: then
// the step is None.
func (s *barState) mainStep() (n, total int64, ok bool) {
	switch {
	case !s.have:
		return 0, 0, false
	case s.main == 0:
		s.main, s.mainN = s.total, s.n
	case s.fresh || s.total == s.main:
		s.mismatches = 0
	default:
		if s.mismatches++; s.mismatches >= 2 {
			s.main, s.mainN, s.mismatches = s.total, s.n, 0
		}
	}
	s.fresh = false
	n = s.mainN
	if n == 0 || n == s.used {
		return evidence.None, s.main, true
	}
	s.used = n
	return n, s.main, true
}

// lastMain returns the step of the training bar, or None before it is known.
func (s *barState) lastMain() int64 {
	if s.main == 0 {
		return evidence.None
	}
	return s.mainN
}

// A barDesc is the description of the bar before and what it means: bars repeat.
type barDesc struct {
	known bool
	text  []byte
	kind  int
	epoch int64
}

// A barLine is one frame of a tqdm bar.
type barLine struct {
	desc, descTo int // description, equal when there is none
	n, total     int64
	exact        bool // n and total were printed in full
	post, postTo int  // postfix, equal when there is none
}

// bars reads the tqdm bars of a line.
func (m *metrics) bars(raw []byte) {
	m.eachFrame(raw, func(from, to int) { m.barFrame(raw, from, to) })
}

func (m *metrics) barFrame(raw []byte, from, to int) {
	m.frame, m.frameTo = from, to
	b, ok := parseBar(raw, from, to)
	if !ok {
		m.pairs(raw, from, to)
		return
	}
	if len(m.yolo) > 0 && m.yoloRow(raw, b) {
		return
	}
	if desc := raw[b.desc:b.descTo]; !m.desc.known || !bytes.Equal(desc, m.desc.text) {
		m.desc.known, m.desc.text = true, append(m.desc.text[:0], desc[:min(len(desc), 200)]...)
		m.desc.kind, m.desc.epoch = describeBar(desc)
	}
	kind, epoch := m.desc.kind, m.desc.epoch
	step := int64(evidence.None)
	switch {
	case !b.exact:
	case kind == barPlain:
		m.bar.see(b.n, b.total)
		if b.total == m.bar.main {
			step = b.n
		}
	case kind == barSteps:
		step = b.n
	case kind == barEpoch:
		step = m.epochStep(epoch, b.n, b.total)
	}
	m.step = step
	if b.post == b.postTo {
		return
	}
	m.f.reset()
	m.f.bar, m.f.src, m.f.eval = true, srcTqdm, kind == barEval
	m.f.step, m.f.stepRank = step, 0
	if kind == barPlain && b.exact && step < 0 {
		m.f.step = b.n
	}
	m.lex(raw, b.post, b.postTo)
	if kind == barSteps && m.f.have(idLoss) {
		m.step = m.f.step
		m.count(srcTqdm, 0, b.n, b.total, notANumber, true)
		m.steps(b.total, b.desc, b.postTo)
	}
	m.flush(raw)
}

// epochStep turns a batch of an epoch into a batch of the run.
func (m *metrics) epochStep(epoch, n, total int64) int64 {
	if epoch < 0 || total <= 0 || epoch > 1<<31 || total > 1<<31 {
		return evidence.None
	}
	m.epochSeen = true
	if epoch == 0 {
		m.epochZero = true
	}
	if !m.epochZero {
		epoch--
	}
	return epoch*total + n
}

// parseBar finds "DESC:  45%|████▌     | 450/1000 [01:23<01:41,  5.42it/s, k=v]"
// in raw[from:to]. ok is false for other shapes, among them bars without a total.
func parseBar(raw []byte, from, to int) (b barLine, ok bool) {
	f := raw[:to]
	pct := bytes.Index(f[from:], []byte("%|"))
	if pct < 0 {
		return b, false
	}
	pct += from
	i := pct
	for i > from && f[i-1]-'0' <= 9 {
		i--
	}
	b.desc, b.descTo = from, i
	for b.descTo > from && (f[b.descTo-1] == ' ' || f[b.descTo-1] == ':') {
		b.descTo--
	}
	bar := bytes.IndexByte(f[pct+2:], '|')
	if bar < 0 {
		return b, false
	}
	i = skipSpaces(f, pct+2+bar+1)
	var exactN, exactT bool
	b.n, i, exactN = barCount(f, i)
	if i >= to || f[i] != '/' {
		return b, false
	}
	b.total, i, exactT = barCount(f, i+1)
	b.exact = exactN && exactT
	i = skipSpaces(f, i)
	if i >= to || f[i] != '[' {
		return b, false
	}
	end := bytes.IndexByte(f[i:], ']')
	if end < 0 {
		end = to - i
	}
	end += i
	if lt := bytes.IndexByte(f[i:end], '<'); lt >= 0 {
		i += lt
	}
	// elapsed<eta, rate, postfix: an eta may hold a comma of its own ("1 day, 2:03:04").
	for i < end {
		comma := bytes.IndexByte(f[i:end], ',')
		if comma < 0 {
			break
		}
		i += comma + 1
		next := bytes.IndexByte(f[i:end], ',')
		part := f[i:end]
		if next >= 0 {
			part = f[i : i+next]
		}
		if bytes.Contains(part, []byte("it/s")) || bytes.Contains(part, []byte("s/it")) {
			if next >= 0 {
				b.post, b.postTo = i+next+1, end
				// A postfix with a list closes at the last bracket.
				if last := bytes.LastIndexByte(f[end:], ']'); last > 0 && bytes.IndexByte(f[b.post:end], '[') >= 0 {
					b.postTo = end + last
				}
			}
			break
		}
	}
	return b, true
}

// barCount reads a bar's counter; exact is false for 3.2k and the like.
func barCount(b []byte, i int) (n int64, end int, exact bool) {
	v, end := parseNumber(b, i)
	if end == i {
		return 0, i, false
	}
	n, exact = asCount(v)
	if end < len(b) && (b[end] == 'k' || b[end] == 'M' || b[end] == 'G') {
		return n, end + 1, false
	}
	return n, end, exact
}

const (
	barOther = iota // loading, mapping, downloading
	barPlain        // no description
	barSteps        // the steps of the run
	barEpoch        // the batches of an epoch
	barEval
)

// describeBar says what a bar with this description counts, and of which epoch.
func describeBar(desc []byte) (kind int, epoch int64) {
	desc = bytes.TrimSpace(desc)
	if len(desc) == 0 {
		return barPlain, evidence.None
	}
	var buf [80]byte
	d := append(buf[:0], desc[max(0, len(desc)-len(buf)):]...)
	lowerASCII(d)
	for _, w := range [...]string{"eval", "valid", "test", "predict", "sanity", "generat"} {
		if bytes.Contains(d, []byte(w)) {
			return barEval, evidence.None
		}
	}
	if i := bytes.Index(d, []byte("ep")); i >= 0 && (i == 0 || !isLetter(d[i-1])) {
		for i < len(d) && d[i]-'0' > 9 {
			i++
		}
		if n, end := parseInteger(d, i); end > i {
			return barEpoch, n
		}
		return barEpoch, evidence.None
	}
	if string(d) == "steps" || string(d) == "step" || string(d) == "global step" || string(d) == "training steps" || string(d) == "iterations" {
		return barSteps, evidence.None
	}
	if bytes.HasPrefix(d, []byte("train")) {
		return barEpoch, evidence.None
	}
	return barOther, evidence.None
}

// A yoloColumn is one column of Ultralytics' table.
type yoloColumn struct {
	name string
	mean keyMeaning
	ok   bool // mean holds
}

// header reads Ultralytics' line of column names: Epoch GPU_mem box_loss ….
func (m *metrics) header(raw []byte) bool {
	words := bytes.Fields(raw)
	for len(words) > 0 && string(words[0]) != "Epoch" {
		words = words[1:]
	}
	if len(words) < 4 || len(words) > 16 || string(words[1]) != "GPU_mem" {
		return false
	}
	m.yolo = m.yolo[:0]
	for _, w := range words {
		name := string(bytes.ToLower(w))
		mean, ok := keyMeanings()[name]
		m.yolo = append(m.yolo, yoloColumn{name, mean, ok})
	}
	return true
}

// yoloRow reads the row below: 1/100 4.21G 1.234 2.345 1.456 45 640: 100%|…| 100/100 […].
// GPU_mem is what the allocator has reserved; losses are means over the epoch so far.
func (m *metrics) yoloRow(raw []byte, b barLine) bool {
	var at [17][2]int
	n := 0
	for i := b.desc; i < b.descTo && n < len(at); {
		if raw[i] == 0x1b {
			i = skipEscapeSeq(raw, i)
			continue
		}
		if raw[i] <= ' ' {
			i++
			continue
		}
		j := i
		for j < b.descTo && raw[j] > ' ' && raw[j] != 0x1b {
			j++
		}
		at[n] = [2]int{i, j}
		n++
		i = j
	}
	if n != len(m.yolo) {
		return false
	}
	epoch, end := parseInteger(raw, at[0][0])
	if end == at[0][0] || raw[end] != '/' {
		return false
	}
	if b.exact {
		m.step = (epoch-1)*b.total + b.n
	}
	for c, col := range m.yolo {
		from := at[c][0]
		v, to := parseValue(raw, from)
		if c == 0 || to == from {
			continue
		}
		s := metricSlot{src: srcYOLO, trust: evidence.Smoothed}
		switch {
		case col.name == "gpu_mem":
			u, _ := parseUnit(raw, to)
			mult := sizeUnit(u)
			if mult == 0 {
				continue
			}
			v *= mult
			s.id, s.trust = idReserved, evidence.Raw
		case col.ok && !col.mean.none:
			s.id = col.mean.id
		case lossLike([]byte(col.name)):
			id, ok := m.other([]byte(col.name))
			if !ok {
				continue
			}
			s.id = id
		default:
			continue
		}
		m.add(s, v, from, to)
	}
	m.settle()
	return true
}
