package ranklog

import (
	"bytes"
	"math"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// hfState is what the rule for replaced losses needs of the lines before,
// for one rank.
type hfState struct {
	last      float64 // last loss that was not exactly 0
	haveLast  bool
	zeros     int // consecutive losses of exactly 0
	first     pendingZero
	told      bool    // this run of zeros has its event
	sentinel  float64 // gradient norm of the last line, when it was √2 or √3
	sentinels int

	firstEpoch, lastEpoch float64
	epochs                int // lines with a loss and an epoch
}

// restarted reports whether an epoch belongs to another training than those before
// it: a trainer's epochs only rise, and this one is back where they began.
func (st *hfState) restarted(epoch float64) bool {
	return st.epochs > 1 && epoch <= st.firstEpoch && epoch*2 < st.lastEpoch
}

func (st *hfState) epoch(epoch float64) {
	if st.epochs == 0 {
		st.firstEpoch = epoch
	}
	st.lastEpoch = epoch
	st.epochs++
}

// A pendingZero is the first line of a run of exact zeros, kept until a later
// line proves or denies that the zero stands for a non-finite loss.
type pendingZero struct {
	t     *metricTrack
	span  evidence.Span
	step  int64
	who   evidence.Who
	stamp evidence.Stamp
	value string
}

// Bits of what a dict holds.
const (
	hasLoss = 1 << iota
	hasGrad
	hasLR
	hasEpoch
	hasReward
	hasRuntime
	hasEvalLoss
	hasStep
)

// A printedValue is a value with its place in the raw line.
type printedValue struct {
	v        float64
	from, to int
}

// A dictLine is one trainer dict, parsed. Keys beyond these go to their series
// while the dict is read.
type dictLine struct {
	has                      int
	loss, grad, lr, evalLoss printedValue
	reward, kl               printedValue
	step, total              int64
	epoch                    float64
	eval                     bool
	extra                    [24]extraField
	extras                   int
}

// reset forgets the dict before; extra is overwritten as far as it is used.
func (d *dictLine) reset() {
	d.has, d.extras, d.eval = 0, 0, false
	d.step, d.total = 0, 0
	d.reward.to, d.kl.to = 0, 0
}

type extraField struct {
	keyFrom, keyTo int
	printedValue
}

// dict reads a dict that Hugging Face's Trainer, or a trainer built on it,
// prints: {'loss': 1.62, 'grad_norm': 9.3, 'learning_rate': 4.9e-06, 'epoch': 0.16}.
// Values may be quoted (transformers 5). near is the offset of a hit in it. It
// returns false, having done nothing, where the text is no such dict.
func (m *metrics) dict(raw []byte, near int) bool {
	open := bytes.LastIndexByte(raw[:min(near+1, len(raw))], '{')
	if open < 0 {
		return false
	}
	d := &m.d
	d.reset()
	end := m.form.read(raw, open, d)
	if end < 0 {
		d.reset()
		end = parseDict(raw, open, d, &m.form)
	}
	if end < 0 || d.has&(hasEpoch|hasRuntime|hasStep) == 0 && d.has&(hasLR|hasGrad) != hasLR|hasGrad {
		return false
	}
	m.frame, m.frameTo = open, end
	if d.has&hasEpoch != 0 {
		m.epochSeen = true
	}
	if d.has&hasRuntime != 0 {
		who, stamp := m.identity()
		who.Rank, who.Launch = m.rank, m.launch
		m.s.Event(evidence.Event{Kind: evidence.Finished, Who: who, Stamp: stamp, Step: m.step, Text: printableText(raw[open:end]), Span: m.span(open, open), Attrs: evidence.Attrs{"what": evidence.TextOf("train_runtime")}})
		return true
	}
	m.dictStep(d)
	st := m.lastHF
	if st == nil || m.lastHFOwner != m.owner {
		if st = m.hf[m.rank]; st == nil {
			if len(m.hf) >= maxTracks {
				return true
			}
			st = &hfState{}
			m.hf[m.rank] = st
		}
		m.lastHF, m.lastHFOwner = st, m.owner
	}
	if d.has&(hasLoss|hasEpoch) == hasLoss|hasEpoch && !m.again && st.restarted(d.epoch) {
		m.restart()
		m.hf[m.rank] = st
	}
	if m.again {
		*st = hfState{}
	}
	if d.has&(hasLoss|hasEpoch) == hasLoss|hasEpoch {
		st.epoch(d.epoch)
	}
	m.dictSeries(raw, d, st)
	return true
}

// dictStep finds the step of a dict: in the line (ms-swift), else the bar before it.
func (m *metrics) dictStep(d *dictLine) {
	switch {
	case d.has&hasStep != 0:
		m.step = d.step
		if d.has&hasLoss != 0 {
			m.count(srcHF, 0, m.step, d.total, math.NaN(), true)
			m.steps(d.total, m.frame, m.frame)
		}
	case d.has&hasLoss != 0:
		if n, total, ok := m.bar.mainStep(); ok {
			if m.step = n; n != evidence.None {
				m.count(srcHF, 0, n, total, math.NaN(), true)
			}
			m.steps(total, m.frame, m.frame)
		}
	default:
		m.step = m.bar.lastMain()
	}
}

// dictSeries adds the values of d and applies the rule for hidden losses.
func (m *metrics) dictSeries(raw []byte, d *dictLine, st *hfState) {
	var lossTrack *metricTrack
	m.here()
	if d.has&hasLoss != 0 {
		m.addTo(&m.ofDict[0], d.loss.v, d.loss.from, d.loss.to)
		lossTrack = m.ofDict[0].track
	}
	if d.has&hasGrad != 0 {
		m.addTo(&m.ofDict[1], d.grad.v, d.grad.from, d.grad.to)
	}
	if d.has&hasLR != 0 {
		m.addTo(&m.ofDict[2], d.lr.v, d.lr.from, d.lr.to)
	}
	if d.has&hasEvalLoss != 0 {
		m.add(metricSlot{id: idEvalLoss, src: srcHF, eval: true, trust: evidence.Raw}, d.evalLoss.v, d.evalLoss.from, d.evalLoss.to)
	}
	if d.reward.to > 0 {
		m.add(metricSlot{id: idReward, src: srcHF, trust: evidence.Raw}, d.reward.v, d.reward.from, d.reward.to)
	}
	if d.kl.to > 0 {
		m.add(metricSlot{id: idKL, src: srcHF, trust: evidence.Raw}, d.kl.v, d.kl.from, d.kl.to)
	}
	for i := range d.extra[:d.extras] {
		m.extra(raw, &d.extra[i], d.eval)
	}
	visible := m.settle()
	if d.has&hasLoss != 0 && lossTrack != nil {
		m.hidden(raw, d, st, lossTrack, visible)
	}
	if d.has&hasEvalLoss != 0 && notFinite(d.evalLoss.v) && st.zeros > 0 && !st.told {
		m.reveal(st)
	}
}

// extra adds a value with another key: a known series (memory), a loss
// component, or anything that is not finite.
func (m *metrics) extra(raw []byte, x *extraField, eval bool) {
	m.f.key = append(m.f.key[:0], raw[x.keyFrom:x.keyTo]...)
	lowerASCII(m.f.key)
	if mean, ok := keyMeanings()[string(m.f.key)]; ok && mean.single {
		if mean.none || mean.step > 0 || mean.note > 0 {
			return
		}
		v := x.v
		if isSize(mean.id) {
			if mean.scale == 0 {
				return
			}
			v *= mean.scale
		}
		m.add(metricSlot{id: mean.id, src: srcHF, eval: eval || mean.eval, peak: mean.peak, trust: evidence.Raw}, v, x.from, x.to)
		return
	}
	if !notFinite(x.v) && !lossLike(m.f.key) {
		return
	}
	if id, ok := m.other(m.f.key); ok {
		m.add(metricSlot{id: id, src: srcHF, eval: eval, trust: evidence.Raw}, x.v, x.from, x.to)
	}
}

// hidden applies HF_FILTERED_NAN: a loss of exactly 0 stands for a non-finite
// one when the gradient norm is not finite or is DeepSpeed's replacement for
// such a norm (strong), or when a second zero follows a loss above 0.05 and no
// finite gradient norm speaks against it (medium). Runs whose loss is 0 by
// nature (rewards on the line) and frozen models (norm exactly 0) are left out.
func (m *metrics) hidden(raw []byte, d *dictLine, st *hfState, t *metricTrack, visible bool) {
	badGrad := d.has&hasGrad != 0 && notFinite(d.grad.v)
	root := 0
	if m.deepspeed && d.has&hasGrad != 0 && !badGrad {
		root = normSentinel(raw[d.grad.from:d.grad.to], d.grad.v)
	}
	m.sentinelRun(raw, d, st, root, visible)
	if d.loss.v != 0 {
		if !notFinite(d.loss.v) {
			st.last, st.haveLast = d.loss.v, true
		}
		if st.zeros > 0 || st.told {
			st.zeros, st.told, st.first = 0, false, pendingZero{}
		}
		return
	}
	st.zeros++
	if st.told {
		return
	}
	if st.zeros == 1 {
		who, stamp := m.identity()
		st.first = pendingZero{t: t, span: m.span(d.loss.from, d.loss.to), step: m.step, who: who, stamp: stamp, value: printableText(raw[d.loss.from:d.loss.to])}
	}
	switch {
	case d.has&hasReward != 0:
	case visible: // the line has its event; the loss of a next one may still have its own
		st.zeros = 0
	case badGrad, root > 0:
		m.reveal(st)
	case st.zeros >= 2 && st.haveLast && st.last > 0.05 && d.has&hasGrad == 0:
		m.reveal(st)
	}
}

// reveal emits the hidden non-finite loss at the first zero of the run.
func (m *metrics) reveal(st *hfState) {
	st.told = true
	z := st.first
	if z.t == nil || z.t.events >= maxTrackEvents || m.events >= maxMetricEvents {
		return
	}
	m.events++
	z.t.events++
	step := m.step
	m.step = z.step
	m.s.Event(m.nonfinite(z.t, z.value, true, z.span, z.who, z.stamp))
	m.step = step
}

// sentinelRun reports DeepSpeed's constant norm on two lines in a row, which is
// a hidden non-finite gradient norm even where the loss is not 0. √1 and √4 are
// too common as honest norms to count without a zero loss.
func (m *metrics) sentinelRun(raw []byte, d *dictLine, st *hfState, root int, visible bool) {
	if root != 2 && root != 3 {
		st.sentinels = 0
		return
	}
	if d.grad.v != st.sentinel {
		st.sentinel, st.sentinels = d.grad.v, 0
	}
	st.sentinels++
	if st.sentinels != 2 || visible || d.loss.v == 0 {
		return
	}
	if t := m.track(metricSlot{id: idGradNorm, src: srcHF, trust: evidence.Raw}); t != nil && t.events < maxTrackEvents {
		t.events++
		m.best = badCandidate{t: t, priority: 2, from: d.grad.from, to: d.grad.to, hidden: true}
		m.settle()
	}
}

// normSentinel returns k if the norm v, printed as text, is √k for k of 1 to 4 to
// all digits printed; DeepSpeed's ZeRO reports that for k broken groups. Fewer
// than four digits of an irrational root prove nothing and return 0.
func normSentinel(text []byte, v float64) int {
	// Nearly every norm is far from all four.
	if v < 0.999 || v > 2.001 || v > 1.001 && v < 1.413 || v > 1.415 && v < 1.731 || v > 1.733 && v < 1.999 {
		return 0
	}
	digits, frac := 0, 0
	point := false
	for _, c := range text {
		switch {
		case c == '.':
			point = true
		case c-'0' <= 9:
			digits++
			if point {
				frac++
			}
		default:
			return 0
		}
	}
	for k := 1; k <= 4; k++ {
		root := math.Sqrt(float64(k))
		if k == 1 || k == 4 {
			if v == root {
				return k
			}
		} else if digits >= 4 && math.Abs(v-root) <= 0.5001*math.Pow(10, -float64(frac))+1e-15 {
			return k
		}
	}
	return 0
}

// parseDict reads the dict that begins at b[open] into d and returns the offset
// behind its closing brace, the end of b for a torn one, or -1 where the text
// is not a flat dict with single-quoted keys. What stands between its values goes
// into form, if they are all plain.
func parseDict(b []byte, open int, d *dictLine, form *dictForm) int {
	form.reset()
	i, behind := open+1, open // behind the value before
	for i < len(b) {
		if b[i] != '\'' {
			if b[i] == ' ' || b[i] == ',' {
				i++
				continue
			}
			if b[i] == '}' {
				form.end(b[behind : i+1])
				return i + 1
			}
			return -1
		}
		i++
		n := bytes.IndexByte(b[i:], '\'')
		if n < 0 {
			return len(b)
		}
		key := b[i : i+n]
		keyFrom := i
		i += n + 1
		if i >= len(b) || b[i] != ':' {
			return -1
		}
		i++
		for i < len(b) && b[i] == ' ' {
			i++
		}
		if i >= len(b) {
			return len(b)
		}
		quote := byte(0)
		if b[i] == '\'' || b[i] == '"' {
			quote = b[i]
			i++
		}
		i = skipWrapper(b, i)
		v, to := parseValue(b, i)
		if to > i {
			d.take(key, keyFrom, printedValue{v, i, to}, b)
		}
		form.value(b[behind:i], keyFrom-behind, len(key), to > i && quote == 0)
		behind = to
		i = skipValue(b, max(to, i), quote)
	}
	return len(b)
}

// A dictForm is what stands between the values of a dict. A trainer prints the
// same keys again and again, so most dicts are read by comparing a few short
// texts instead of taking each apart.
type dictForm struct {
	parts []dictPart
	last  []byte // behind the last value
	plain bool   // all values so far are
	whole bool   // the dict was read to its end and all its values are plain
}

// A dictPart is one value of a dictForm.
type dictPart struct {
	before fixedText // from the value before, or the opening brace, to this one
	key    []byte    // its key, which lies in before
	keyAt  int       // offset of key from the end of before
	known  dictKey
}

// A dictKey is a key whose value a dictForm files by itself.
type dictKey uint8

const (
	keyOther dictKey = iota
	keyLoss
	keyGrad
	keyLR
	keyEpoch
)

var dictKeys = map[string]dictKey{"loss": keyLoss, "grad_norm": keyGrad, "learning_rate": keyLR, "epoch": keyEpoch}

// maxDictParts bounds the values of a form.
const maxDictParts = 32

func (f *dictForm) reset() { f.parts, f.plain, f.whole = f.parts[:0], true, false }

// value adds a value, which stands behind the text before; its key is the n bytes
// at offset at of that.
func (f *dictForm) value(before []byte, at, n int, plain bool) {
	if !plain || !f.plain || len(f.parts) == maxDictParts {
		f.plain = false
		return
	}
	if n := len(f.parts); n < cap(f.parts) {
		f.parts = f.parts[:n+1] // with the memory of a part before
	} else {
		f.parts = append(f.parts, dictPart{})
	}
	p := &f.parts[len(f.parts)-1]
	p.before.set(before)
	p.key, p.keyAt = p.before.text[at:at+n], at-len(before)
	p.known = dictKeys[string(p.key)]
}

// end notes that the dict ends with last.
func (f *dictForm) end(last []byte) { f.last, f.whole = append(f.last[:0], last...), f.plain }

// read reads the dict that begins at b[open] into d as parseDict does and returns
// the offset behind it, or -1 where it has another form or no plain values.
func (f *dictForm) read(b []byte, open int, d *dictLine) int {
	if !f.whole {
		return -1
	}
	i := open
	for k := range f.parts {
		p := &f.parts[k]
		if !p.before.at(b, i) {
			return -1
		}
		i += len(p.before.text)
		if p.known == keyEpoch {
			to := i
			for to < len(b) && (b[to]-'0' <= 9 || b[to] == '.') {
				to++
			}
			if to == i {
				return -1
			}
			v, _ := parseValue(b[:to], i)
			d.epoch, d.has = v, d.has|hasEpoch
			i = to
			continue
		}
		v, to := parseValue(b, i)
		if to == i {
			return -1
		}
		switch x := (printedValue{v, i, to}); p.known {
		case keyLoss:
			d.loss, d.has = x, d.has|hasLoss
		case keyGrad:
			d.grad, d.has = x, d.has|hasGrad
		case keyLR:
			d.lr, d.has = x, d.has|hasLR
		default:
			d.take(p.key, i+p.keyAt, x, b)
		}
		i = to
	}
	if !bytes.HasPrefix(b[i:], f.last) {
		return -1
	}
	return i + len(f.last)
}

// A fixedText is a text that lines are compared with again and again: one of 8
// to 24 bytes by three words.
type fixedText struct {
	text              []byte
	mid               int // offset of middle
	head, middle, end uint64
}

func (t *fixedText) set(text []byte) {
	t.text = append(t.text[:0], text...)
	if n := len(text); n >= 8 && n <= 24 {
		t.mid = min(8, n-8)
		t.head, t.middle, t.end = word(text, 0), word(text, t.mid), word(text, n-8)
	}
}

// at reports whether t stands at b[i].
func (t *fixedText) at(b []byte, i int) bool {
	n := len(t.text)
	if n < 8 || n > 24 {
		return bytes.HasPrefix(b[i:], t.text)
	}
	return n <= len(b)-i && word(b, i) == t.head && word(b, i+t.mid) == t.middle && word(b, i+n-8) == t.end
}

// skipWrapper steps over tensor(, array( and the like.
func skipWrapper(b []byte, i int) int {
	if i >= len(b) || !isLetter(b[i]) {
		return i
	}
	for _, w := range [...]string{"tensor(", "array(", "Array(", "np.float64(", "np.float32("} {
		if bytes.HasPrefix(b[i:], []byte(w)) {
			return i + len(w)
		}
	}
	return i
}

// skipValue returns the offset of the comma or brace behind a value.
func skipValue(b []byte, i int, quote byte) int {
	if quote != 0 {
		n := bytes.IndexByte(b[i:], quote)
		if n < 0 {
			return len(b)
		}
		return i + n + 1
	}
	for depth := 0; i < len(b); i++ {
		switch b[i] {
		case '(', '[', '{':
			depth++
		case ')', ']':
			depth--
		case '}':
			if depth <= 0 {
				return i
			}
			depth--
		case ',':
			if depth <= 0 {
				return i
			}
		}
	}
	return i
}

// take files one value of a dict.
func (d *dictLine) take(key []byte, keyFrom int, p printedValue, b []byte) {
	switch string(key) {
	case "loss":
		d.loss, d.has = p, d.has|hasLoss
	case "grad_norm":
		d.grad, d.has = p, d.has|hasGrad
	case "learning_rate":
		d.lr, d.has = p, d.has|hasLR
	case "epoch":
		d.epoch, d.has = p.v, d.has|hasEpoch
	case "eval_loss":
		d.evalLoss, d.has, d.eval = p, d.has|hasEvalLoss, true
	case "train_runtime":
		d.has |= hasRuntime
	case "reward":
		d.reward, d.has = p, d.has|hasReward
	case "kl":
		d.kl = p
	case "train_loss", "eval_runtime", "eval_samples_per_second", "eval_steps_per_second":
	case "global_step/max_steps":
		if n, to := parseInteger(b, p.from); to > p.from && to < len(b) && b[to] == '/' {
			if total, end := parseInteger(b, to+1); end > to+1 {
				d.step, d.total, d.has = n, total, d.has|hasStep
			}
		}
	case "step", "global_step":
		if n, ok := asCount(p.v); ok {
			d.step, d.has = n, d.has|hasStep
		}
	default:
		if bytes.HasPrefix(key, []byte("eval_")) {
			d.eval = true
		}
		if d.extras < len(d.extra) && (notFinite(p.v) || keepKey(key)) {
			d.extra[d.extras] = extraField{keyFrom, keyFrom + len(key), p}
			d.extras++
		}
	}
}

// keepKey reports whether a finite value of this key may belong to a series.
func keepKey(key []byte) bool {
	return len(key) > 2 && (bytes.HasPrefix(key, []byte("mem")) || bytes.HasSuffix(key, []byte("loss")) || bytes.HasSuffix(key, []byte("ppl")) || bytes.HasPrefix(key, []byte("vram")))
}
