package ranklog

import (
	"bytes"
	"math"

	"github.com/inquest-dev/inquest/internal/evidence"
)

var notANumber = math.NaN()

const (
	maxFields = 48 // values of one line
	maxWords  = 6  // words of a key
)

// A metricField is one value of a line with what its key means.
type metricField struct {
	id       uint16
	other    bool // no canonical name: name says which
	eval     bool
	peak     bool
	sure     bool // a separator stands between key and value
	v        float64
	from, to int
	name     [48]byte
	nameLen  int
}

// metricFields is the scratch space of the lexer for key and value pairs.
type metricFields struct {
	key   []byte // words of the key being read, lower case, joined by spaces
	words [maxWords]int
	n     int  // words
	sep   bool // ':' or '=' since the last word

	list [maxFields]metricField
	used int

	bar      bool // the pairs are a bar's postfix
	src      metricSource
	eval     bool
	step     int64
	stepRank int // how good the step's key is; 0 none
	total    int64
	stepSure bool // the key says that the step is the run's
	epoch    float64
	ratio    [2]int64 // a/b without a key
	hasRatio bool
	rank     int64
	memScale float64 // unit that a heading gave
	dump     bool    // the line is no metric line after all
	limit    float64 // host memory limit
	anon     int     // index+1 of the host memory field
}

func (f *metricFields) reset() {
	key := f.key[:0]
	f.n, f.used, f.sep = 0, 0, false
	f.key = key
	f.bar, f.src, f.eval = false, srcGeneric, false
	f.step, f.stepRank, f.total, f.stepSure = evidence.None, 0, 0, false
	f.epoch, f.hasRatio, f.rank = notANumber, false, evidence.None
	f.memScale, f.dump, f.limit, f.anon = 0, false, 0, 0
}

// have reports whether the line has a training value of a series.
func (f *metricFields) have(id uint16) bool {
	for i := range f.list[:f.used] {
		if x := &f.list[i]; x.id == id && !x.other {
			return true
		}
	}
	return false
}

func isEvalWord(w []byte) bool {
	switch string(w) {
	case "val", "valid", "validation", "validate", "eval", "evaluation", "test", "dev":
		return true
	}
	return false
}

// pairs reads the key and value pairs of raw[from:to], whatever their order and
// separators: "step: 10  loss: 7.8", "loss=2.1, lr=1e-05", "[it 30][loss nan thr 0.5]",
// "iter 17: loss nan, time: 401ms", {"loss": "10.1", "num_updates": "100"}.
func (m *metrics) pairs(raw []byte, from, to int) {
	m.frame, m.frameTo = from, to
	text := raw[from:to]
	if refuseLine(text) {
		return
	}
	m.f.reset()
	m.lex(raw, from, to)
	m.flush(raw)
}

// refuseLine turns away lines that hold the words of metrics and are none: a
// tracker's summary and source lines. Others are given away by a word (dumpWord).
func refuseLine(text []byte) bool {
	return bytes.HasPrefix(text, []byte("wandb:")) || bytes.HasPrefix(text, []byte("    ")) && bytes.Contains(text, []byte(" = "))
}

// dumpWord reports whether the word b[i:j] begins what only looks like metrics:
// the figures of a memory failure, a dump of arguments, a frame of a traceback.
func dumpWord(b []byte, i, j int) bool {
	switch b[i] {
	case 'T':
		return string(b[i:j]) == "Tried"
	case 'F':
		return string(b[i:j]) == "File" && j+1 < len(b) && b[j+1] == '"'
	}
	return j < len(b) && b[j] == '(' && (bytes.HasSuffix(b[i:j], []byte("Namespace")) || bytes.HasSuffix(b[i:j], []byte("Arguments")))
}

// lex reads raw[i:to] into m.f. A word extends the key; a number or non-finite
// literal behind a key makes a field; brackets, quotes, colons and spaces keep
// the key; bars, commas and other punctuation drop it.
func (m *metrics) lex(raw []byte, i, to int) {
	f := &m.f
	b := raw[:to]
	for i < to {
		c := b[i]
		switch {
		case c == 0x1b:
			i = skipEscapeSeq(b, i)
		case c >= 0x80: // the blocks of a bar
			for i < to && b[i] >= 0x80 {
				i++
			}
			m.dropKey()
		case isLetter(c) || c == '_':
			i = m.word(b, i)
			if f.dump {
				f.used = 0
				return
			}
		case c-'0' <= 9:
			i = m.number(b, i)
		case c == '-' || c == '+' || c == '.':
			i = m.sign(b, i)
			if f.dump {
				f.used = 0
				return
			}
		case c == ':' || c == '=':
			f.sep = true
			i++
		case c == ' ' || c == '"' || c == '\'' || c == '(' || c == '[' || c == '{' || c == ')' || c == '\t' || c == '#':
			i++
		case c == '|' && f.n >= 2 && bytes.HasSuffix(f.key, []byte("memory mb")):
			f.memScale = 1 << 20
			m.hint(srcMegatron)
			m.dropKey()
			i++
		default:
			m.dropKey()
			i++
		}
	}
	m.dropKey()
}

// dropKey forgets the key; a word like "val" in it marks the line.
func (m *metrics) dropKey() {
	f := &m.f
	if f.n > 0 {
		m.markEval(f.n)
		f.n, f.key = 0, f.key[:0]
	}
	f.sep = false
}

// markEval looks for words of evaluation among the first n words of the key.
func (m *metrics) markEval(n int) {
	f := &m.f
	for w := 0; w < n && !f.eval; w++ {
		end := len(f.key)
		if w+1 < f.n {
			end = f.words[w+1] - 1
		}
		if isEvalWord(f.key[f.words[w]:end]) {
			f.eval = true
		}
	}
}

// word reads a word at b[i]: a non-finite literal, or a part of a key.
func (m *metrics) word(b []byte, i int) int {
	f := &m.f
	if c := b[i] | 0x20; (c == 'n' || c == 'i') && f.n > 0 {
		if v, end := parseNonfinite(b, i); end > i {
			m.emit(v, i, end, nil)
			return end
		}
	}
	j := i
	for j < len(b) {
		if c := b[j]; isLetter(c) || c-'0' <= 9 || c == '_' || c == '/' || (c == '-' || c == '@' || c == '.') && j+1 < len(b) && (isLetter(b[j+1]) || b[j+1] == '_') {
			j++
			continue
		}
		break
	}
	w := b[i:j]
	if c := b[i]; (c == 'T' || c == 'F' || j < len(b) && b[j] == '(') && dumpWord(b, i, j) {
		f.dump = true
		return j
	}
	end := j
	if j < len(b) && b[j] == '.' { // an abbreviation (Up. 59000) or the end of a sentence
		end++
	}
	if j < len(b) && b[j] == '(' {
		switch string(w) {
		case "tensor", "array", "Array", "np.float64", "np.float32":
			return j + 1
		}
	}
	if f.n == maxWords || len(f.key)+len(w) > 120 {
		m.markEval(f.n)
		// Keep the last two words: a key is at its value's side.
		from := 0
		if f.n > 2 {
			from = f.words[f.n-2]
		}
		rest := copy(f.key, f.key[from:])
		f.key = f.key[:rest]
		keep := f.n - max(0, f.n-2)
		for k := 0; k < keep; k++ {
			f.words[k] = f.words[f.n-keep+k] - from
		}
		f.n = keep
		if len(f.key)+len(w) > 120 {
			f.n, f.key = 0, f.key[:0]
			return end
		}
	}
	if f.n > 0 {
		f.key = append(f.key, ' ')
	}
	f.words[f.n] = len(f.key)
	f.n++
	at := len(f.key)
	f.key = append(f.key, w...)
	lowerASCII(f.key[at:])
	f.sep = false
	return end
}

// sign reads what begins with '-', '+' or '.': a signed value, a dash between
// fields, or the dots of a configuration dump.
func (m *metrics) sign(b []byte, i int) int {
	f := &m.f
	if bytes.HasPrefix(b[i:], []byte("....")) {
		f.dump = true
		return i
	}
	if i+1 < len(b) {
		if c := b[i+1]; c-'0' <= 9 || c == '.' && i+2 < len(b) && b[i+2]-'0' <= 9 {
			return m.number(b, i)
		}
		if f.n > 0 {
			if v, end := parseNonfinite(b, i); end > i {
				m.emit(v, i, end, nil)
				return end
			}
		}
	}
	m.dropKey()
	return i + 1
}

// parseNumber reads a number with its unit, or steps over a date, a time, a version
// or an address.
func (m *metrics) number(b []byte, i int) int {
	f := &m.f
	v, end := parseNumber(b, i)
	if end == i {
		return i + 1
	}
	if end < len(b) {
		next := byte(0)
		if end+1 < len(b) {
			next = b[end+1]
		}
		switch c := b[end]; {
		case (c == ':' || c == '-' || c == '.') && next-'0' <= 9:
			m.dropKey()
			return skipToken(b, end)
		case c == '/' || c == ' ' && next == '/':
			return m.ratioAt(b, i, end, v)
		case c == 'x' || c == 'X':
			m.dropKey()
			return skipToken(b, end)
		case c == ' ' && bytes.HasPrefix(b[end:], []byte(" of ")):
			if total, to := parseInteger(b, end+4); to > end+4 {
				m.emitRatio(v, i, end, total)
				return to
			}
		}
	}
	u, uend := parseUnit(b, end)
	if f.n == 0 {
		if string(u) == "ms/step" || string(u) == "s/step" {
			f.src = srcKeras
			scale := 1e-3
			if u[0] == 's' {
				scale = 1
			}
			m.keep(keyMeaning{id: idStepTime}, v*scale, i, end)
		}
		return uend
	}
	m.emit(v, i, end, u)
	if sizeUnit(u) > 0 && uend+2 < len(b) && b[uend] == '(' {
		// 40.60GiB(51.32%): the share of the device.
		if p, to := parseNumber(b, uend+1); to > uend+1 && to < len(b) && b[to] == '%' {
			if f.used > 0 && f.list[f.used-1].id == idUsed && !f.list[f.used-1].other {
				f.list[f.used-1].id, f.list[f.used-1].peak = idReserved, true
				f.src = srcTitan
			}
			m.keep(keyMeaning{id: idFraction}, p/100, uend+1, to)
			return to
		}
	}
	return uend
}

// skipToken returns the offset behind the run of bytes without a space at b[i].
func skipToken(b []byte, i int) int {
	for i < len(b) && b[i] > ' ' && b[i] != ']' && b[i] != ')' && b[i] != '|' {
		i++
	}
	return i
}

// ratioAt reads a/b, whose first number v stands at b[i:end].
func (m *metrics) ratioAt(b []byte, i, end int, v float64) int {
	j := skipSpaces(b, end)
	j = skipSpaces(b, j+1)
	total, to := parseInteger(b, j)
	if to == j {
		if string(b[end:min(j+1, len(b))]) == "/" || m.f.n == 0 {
			m.dropKey()
			return j
		}
		m.emit(v, i, end, nil)
		return j
	}
	if to < len(b) && (b[to] == '/' || b[to] == ':' && to+1 < len(b) && b[to+1]-'0' <= 9) {
		m.dropKey() // a date: 04/08/2025
		return skipToken(b, to)
	}
	if k := skipSpaces(b, to); k > to && k+2 < len(b) && b[k]-'0' <= 9 && b[k+1]-'0' <= 9 && b[k+2] == ':' {
		m.dropKey() // a date before a time: 01/19 14:03:48
		return skipToken(b, k)
	}
	m.emitRatio(v, i, end, total)
	return to
}

// emitRatio files n of total: a step, an epoch, or, without a key of that sort,
// the place inside an epoch.
func (m *metrics) emitRatio(v float64, from, to int, total int64) {
	f := &m.f
	if f.n > 0 {
		had := f.step
		m.emit(v, from, to, nil)
		if f.step != had || f.stepRank > 0 && f.step == int64(v) {
			f.total = total
		}
		return
	}
	if n, ok := asCount(v); ok && !f.hasRatio {
		f.ratio, f.hasRatio = [2]int64{n, total}, true
	}
}

// parseUnit reads the unit behind a number: letters, '%' and '/', directly or, for
// sizes and times, after one space.
func parseUnit(b []byte, i int) (u []byte, end int) {
	j := i
	for j < len(b) && j-i < 12 && (isLetter(b[j]) || b[j] == '%' || b[j] == '/' && j > i) {
		j++
	}
	if j > i {
		return b[i:j], j
	}
	if i < len(b) && b[i] == ' ' {
		for j = i + 1; j < len(b) && j-i < 5 && isLetter(b[j]); {
			j++
		}
		u := b[i+1 : j]
		if len(u) > 1 && sizeUnit(u) > 0 && (j == len(b) || !isLetter(b[j]) && b[j] != ':' && b[j] != '=') {
			return u, j
		}
	}
	return nil, i
}

// sizeUnit returns the bytes of a size unit, 0 for anything else. Decimal names
// stand for binary units, as the sources of these lines use them.
func sizeUnit(u []byte) float64 {
	if len(u) == 0 || len(u) > 3 {
		return 0
	}
	if len(u) == 1 && (u[0] == 'B' || u[0] == 'b') {
		return 1
	}
	switch len(u) {
	case 2:
		if u[1] != 'B' && u[1] != 'b' && u[1] != 'i' {
			return 0
		}
	case 3:
		if u[1] != 'i' || u[2] != 'B' && u[2] != 'b' {
			return 0
		}
	}
	switch u[0] {
	case 'K', 'k':
		return 1 << 10
	case 'M':
		return 1 << 20
	case 'G', 'g':
		return 1 << 30
	case 'T':
		return 1 << 40
	}
	return 0
}

// emit files the value behind the key: of the known keys that end the words
// read, the longest.
func (m *metrics) emit(v float64, from, to int, u []byte) {
	f := &m.f
	last := f.n - 1
	k := f.key[f.words[last]:]
	mean, known := keyMeanings()[string(k)]
	at := last
	if mean.multi {
		for w := max(0, f.n-4); w < last; w++ {
			if long, ok := keyMeanings()[string(f.key[f.words[w]:])]; ok && long.single {
				mean, at, k = long, w, f.key[f.words[w]:]
				break
			}
		}
	}
	m.markEval(at)
	switch {
	case !known || !mean.single:
		if len(k) <= len(f.list[0].name) && (notFinite(v) || lossLike(k)) && u == nil && healthKey(k) {
			m.keepOther(k, v, from, to, f.sep)
		}
	case mean.step > 0:
		if n, ok := asCount(v); ok && mean.step > f.stepRank && u == nil {
			f.step, f.stepRank, f.stepSure = n, mean.step, mean.step >= 9
		}
	case mean.note > 0:
		m.note(mean.note, v, from, to, u)
	case f.n > 1 && at == last && vague(k): // the norm, the memory of something else
	default:
		m.meaning(mean, k, v, from, to, u)
	}
	f.n, f.key, f.sep = 0, f.key[:0], false
}

// vague reports whether a key means its series only when it stands alone.
func vague(k []byte) bool {
	switch string(k) {
	case "norm", "memory", "mem", "ma", "ca", "len":
		return true
	}
	return false
}

// meaning files a value whose key is known.
func (m *metrics) meaning(mean keyMeaning, k []byte, v float64, from, to int, u []byte) {
	f := &m.f
	switch {
	case mean.none:
		return
	case isSize(mean.id):
		scale := sizeUnit(u)
		if scale == 0 {
			if len(u) > 0 {
				return
			}
			if scale = mean.scale; f.memScale > 0 && mean.scale == 0 {
				scale = f.memScale
			}
		}
		if scale == 0 || v < 0 {
			return
		}
		v *= scale
	case mean.id == idStepTime:
		switch string(u) {
		case "ms":
			v /= 1e3
		case "s", "":
			if mean.scale > 0 {
				v *= mean.scale
			} else if len(u) == 0 {
				return
			}
		default:
			return
		}
	case len(u) > 0 && u[0] != '%' && !(len(u) == 1 && u[0] == 'e'):
		return // 12ms of something
	}
	switch string(k) {
	case "reduced_train_loss":
		f.src = srcNeMo
	case "cost":
		f.src = srcMarian
	case "loss value":
		f.src = srcMegatron
	case "loss/train/total", "memory/peak_reserved_mem", "memory/current_allocated_mem", "memory/peak_allocated_mem":
		f.src = srcComposer
	case "skipped", "memallocated", "maxmemallocated", "ma", "ca", "max_ma", "max_ca":
		m.hint(srcDeepSpeed)
	case "max_mem":
		f.src = srcDetectron
	}
	if !mean.eval && f.eval && mean.id == idLoss {
		mean = keyMeaning{id: idEvalLoss, eval: true}
	}
	if f.have(mean.id) && !mean.peak && (mean.id == idLoss || mean.id == idGradNorm) {
		if len(k) <= len(f.list[0].name) {
			m.keepOther(k, v, from, to, true)
		}
		return
	}
	m.keep(mean, v, from, to)
}

// note files the keys that are no series: epochs, ranks, limits, and those that
// give away the format.
func (m *metrics) note(n note, v float64, from, to int, u []byte) {
	f := &m.f
	switch n {
	case noteEpoch, noteEpochEval:
		if !notFinite(v) {
			f.epoch = v
			m.epochZero = m.epochZero || v == 0
			m.epochSeen = true
		}
		f.eval = f.eval || n == noteEpochEval
	case noteTrain:
		if f.epoch != f.epoch && !notFinite(v) {
			f.epoch = v
			m.epochZero = m.epochZero || v == 0
		}
	case noteRank:
		if n, ok := asCount(v); ok && n < 1<<20-1 && len(u) == 0 {
			if f.used > 0 { // another rank's line glued behind
				m.flush(m.raw)
				m.f.reset()
			}
			m.f.rank = n
		}
	case noteLimit:
		if s := sizeUnit(u); s > 0 {
			f.limit = v * s
		}
	case noteMM:
		m.hint(srcMM)
	case noteMFU:
		m.hint(srcNanoGPT)
	case noteLightning:
		f.src = srcLightning
	case noteMaxText:
		f.src = srcMaxText
	case noteFairseq:
		f.src = srcFairseq
	case noteSeconds:
		if len(u) == 0 && !notFinite(v) {
			m.keep(keyMeaning{id: idStepTime}, v, from, to)
		}
	case noteTime:
		switch {
		case string(u) == "ms":
			m.keep(keyMeaning{id: idStepTime}, v/1e3, from, to)
		case f.src == srcMM || f.src == srcDetectron:
			m.keep(keyMeaning{id: idStepTime}, v, from, to)
		}
	}
}

// hint takes a format for the line's unless a better sign was seen.
func (m *metrics) hint(src metricSource) {
	if m.f.src == srcGeneric {
		m.f.src = src
	}
}

func (m *metrics) keep(mean keyMeaning, v float64, from, to int) {
	f := &m.f
	if f.used == maxFields {
		return
	}
	x := &f.list[f.used]
	f.used++
	x.id, x.other, x.eval, x.peak, x.sure = mean.id, false, mean.eval || f.eval, mean.peak, true
	x.v, x.from, x.to = v, from, to
	if mean.id == idHost {
		f.anon = f.used
	}
}

func (m *metrics) keepOther(k []byte, v float64, from, to int, sure bool) {
	f := &m.f
	if f.used == maxFields {
		return
	}
	x := &f.list[f.used]
	f.used++
	x.other, x.eval, x.peak, x.sure = true, f.eval, false, sure
	x.v, x.from, x.to = v, from, to
	x.nameLen = copy(x.name[:], k)
}

// flush turns the fields of a line into points.
func (m *metrics) flush(raw []byte) {
	f := &m.f
	m.place()
	if f.used == 0 {
		return
	}
	loss, step := f.have(idLoss) || f.have(idEvalLoss), f.stepRank > 0 || f.hasRatio
	grad, memory := f.have(idGradNorm), false
	for i := range f.list[:f.used] {
		if x := &f.list[i]; !x.other && (isSize(x.id) || x.id == idFraction) {
			memory = true
		}
	}
	if f.src == srcMM && f.have(idAllocated) {
		f.src = srcDetectron
	}
	rank := m.rank
	if f.rank >= 0 {
		m.rank = int(f.rank)
	}
	if f.stepRank > 1 && !f.eval && f.have(idLoss) {
		sure := f.stepSure || f.src == srcTitan || f.src == srcMaxText || f.src == srcMarian || f.src == srcDeepSpeed || f.src == srcDetectron
		if f.stepRank >= 5 {
			m.count(f.src, f.stepRank, f.step, f.total, f.epoch, sure)
			if f.total > 0 && f.stepRank >= 7 && f.epoch != f.epoch {
				m.steps(f.total, m.frame, m.frame)
			}
		}
	}
	for i := range f.list[:f.used] {
		x := &f.list[i]
		s := metricSlot{id: x.id, src: f.src, eval: x.eval, peak: x.peak, trust: evidence.Raw}
		switch {
		case x.other:
			if !(loss || step || grad || notFinite(x.v) && (x.sure || lossLike(x.name[:x.nameLen]))) {
				continue
			}
			id, ok := m.other(x.name[:x.nameLen])
			if !ok {
				continue
			}
			s.id = id
			if lossLike(x.name[:x.nameLen]) {
				s.trust = lossTrust(f.src)
			}
		case x.id == idLoss:
			s.trust = lossTrust(f.src)
		case x.id == idEvalLoss && f.src == srcKeras:
			s.trust = evidence.Smoothed
		case x.id == idGradNorm && f.src == srcFairseq:
			s.trust = evidence.Omitted
		case x.id == idPerplexity && math.IsInf(x.v, 0):
			continue // exp of an ordinary early loss overflows
		case (x.id == idLR || x.id == idLossScale || x.id == idPerplexity || x.id == idSeqLen || x.id == idStepTime || x.id == idReward || x.id == idKL) && !(loss || step || grad || memory):
			continue
		}
		m.add(s, x.v, x.from, x.to)
	}
	m.settle()
	m.hostReport()
	m.rank = rank
}

// place finds the step of the line.
func (m *metrics) place() {
	f := &m.f
	switch {
	case f.stepRank == 1 && f.memScale == 0: // "after 3 …" of anything but a memory report
		f.step, f.stepRank = evidence.None, 0
	case f.stepRank > 0:
		if f.used == 0 && f.stepRank == 3 && f.epoch == f.epoch && f.total > 0 && !f.bar { // Composer's [epoch=1][batch=50/1000]:
			m.block = m.epochStep(int64(f.epoch), f.step, f.total)
		}
	case f.hasRatio && f.epoch == f.epoch && f.epoch >= 0 && f.epoch < 1<<31 && !f.eval:
		f.step = m.epochStep(int64(f.epoch), f.ratio[0], f.ratio[1])
	case f.src == srcComposer:
		f.step = m.block
	}
	m.step = f.step
}

// hostReport emits the host memory report of a line that states a limit, when
// the limit is news.
func (m *metrics) hostReport() {
	f := &m.f
	if f.limit <= 0 || f.anon == 0 || f.limit == m.hostLimit {
		return
	}
	m.hostLimit = f.limit
	x := &f.list[f.anon-1]
	who, stamp := m.identity()
	who.Rank, who.Launch = m.rank, m.launch
	span := m.span(x.from, x.to)
	m.s.Event(evidence.Event{Kind: evidence.HostMemReport, Who: who, Stamp: stamp, Step: m.step, Text: printableText([]byte(span.Quote)), Span: span,
		Attrs: evidence.Attrs{"what": evidence.TextOf("log line"), "used": evidence.SizeOf(int64(x.v), int64(x.v)), "limit": evidence.SizeOf(int64(f.limit), int64(f.limit))}})
}

// timer reads the line of DeepSpeed's throughput timer (deepspeed/utils/timer.py),
// whose "MemAllocated=" stands at offset at:
//
//	epoch=0/micro_step=40/global_step=10, RunningAvgSamplesPerSec=97.0, CurrSamplesPerSec=11.6, MemAllocated=33.45GB, MaxMemAllocated=60.57GB
//
// It does what pairs does for it, and returns false, having done nothing, for
// other lines.
func (m *metrics) timer(raw []byte, at int) bool {
	const mem, most = "MemAllocated=", ", MaxMemAllocated="
	var value [5]int // offsets of the values before at, the last first
	i := at
	for k, key := range [...]string{", CurrSamplesPerSec", ", RunningAvgSamplesPerSec", "/global_step", "/micro_step", "epoch"} {
		eq := bytes.LastIndexByte(raw[:i], '=')
		if eq < 0 || !bytes.HasSuffix(raw[:eq], []byte(key)) {
			return false
		}
		value[k] = eq + 1
		i = eq - len(key)
	}
	step, end := parseInteger(raw, value[2])
	epoch, to := parseInteger(raw, value[4])
	if end == value[2] || raw[end] != ',' || to == value[4] || raw[to] != '/' || i > 0 && isLetter(raw[i-1]) || refuseLine(raw) || bytes.IndexByte(raw, '\r') >= 0 || bytes.IndexByte(raw, '\b') >= 0 {
		return false
	}
	now, nowTo := parseNumber(raw, at+len(mem))
	unit, end := parseUnit(raw, nowTo)
	if nowTo == at+len(mem) || string(unit) != "GB" || !bytes.HasPrefix(raw[end:], []byte(most)) {
		return false
	}
	from := end + len(most)
	peak, peakTo := parseNumber(raw, from)
	if unit, end = parseUnit(raw, peakTo); peakTo == from || string(unit) != "GB" || end < len(raw) && raw[end] > ' ' {
		return false
	}
	m.epochSeen = true
	m.epochZero = m.epochZero || epoch == 0
	m.step = step
	m.add(metricSlot{id: idAllocated, src: srcDeepSpeed, trust: evidence.Raw}, now*(1<<30), at+len(mem), nowTo)
	m.add(metricSlot{id: idAllocated, src: srcDeepSpeed, peak: true, trust: evidence.Raw}, peak*(1<<30), from, peakTo)
	return true
}

// tuple reads absl-style result lines: 1_train_20, nan, [nan, nan].
func (m *metrics) tuple(raw []byte) bool {
	const mark = "_train_"
	at := bytes.Index(raw, []byte(mark))
	if at < 1 || raw[at-1]-'0' > 9 {
		return false
	}
	step, end := parseInteger(raw, at+len(mark))
	if end == at+len(mark) || end+2 >= len(raw) || raw[end] != ',' {
		return false
	}
	from := skipSpaces(raw, end+1)
	v, to := parseValue(raw, from)
	if to == from || to < len(raw) && raw[to] != ',' {
		return false
	}
	m.step = step
	m.add(metricSlot{id: idLoss, src: srcGeneric, trust: evidence.Raw}, v, from, to)
	m.settle()
	return true
}

// lossLike reports whether a lower-case key names a loss or a component of one.
func lossLike(k []byte) bool {
	if bytes.HasSuffix(k, []byte("loss")) {
		return true
	}
	if !bytes.HasPrefix(k, []byte("loss_")) && !bytes.HasPrefix(k, []byte("loss/")) && !bytes.HasSuffix(k, []byte("loss_step")) {
		return false
	}
	switch string(k) {
	case "loss_scale", "loss_weight", "loss_weights", "loss_type", "loss_fn", "loss_function", "loss_coef", "loss_scaling", "loss_scale_window":
		return false
	}
	return true
}

// healthKey is healthName without an allocation, for a key of one word.
func healthKey(k []byte) bool {
	from := 0
	for i := 0; i <= len(k); i++ {
		if i == len(k) || k[i] == '_' || k[i] == '/' || k[i] == '.' || k[i] == '-' || k[i] == '@' {
			if evidence.SeriesBenign[string(k[from:i])] {
				return false
			}
			from = i + 1
		}
	}
	return true
}

func lowerASCII(b []byte) {
	for i, c := range b {
		if c-'A' <= 'Z'-'A' {
			b[i] = c + 'a' - 'A'
		}
	}
}
