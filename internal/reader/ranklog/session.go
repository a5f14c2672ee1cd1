package ranklog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/lazyre"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/scan"
)

const (
	maxText      = 4 << 10 // bytes of an event's text and quote
	maxPerGroup  = 200     // events of one wording, kind and rank in one launch
	maxCreators  = 32      // processes whose communicators are counted: ranks are alike
	repeatLines  = 50      // how far apart the copies of one message stand
	maxWriters   = 1 << 16 // ranks or processes that are told apart
	maxLineParts = 4096    // carriage-return frames of one line that are looked at
)

// A session is one pass over one artifact.
type session struct {
	want  *wanted
	art   evidence.Artifact
	sink  reader.Sink
	base  evidence.Who // what the artifact's owner says of lines without a prefix
	frame framing
	wide  *wideReader
	m     *metrics

	launch    int
	marked    map[int]bool // ranks that announced this launch
	ranSteps  bool         // this launch has logged steps
	ended     bool         // this launch has shown an end: fault, exit, stop
	stopped   bool         // by a stop from outside
	started   string       // the last command line that started something
	startedAt int64        // its line

	lastStep int64
	steps    map[int]*int64 // last step by rank
	stepOwn  *int64         // that of stepRank
	stepRank int
	pids     map[procKey]int    // rank by process
	comms    map[procKey]member // largest communicator by process
	world    int                // ranks of the largest one
	learned  bool               // this launch has logged a loss
	recent   stampAt
	env      string // entries of an environment that stand on lines of their own

	// What is followed over several lines.
	traces  map[key]*trace
	joins   []*join
	summary map[key]*summary
	partial map[string]*partialLine
	tables  map[key]*memText // memory_summary
	dumps   map[key]*memText // memory_stats

	expired   int64 // line at which silent tracebacks were last looked for
	afterFile int64 // the last line that was a frame of no open traceback
	forward   forwardStack
	groups    map[groupKey]*group
	creators  map[procKey]bool // of communicators, up to maxCreators
	quiet     map[quietKey]*postponed
	matched   map[*wording]int      // events of each wording in this launch
	seen      map[string][]sighting // by meaning
	stated    map[string]bool       // facts that wordings stated in this launch
	setting   settings
	damage    damage

	// The line in hand.
	line   *scan.Line
	mhits  []scan.Hit
	whits  []scan.Hit
	parts  []frame
	id     func() (evidence.Who, evidence.Stamp)
	idHead head
	idOK   bool
}

// A procKey is a process or device of one host.
type procKey struct {
	host string
	n    int
}

// A stampAt is a time and the line that had it.
type stampAt struct {
	stamp evidence.Stamp
	line  int64
	level byte
	fails bool // its words say that an exception follows
	key   key
	who   evidence.Who
}

// announces reports whether the line was an error that its writer logged right
// above m: by its level, or by words. The writer is the same by its prefix, or by the rank
// that both state.
func (r stampAt) announces(m *message) bool {
	one := r.key == m.key || r.who.Rank != evidence.None && r.who.Rank == m.who.Rank && r.fails
	return r.line > 0 && r.line < m.span.Line && m.span.Line-r.line <= 2 && one && (r.level == 'E' || r.level == 'F' || r.fails)
}

// announced matches what a handler logs right before it prints a traceback.
var announced = lazyre.New(`(?i)\b(?:(?:caught|uncaught|unhandled|raised|fatal|an?) exception|exception (?:in|at|during|while|occurred|on|of|from)|(?:failed|crashed) with(?: an?)? (?:exception|error))\b`)

type damage struct {
	badUTF8, lines int64
	span           evidence.Span
}

// A message is one carriage-return frame of a line, normalised.
type message struct {
	head
	text string // behind the prefixes
	full string // before they were peeled
	raw  []byte // the bytes that span points at
	span evidence.Span
	hits []scan.Hit // ours, in this frame
	met  bool       // the line has metric hits
	oom  bool       // read as an allocator's out-of-memory message

	command  string // shell command line that it is
	launched bool   // a launch event was made of it, or it is known to be none
	ranked   bool   // a rank_info event was made of it
}

func newSession(want *wanted, art evidence.Artifact, sink reader.Sink, headText []byte) *session {
	s := &session{
		want: want, art: art, sink: sink, lastStep: evidence.None,
		marked: map[int]bool{}, steps: map[int]*int64{}, stated: map[string]bool{}, pids: map[procKey]int{}, comms: map[procKey]member{},
		traces: map[key]*trace{}, summary: map[key]*summary{}, partial: map[string]*partialLine{}, tables: map[key]*memText{}, dumps: map[key]*memText{},
		groups: map[groupKey]*group{}, creators: map[procKey]bool{}, quiet: map[quietKey]*postponed{}, matched: map[*wording]int{}, seen: map[string][]sighting{},
	}
	s.base = evidence.Nobody()
	s.base.Attempt, s.base.Host = art.Owner.Attempt, art.Owner.Host
	if art.Owner != (evidence.Owner{}) { // the zero Owner states nothing, not rank 0
		s.base.Rank, s.base.LocalRank = art.Owner.Rank, art.Owner.LocalRank
	}
	s.frame = s.survey(headText)
	s.id = s.identify
	return s
}

// run reads src to its end.
func (s *session) run(ctx context.Context, src io.Reader) error {
	s.m = newMetrics(spanFixer{s}, s.art.Path)
	stats, err := s.want.matcher.Lines(ctx, src, s.visit)
	if err != nil && ctx.Err() != nil {
		return err
	}
	s.finish(stats)
	return err
}

// A spanFixer is the sink that metric lines see: the artifact's own, with spans
// of UTF-16 text mapped to the original bytes.
type spanFixer struct{ s *session }

func (f spanFixer) Event(e evidence.Event) {
	if e.Who.Attempt == "" {
		e.Who.Attempt = f.s.base.Attempt
	}
	f.s.fix(&e.Span)
	f.s.sink.Event(e)
}
func (f spanFixer) Series(k evidence.SeriesKey) *evidence.Series {
	switch k.Name {
	case "loss", "grad_norm":
		f.s.learned = true
	}
	return f.s.sink.Series(k)
}
func (f spanFixer) Owner(o evidence.Owner)             { f.s.sink.Owner(o) }
func (f spanFixer) Damage(sp evidence.Span, err error) { f.s.fix(&sp); f.s.sink.Damage(sp, err) }
func (f spanFixer) Fact(x evidence.Fact) {
	f.s.fix(&x.Span)
	f.s.sink.Fact(x)
}

// fix maps a span in the line in hand, of transcoded text, to the artifact's own
// bytes.
func (s *session) fix(sp *evidence.Span) {
	if s.wide == nil || sp.Kind != "text" || s.line == nil {
		return
	}
	from := sp.Offset - s.line.Offset - s.line.WindowAt
	if from < 0 || from+sp.Length > int64(len(s.line.Text)) {
		return
	}
	sp.Offset, sp.Length = s.wide.original(s.line.Offset, s.line.Text[:from], s.line.Text[from:from+sp.Length])
}

// visit is called for each line with a hit and each line that was asked for.
func (s *session) visit(l *scan.Line) bool {
	s.line, s.idOK = l, false
	s.mhits, s.whits = s.mhits[:0], s.whits[:0]
	for _, h := range l.Hits {
		if h.Atom >= s.want.metrics {
			h.Atom -= s.want.metrics
			s.mhits = append(s.mhits, h)
		} else if s.want.what[h.Atom] != aSetting || s.setting.open() {
			s.whits = append(s.whits, h)
		}
	}
	source := s.afterFile > 0 && s.afterFile == l.Number-1 // the code of a frame
	if len(s.whits) == 0 && !s.following() && !source {
		if len(s.mhits) > 0 {
			s.metric()
		}
		return false
	}
	if !s.following() && s.postpone(l) {
		return false
	}
	s.slow(l)
	return s.following()
}

// following reports whether something needs the next line.
func (s *session) following() bool {
	return s.afterFile == s.line.Number || len(s.traces) > 0 || len(s.joins) > 0 || len(s.summary) > 0 || len(s.partial) > 0 || s.setting.inBlock() || s.inMemory()
}

// metric hands the line in hand to the metric parsers.
func (s *session) metric() {
	step, restarted := s.m.line(s.line.Text, s.line, s.mhits, s.id, s.launch)
	if restarted {
		s.newLaunch()
	}
	if step == evidence.None {
		return
	}
	s.lastStep, s.ranSteps = step, true
	if s.m.rank != evidence.None {
		s.stepped(s.m.rank, step)
	}
}

// stepped notes the last step of a rank.
func (s *session) stepped(rank int, step int64) {
	if s.stepOwn == nil || s.stepRank != rank {
		own := s.steps[rank]
		if own == nil {
			if len(s.steps) >= maxWriters {
				return
			}
			own = new(int64)
			s.steps[rank] = own
		}
		s.stepOwn, s.stepRank = own, rank
	}
	*s.stepOwn = step
}

// identify gives the identity and time of the line in hand.
func (s *session) identify() (evidence.Who, evidence.Stamp) {
	if !s.idOK {
		text := s.line.Text
		for i := 0; i < 4 && len(text) > 0 && text[0] == '\r'; i++ {
			text = text[1:]
		}
		// Prefixes stand in the first few hundred bytes of the first frame.
		text = text[:min(len(text), 400)]
		f := unframe(text)
		h := s.emptyHead()
		if f.stamp.Known() {
			h.stamp = f.stamp
			h.setLevel(framedLevel(f.body))
		}
		if f.host != "" {
			h.setHost(f.host)
		}
		s.frame.peel(clean(f.body), &h)
		s.idHead, s.idOK = h, true
	}
	who := s.idHead.who
	who.Launch = s.launch
	if t := s.traces[s.idHead.key]; t != nil && !s.idHead.stamp.Known() { // the message of an exception
		return who, t.stamp
	}
	return who, s.idHead.stamp
}

// framedLevel is the level word behind a time with a zone, which may be the logger's
// own and not a container's.
func framedLevel(body []byte) byte {
	code, n := level(string(body[:min(len(body), 16)]))
	if n == 0 || n >= len(body) || body[n] != ' ' && body[n] != ':' {
		return 0
	}
	return code
}

func (s *session) emptyHead() head { return head{who: s.base, key: noKey} }

// remember keeps the last time seen, for lines right behind it that have none.
func (s *session) remember(h *head, fails bool) {
	if h.stamp.Known() {
		s.recent = stampAt{stamp: h.stamp, line: s.line.Number, level: h.level, key: h.key, who: h.who, fails: fails}
	}
}

// slow normalises the line in hand and takes it apart.
func (s *session) slow(l *scan.Line) {
	text := l.Text
	s.damage.lines++
	if !utf8.Valid(text) && !cutRune(text) {
		if s.damage.badUTF8 == 0 {
			s.damage.span = evidence.Span{Artifact: s.art.Path, Kind: "text", Line: l.Number, Offset: l.Offset, Length: l.Length}
		}
		s.damage.badUTF8++
	}
	f := unframe(text)
	whole := f.at < 0 // decoded: the span is the whole line
	var first *partialLine
	if p := s.partial[f.stream]; p != nil || f.partial {
		if f.partial && (p == nil || len(p.body) < 64<<10) {
			if p == nil {
				p = &partialLine{span: s.spanOf(0, len(text)), stamp: f.stamp}
				s.partial[f.stream] = p
			}
			p.body = append(p.body, f.body...)
			p.hits = append(p.hits, s.whits...)
			return
		}
		if p != nil {
			delete(s.partial, f.stream)
			f.body, f.stamp, whole, first = append(p.body, f.body...), p.stamp, true, p
			s.whits = append(s.whits, p.hits...)
		}
	}
	for stream, p := range s.partial { // its end is missing
		if l.Number-p.span.Line > maxPartialLines {
			delete(s.partial, stream)
		}
	}
	s.expire(l.Number)
	s.parts = frames(s.parts, f.body)
	code := false
	for i, part := range s.parts {
		last := i == len(s.parts)-1
		hits := s.whits
		if !whole && len(s.parts) > 1 {
			hits = hitsIn(s.whits, part.start+f.at, part.end+f.at)
			if len(hits) == 0 && !last || i > maxLineParts {
				continue
			}
		}
		m := s.message(f, part, whole)
		if first != nil {
			m.span = first.span // where it begins
		}
		m.hits = hits
		m.met = len(s.mhits) > 0
		if s.take(m) {
			code = true
		}
	}
	if len(s.mhits) > 0 && !code && f.at >= 0 {
		s.metric()
	}
}

// maxPartialLines is how many lines apart the pieces of one line may stand.
const maxPartialLines = 200

// A partialLine is a long line that the container runtime wrote in pieces.
type partialLine struct {
	body  []byte
	hits  []scan.Hit
	span  evidence.Span
	stamp evidence.Stamp
}

// cutRune reports whether text is valid but for one rune cut at either end, as
// progress bars and windows leave it.
func cutRune(text []byte) bool {
	for i := 0; i < 3 && len(text) > 0 && !utf8.RuneStart(text[0]); i++ {
		text = text[1:]
	}
	for i := 0; i < 3 && len(text) > 0 && !utf8.Valid(text[max(0, len(text)-4):]); i++ {
		text = text[:len(text)-1]
	}
	return utf8.Valid(text)
}

// hitsIn returns the hits that begin in text[from:to].
func hitsIn(hits []scan.Hit, from, to int) []scan.Hit {
	var out []scan.Hit
	for _, h := range hits {
		if h.Off >= from && h.Off < to {
			out = append(out, h)
		}
	}
	return out
}

// spanOf is the span of text[from:to] of the line in hand.
func (s *session) spanOf(from, to int) evidence.Span {
	if to-from > maxText {
		to = from + maxText
	}
	at := s.line.WindowAt + int64(from)
	sp := evidence.Span{
		Artifact: s.art.Path, Kind: "text", Line: s.line.Number, Column: int(at) + 1,
		Offset: s.line.Offset + at, Length: int64(to - from), Quote: string(s.line.Text[from:to]),
	}
	s.fix(&sp)
	return sp
}

// message normalises one frame of the line in hand.
func (s *session) message(f framed, part frame, whole bool) *message {
	raw := f.body[part.start:part.end]
	m := &message{raw: raw, head: s.emptyHead()}
	if f.stamp.Known() {
		m.stamp = f.stamp
		m.setLevel(framedLevel(f.body))
	}
	if f.host != "" {
		m.setHost(f.host)
	}
	m.full = clean(raw)
	at := s.frame.peel(m.full, &m.head)
	m.text = m.full[at:]
	if whole {
		m.span = s.spanOf(0, len(s.line.Text))
	} else {
		m.span = s.spanOf(f.at+part.start, f.at+part.end)
	}
	s.remember(&m.head, strings.Contains(m.text, "xception") && announced.MatchString(m.text))
	s.idHead, s.idOK = m.head, true
	if m.who.PID != evidence.None && m.who.Rank != evidence.None && len(s.pids) < maxWriters {
		s.pids[procKey{m.who.Host, m.who.PID}] = m.who.Rank
	}
	return m
}

// take understands one message and reports whether its numbers mean nothing of
// their own: source code quoted in a traceback, or figures of an allocator's
// message that has several lines.
func (s *session) take(m *message) (code bool) {
	if s.inQuote(m) { // the summary indents the traceback
		m.text = strings.TrimPrefix(m.text, "  ")
	}
	if b := s.summary[m.key]; b != nil && b.event != nil && summaryTrace.MatchString(m.text) {
		s.feedSummary(m) // before the traceback takes the line
	}
	tb, role := s.follow(m)
	switch role {
	case roleCode:
		if len(m.hits) > 0 && isFrame(m.text) {
			s.match(m, nil, role) // the path names the framework
		}
		return true
	case roleInside:
		if len(m.hits) > 0 {
			s.match(m, nil, role)
		}
		return false
	}
	figures := s.feedJoins(m)
	s.feedSummary(m)
	s.setting.follow(s, m)
	s.memory(m)
	if len(m.hits) > 0 {
		s.match(m, tb, role)
	}
	s.learn(m)
	if tb != nil && role == roleHeader {
		tb.header(s, m)
	}
	return figures
}

// match looks for every structure and wording that the hits announce.
func (s *session) match(m *message, tb *trace, role traceRole) {
	var has [aTime + 1]bool
	var words []*wording
	for _, h := range m.hits {
		has[s.want.what[h.Atom]] = true
		for _, w := range s.want.of[h.Atom] {
			if w.on(s.art.Kind) && !containsWord(words, w) && (role != roleCode || w.Kind == "") {
				words = append(words, w)
			}
		}
	}
	if has[aDeviceOOM] && role != roleCode && role != roleInside {
		s.deviceOOM(m, tb)
	}
	if has[aPrompt] && role != roleCode && role != roleInside {
		m.prompt()
	}
	if len(words) > 0 {
		s.matchWords(m, words, tb)
	}
	if role == roleCode || role == roleInside {
		return
	}
	if has[aSummary] {
		s.startSummary(m)
	}
	if m.command != "" && !m.launched {
		s.launchOf(m)
	}
	if has[aSetting] && role == roleNone {
		s.setting.line(s, m)
	}
}

func containsWord(list []*wording, w *wording) bool {
	for _, x := range list {
		if x == w {
			return true
		}
	}
	return false
}

// newLaunch begins the next launch of this artifact.
func (s *session) newLaunch() {
	s.resume()
	for _, t := range s.openTraces() { // these belong to the launch that ends
		t.close(s)
	}
	s.closeMemory()
	s.flushComms()
	s.flushGroups()
	s.launch++
	s.ranSteps, s.ended, s.stopped, s.learned = false, false, false, false
	s.lastStep = evidence.None
	clear(s.marked)
	clear(s.matched)
	clear(s.stated)
	clear(s.steps)
	s.stepOwn = nil
	clear(s.pids)
	clear(s.creators)
	s.setting.newLaunch()
}

// finish closes what is still open at the end of the artifact.
func (s *session) finish(stats scan.Stats) {
	s.resume()
	s.line = nil
	for _, j := range s.joins {
		j.end(s)
	}
	s.joins = nil
	for _, t := range s.openTraces() {
		t.cutOff(s, stats)
		t.close(s)
	}
	for _, b := range s.openSummaries() {
		b.end(s)
	}
	s.closeMemory()
	s.flushComms()
	s.flushGroups()
	s.m.end()
	if s.damage.badUTF8 > 0 && s.damage.badUTF8*20 > s.damage.lines {
		s.sink.Damage(s.damage.span, fmt.Errorf("invalid UTF-8 in %d of %d lines looked at", s.damage.badUTF8, s.damage.lines))
	}
	if stats.LongLines > 0 {
		s.sink.Damage(evidence.Span{Artifact: s.art.Path, Kind: "text", Length: stats.Bytes}, fmt.Errorf("lines over %d KiB, read only around what was found in them: %d", scan.MaxLine>>10, stats.LongLines))
	}
	if stats.Bytes > 0 && !stats.EndsInNewline {
		s.sink.Damage(evidence.Span{Artifact: s.art.Path, Kind: "text", Line: stats.Lines, Offset: stats.Bytes, Length: 0}, errCut)
	}
}

var errCut = errors.New("last line has no end: the text may be cut off here")
