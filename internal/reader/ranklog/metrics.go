package ranklog

import (
	"bytes"
	"strings"
	"sync"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/scan"
)

// A metricShape says which parser reads the lines that an atom selects.
type metricShape uint8

const (
	shapeBar      metricShape = 1 << iota // a tqdm bar
	shapeDict                             // a Python dict printed by a trainer
	shapeMegatron                         // Megatron's iteration line
	shapeFields                           // key and value pairs in any order
	shapeHeader                           // Ultralytics column names
	shapeTuple                            // name_train_20, 1.5, [1.5, 0.2]
	shapeStack                            // the log names DeepSpeed
	shapeTimer                            // DeepSpeed's throughput timer, else shapeFields
	shapeLoss     metricShape = 0         // shapeDict behind a quote, else shapeFields
)

// metricLiterals are the literals of metric and progress lines with the parser
// of each. They are chosen to be rare elsewhere: tracebacks and configuration
// dumps hold few of them, and those are turned away by the parsers. The lines of
// the common trainers are selected by one literal each; where another one stands
// on every such line too, it is taken out there, which halves the cost of finding
// them.
var metricLiterals = [...]struct {
	text  string
	fold  bool
	shape metricShape
}{
	{"it/s", false, shapeBar}, {"s/it", false, shapeBar},
	{"{'eval_", false, shapeDict}, {"{'train_runtime'", false, shapeDict},
	{"elapsed time per iteration", false, shapeMegatron},
	{"loss':", true, shapeLoss}, // a dict's key, or the end of one
	{"loss:", true, shapeFields}, {"loss=", true, shapeFields}, {"loss ", true, shapeFields}, {"loss\":", true, shapeFields},
	{"loss_step=", false, shapeFields}, {"loss/train/total", false, shapeFields}, {"loss[", true, shapeFields},
	{"{'loss_", false, shapeFields}, {"{'loss/", false, shapeFields}, {"lm loss value", false, shapeFields}, {" : Cost ", false, shapeFields}, {"xent: ", false, shapeFields},
	// Not behind the loss of a dict, where "grad_norm': " stands on most lines.
	{"grad_norm:", false, shapeFields}, {"grad_norm=", false, shapeFields}, {"grad_norm ", false, shapeFields}, {"grad_norm\"", false, shapeFields}, {"{'grad_", false, shapeFields},
	{"grad norm", false, shapeFields}, {"gnorm", true, shapeFields},
	{"kipped=", false, shapeFields}, {"_train_", false, shapeTuple},
	{"[batch=", false, shapeFields}, {"MemAllocated=", false, shapeTimer}, {" Max_MA ", false, shapeFields}, {"memory (MB) |", false, shapeFields},
	{"current alloc=", false, shapeFields}, {"memory allocated", true, shapeFields}, {"memory reserved", true, shapeFields}, {"allocated ", false, shapeFields},
	{"memory: ", false, shapeFields}, {"alloc=", false, shapeFields}, {"gpu_mem:", false, shapeFields}, {"gpu_mem=", false, shapeFields}, {"gpu_mem ", false, shapeFields}, {"gpu_mem_", false, shapeFields}, {"gpu_memory", false, shapeFields}, {"GPU_mem ", false, shapeHeader},
	{"Free GPU", true, shapeFields}, {"device free", false, shapeFields}, {"peak reserved", false, shapeFields}, {"peak alloc", false, shapeFields},
	{"peak memory consumption", false, shapeFields}, {"memory/peak_", false, shapeFields}, {"memory/current_", false, shapeFields},
	{"[hostmem]", false, shapeFields}, {"Virtual Memory:", false, shapeFields}, {"avail mem=", false, shapeFields}, {"mem usage=", false, shapeFields}, {"Using (GB)", false, shapeFields},
	{"reduced_train_", false, shapeFields}, {"DeepSpeed", false, shapeStack}, {"deepspeed", false, shapeStack},
}

// metricExcept takes hits out that another literal selects the line for.
var metricExcept = map[string]*scan.Except{
	"loss=":     {Behind: []string{"it/s, ", "s/it, "}},
	"loss ":     {Before: []string{"scale:"}}, // Megatron, beside its loss
	"grad norm": {Behind: []string{" | "}},    // Megatron
}

// metricAtoms returns the literals whose hits select a line for metrics.line.
func metricAtoms() []scan.Atom {
	out := make([]scan.Atom, len(metricLiterals))
	for i, l := range metricLiterals {
		bar := l.shape == shapeBar
		out[i] = scan.Atom{Text: l.text, Fold: l.fold, Except: metricExcept[l.text], Leads: bar, Follows: bar || l.text == "loss="}
	}
	return out
}

// maxFrames bounds the carriage-return frames of one line that are read when
// one of them may hold a non-finite value.
const maxFrames = 4096

// A metricSource names the format that printed a value; it is part of the series key,
// so that two printers of one quantity never mix.
type metricSource uint8

const (
	srcGeneric metricSource = iota
	srcHF
	srcMegatron
	srcTitan
	srcTqdm
	srcLightning
	srcDeepSpeed
	srcNeMo
	srcNanoGPT
	srcFairseq
	srcDetectron
	srcMM
	srcYOLO
	srcComposer
	srcKeras
	srcMaxText
	srcMarian
)

var sourceNames = [...]string{"generic", "hf", "megatron", "titan", "tqdm", "lightning", "deepspeed", "nemo", "nanogpt", "fairseq", "detectron2", "mm", "yolo", "composer", "keras", "maxtext", "marian"}

// lossTrust says what a loss printed by a source can be believed for.
func lossTrust(s metricSource) evidence.Trust {
	switch s {
	case srcHF:
		return evidence.Filtered
	case srcMegatron:
		return evidence.Omitted
	case srcDetectron, srcKeras, srcYOLO:
		return evidence.Smoothed
	}
	return evidence.Raw
}

// metrics turns the metric and progress lines of one artifact into series,
// non-finite events and the count of steps. It allocates per series, not per
// line, and keeps no line.
type metrics struct {
	s        reader.Sink
	artifact string

	// The line being read.
	raw     []byte
	l       *scan.Line
	id      func() (evidence.Who, evidence.Stamp)
	who     evidence.Who
	stamp   evidence.Stamp
	known   bool // who and stamp hold this line's identity
	launch  int
	rank    int
	owner   uint64 // the rank, and the launch that values count for
	step    int64
	frame   int // offset in raw of the frame being read
	frameTo int
	// A long line comes in windows that may overlap: what of it was read.
	doneLine, done int64
	best           badCandidate
	point          evidence.Point // scratch of add; it holds a Stamp inside append only
	again          bool           // the main step counter restarted

	names    map[string]uint16 // series that are not canonical
	tracks   map[uint64]*metricTrack
	recent   [1 << recentBits]*metricTrack
	recentID [1 << recentBits]uint64
	events   int
	full     bool       // the series limit was reported
	bad      []scan.Hit // scratch of mayBeBad
	timed    *evidence.Stamp
	timeOf   int64 // the line that timed belongs to

	ranks    map[string]int // rank of a line prefix
	baseRank int
	haveBase bool

	bar      barState
	desc     barDesc
	hf       map[int]*hfState // by rank
	megatron map[int]*megatronState
	// Those of the owner before, nil where it was not asked for.
	lastHF                    *hfState
	lastMegatron              *megatronState
	lastHFOwner, lastMegOwner uint64
	counters                  map[counterKey]*stepCounter
	// The counter before: most lines ask for the same one.
	lastCounter    *stepCounter
	lastCounterKey counterKey
	yolo           []yoloColumn
	deepspeed      bool
	epochSeen      bool    // some metric line names an epoch
	epochZero      bool    // epochs are counted from 0
	block          int64   // step of a Composer block, None outside
	hostLimit      float64 // last host memory limit stated, bytes
	total          int64   // last total of steps reported as a fact
	totalAt        int     // its launch

	f metricFields
	d dictLine

	form        dictForm        // of the dict before
	ofDict      [3]trackOf      // loss, gradient norm and learning rate of dicts
	fields      []megatronField // of Megatron's line before
	iterationAt int             // where its word stood
	ofSkipped   trackOf
}

func newMetrics(s reader.Sink, artifact string) *metrics {
	return &metrics{
		s: s, artifact: artifact,
		names: map[string]uint16{}, tracks: map[uint64]*metricTrack{}, ranks: map[string]int{},
		hf: map[int]*hfState{}, megatron: map[int]*megatronState{}, counters: map[counterKey]*stepCounter{},
		ofDict: ofDicts, ofSkipped: trackOf{slot: metricSlot{id: idSkipped, src: srcMegatron, trust: evidence.Raw}},
		baseRank: evidence.None, block: evidence.None, launch: -1, total: -1,
	}
}

// ofDicts are the slots of dicts that most have: loss, gradient norm and learning
// rate.
var ofDicts = [3]trackOf{
	{slot: metricSlot{id: idLoss, src: srcHF, trust: evidence.Filtered}},
	{slot: metricSlot{id: idGradNorm, src: srcHF, trust: evidence.Raw}},
	{slot: metricSlot{id: idLR, src: srcHF, trust: evidence.Raw}},
}

// line reads one line that has metric hits. raw is the line as it stands, with
// escapes, carriage returns and prefixes; hits are the metric hits, Off in raw,
// Atom an index of metricAtoms. id gives the line's identity and time and is
// called at most once, and only where it is needed. It returns the last step
// understood, or evidence.None, and whether the main step counter went back to
// its beginning; the values of such a line already count for launch+1.
func (m *metrics) line(raw []byte, l *scan.Line, hits []scan.Hit, id func() (evidence.Who, evidence.Stamp), launch int) (step int64, restarted bool) {
	var shapes metricShape
	dictAt, timerAt := -1, -1
	for _, h := range hits {
		if int(h.Atom) >= len(metricLiterals) {
			continue
		}
		s := metricLiterals[h.Atom].shape
		if s == shapeLoss {
			s = shapeFields
			if h.Off > 0 && raw[h.Off-1] == '\'' && raw[h.Off] == 'l' {
				s |= shapeDict
			}
		}
		if s&shapeDict != 0 && dictAt < 0 {
			dictAt = h.Off
		}
		if s == shapeTimer && timerAt < 0 {
			timerAt = h.Off
		}
		shapes |= s
	}
	if shapes&shapeStack != 0 {
		m.deepspeed = true
		if shapes == shapeStack {
			return evidence.None, false
		}
	}
	m.begin(raw, l, id, launch)
	switch {
	case shapes&shapeHeader != 0 && m.header(raw):
	case shapes&shapeBar != 0:
		if dictAt < 0 {
			m.bars(raw)
			break
		}
		m.bars(raw[:max(0, bytes.LastIndexByte(raw[:dictAt+1], '{'))])
		if !m.dict(raw, dictAt) {
			m.frames(raw)
		}
	case shapes&shapeMegatron != 0 && m.iteration(raw):
	case shapes&shapeDict != 0 && m.dict(raw, dictAt):
	case shapes&shapeTuple != 0 && m.tuple(raw):
	case shapes == shapeTimer && m.timer(raw, timerAt):
	case shapes&(shapeFields|shapeDict|shapeMegatron|shapeTimer) != 0:
		m.frames(raw)
	}
	if m.again {
		m.launch = launch + 1
	}
	return m.step, m.again
}

// begin prepares for a line.
func (m *metrics) begin(raw []byte, l *scan.Line, id func() (evidence.Who, evidence.Stamp), launch int) {
	m.raw, m.l, m.id = raw, l, id
	m.known, m.again = false, false
	m.step = evidence.None
	m.frame, m.frameTo = 0, len(raw)
	if launch != m.launch {
		m.launch = launch
		m.bar = barState{}
		m.lastCounter, m.lastHF, m.lastMegatron = nil, nil, nil
		clear(m.counters)
		clear(m.hf)
		clear(m.megatron)
		m.block = evidence.None
	}
	m.rank = m.lineRank(raw)
	m.owner = ownerOf(launch, m.rank)
}

// end is called after the last line.
func (m *metrics) end() {
	m.raw, m.l, m.id = nil, nil, nil
}

// identity returns who wrote the line and when.
func (m *metrics) identity() (evidence.Who, evidence.Stamp) {
	if !m.known {
		m.known = true
		m.who, m.stamp = evidence.Nobody(), evidence.Stamp{}
		if m.id != nil {
			m.who, m.stamp = m.id()
		}
	}
	return m.who, m.stamp
}

// time returns the line's time for a point; nil when it has none.
func (m *metrics) time() *evidence.Stamp {
	_, st := m.identity()
	if !st.Known() {
		return nil
	}
	if m.timeOf != m.l.Number || m.timed == nil {
		st.Written = strings.Clone(st.Written) // not the whole line with it
		m.timed, m.timeOf = &st, m.l.Number
	}
	return m.timed
}

// lineRank returns the rank that printed raw. The prefix of a line decides;
// what identity makes of a prefix is remembered, so that a log in which every
// line has one costs a map look-up. Lines without a prefix belong to the
// artifact's own rank.
func (m *metrics) lineRank(raw []byte) int {
	p := rankPrefix(raw)
	if p == nil {
		if !m.haveBase {
			m.haveBase = true
			who, _ := m.identity()
			m.baseRank = who.Rank
		}
		return m.baseRank
	}
	if r, ok := m.ranks[string(p)]; ok {
		return r
	}
	who, _ := m.identity()
	if len(m.ranks) < 1<<14 {
		m.ranks[string(p)] = who.Rank
	}
	return who.Rank
}

// rankPrefix returns the part of raw that names a rank or process at its
// beginning: "[rank3]", "[Rank 3]", "(RayTrainWorker pid=7, ip=…)", "3: ",
// "node-3: ". nil means that there is none.
func rankPrefix(raw []byte) []byte {
	if len(raw) < 4 {
		return nil
	}
	blanks := 0 // srun -l sets the number to the right
	for blanks < 5 && raw[blanks] == ' ' && blanks < len(raw)-3 {
		blanks++
	}
	if blanks > 0 {
		for i := blanks; i < len(raw)-1 && i < blanks+6; i++ {
			if raw[i]-'0' <= 9 {
				continue
			}
			if raw[i] == ':' && raw[i+1] == ' ' && i > blanks {
				return raw[:i+1]
			}
			break
		}
		return nil
	}
	switch c := raw[0]; {
	case c == '[':
		if raw[1]|0x20 == 'r' && raw[2]|0x20 == 'a' {
			if i := bytes.IndexByte(raw[:min(len(raw), 24)], ']'); i > 0 {
				return raw[:i+1]
			}
		}
	case c == '(':
		if i := bytes.IndexByte(raw[:min(len(raw), 96)], ')'); i > 0 {
			return raw[:i+1]
		}
	case c-'0' <= 9 || isLetter(c):
		for i := 1; i < len(raw)-1 && i < 64; i++ {
			switch c := raw[i]; {
			case c == ':':
				if raw[i+1] == ' ' && i+2 < len(raw) && (raw[i+2] == '[' || raw[i+2] == ' ' || raw[i+2] == '{' || raw[0]-'0' <= 9) {
					return raw[:i+1]
				}
				return nil
			case isLetter(c) || c-'0' <= 9 || c == '-' || c == '_' || c == '.':
			default:
				return nil
			}
		}
	}
	return nil
}

// frames reads key and value pairs. Of a line with carriage returns or
// backspaces the last frame counts, and all of them where one may hold a
// non-finite value.
func (m *metrics) frames(raw []byte) {
	if bytes.IndexByte(raw, '\r') < 0 && bytes.IndexByte(raw, '\b') < 0 {
		m.pairs(raw, 0, len(raw))
		return
	}
	m.eachFrame(raw, func(from, to int) { m.pairs(raw, from, to) })
}

// eachFrame calls f for the last frame of raw that is not blank, or, where raw may hold a
// non-finite value, for each frame in order. Frames that an earlier window of
// the line held are left out.
func (m *metrics) eachFrame(raw []byte, f func(from, to int)) {
	end := len(raw)
	for end > 0 && (isErase(raw[end-1]) || raw[end-1] == ' ') {
		end--
	}
	from := end // of the last frame
	for from > 0 && !isErase(raw[from-1]) {
		from--
	}
	if m.l.Number != m.doneLine {
		m.doneLine, m.done = m.l.Number, 0
	}
	if from == 0 || !m.mayBeBad(raw[:from]) {
		if m.at(end) > m.done {
			m.done = m.at(end)
			f(from, end)
		}
		return
	}
	for i, n := 0, 0; i < end && n < maxFrames; n++ {
		for i < end && isErase(raw[i]) {
			i++
		}
		j := i
		for j < end && !isErase(raw[j]) {
			j++
		}
		if j > i && m.at(j) > m.done {
			m.done = m.at(j)
			f(i, j)
		}
		i = j
	}
}

func isErase(c byte) bool { return c == '\r' || c == '\b' }

// mayBeBad reports whether b holds the letters of a non-finite value. A rate of
// "inf it/s" does not count. One line of bars has thousands of bytes: one pass
// for all literals takes a seventh of the time of bytes.Contains for each.
func (m *metrics) mayBeBad(b []byte) bool {
	m.bad = badMatcher().Scan(b, m.bad[:0])
	return len(m.bad) > 0
}

var badMatcher = sync.OnceValue(func() *scan.Matcher {
	return scan.New([]scan.Atom{{Text: "nan", Fold: true}, {Text: "=inf"}, {Text: "=-inf"}, {Text: ": inf"}, {Text: " INF"}})
})
