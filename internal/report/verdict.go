package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// A verdict is the incident in five lines: what came first and where, how sure,
// what to do, how to check, and in what order memory and numbers failed. Each
// line has variants from the longest to the shortest; the first says it all.
type verdict struct {
	First, Sure, Do, Check, Order []string
}

// full are the five lines in their longest form; where nothing of a run was
// recognised only the first is there.
func (v verdict) full() []labelled {
	if v.Sure == nil {
		return []labelled{{"First", v.First[0]}}
	}
	return []labelled{{"First", v.First[0]}, {"Sure", v.Sure[0]}, {"Do", v.Do[0]}, {"Check", v.Check[0]}, {"Order", v.Order[0]}}
}

func (w *words) verdictOf() verdict {
	v := w.rawVerdict()
	for i, s := range v.Do {
		v.Do[i] = begun(s, "See: ")
	}
	mark := "See: "
	if r := w.inc.Remedy; r != nil && r.Scope == "measure" && r.Command != "" && w.inc.FirstFault != nil {
		mark = "Run: "
	}
	for i, s := range v.Check {
		v.Check[i] = begun(s, mark)
	}
	return v
}

// codeWord is a first word that is to be typed as it stands.
var codeWord = lazyre.New(`^(?:(?:cat|df|dcgmi|dmesg|docker|echo|export|findmnt|for [a-z]+ in|free -[a-z]|fuser|grep|ibstat|inquest|journalctl|kubectl|ls|lsof|namei|nc|nvidia-smi|` +
	`ps|py-spy|python3?|quota|sacct|scontrol|sinfo|squeue|ssh|sudo|torchrun|uname)(?:[ ,;]|$)|[a-z][\w-]*[_.(=/$]\S)`)

// begun is s with a capital at its start; what begins with code, which a capital
// would break, gets a mark before it.
func begun(s, mark string) string {
	if codeWord.MatchString(s) {
		return mark + s
	}
	return upper(s)
}

// onlySnapshots reports whether memory snapshots are all that there is.
func onlySnapshots(inc *incident.Incident) bool {
	for i := range inc.Artifacts {
		if k := inc.Artifacts[i].Kind; k != "memsnap" && k != "" {
			return false
		}
	}
	return slices.ContainsFunc(inc.Artifacts, func(a incident.Artifact) bool { return a.Kind == "memsnap" })
}

func (w *words) rawVerdict() verdict {
	inc := w.inc
	v := verdict{Order: w.orderWords(inc.Order)}
	f := inc.FirstFault
	if Unanswered(inc) {
		return verdict{First: []string{w.unansweredWords()}}
	}
	if f == nil {
		v.First = w.nothingWords()
		v.Sure = []string{"nothing in what was read points to a failure" + unread(inc)}
		v.Do, v.Check = []string{"nothing to change"}, []string{"nothing to check"}
		switch inc.Outcome {
		case incident.Unclear:
			v.Do = []string{"name the job's own logs as well: every rank's, and the launcher's"}
			v.Check = []string{"Run: inquest diagnose FOLDER, with all of them in it", "Run: inquest diagnose FOLDER"}
			if onlySnapshots(inc) {
				v.Do = []string{"name the job's own logs as well; inquest memory says what made the peak of memory", "name the job's own logs as well"}
			}
		case incident.Running:
			v.Do = []string{"wait, or look again later: a job that was killed without words looks the same"}
			v.Check = []string{"is the process alive? If not, the scheduler's record and the kernel log say who ended it"}
		}
		if do := w.againWords(); do != nil {
			v.Do = do
			v.Check = []string{"Run inquest on the whole file: what ended the run may stand in the missing part", "Run inquest on the whole file"}
		}
		if sure := w.failedBefore(); sure != nil {
			v.Sure = sure
			if inc.Outcome == incident.FinishedRun && len(damaged(inc)) == 0 {
				v.Do = []string{"nothing in the last launch; what the failed ones call for stands under attempts in --format json", "nothing in the last launch; see attempts in --format json"}
			}
		}
		return v
	}
	v.First, v.Sure = w.firstWords(), w.sureWords()
	r := inc.Remedy
	switch {
	case r == nil:
		v.Do, v.Check = []string{"no change is known for this"}, []string{"run it again with every rank's log kept"}
	case r.Scope == "measure" && r.Command != "":
		_, ask, _ := strings.Cut(r.Change, ": ")
		v.Do, v.Check = []string{r.Change}, []string{r.Command}
		if ask != "" {
			v.Do = append(v.Do, ask)
		}
	default:
		v.Do, v.Check = []string{r.Change}, []string{r.Verify}
	}
	return v
}

// firstWords says who failed of what, at which step and where that stands.
func (w *words) firstWords() []string {
	inc := w.inc
	f := inc.FirstFault
	what := faultWords(f) + w.phaseWords(f)
	step := ""
	if f.Step != nil {
		step = ", step " + strconv.FormatInt(*f.Step, 10)
	}
	short := ""
	if f.Rank != nil {
		short = "rank " + strconv.Itoa(*f.Rank) + ": "
	}
	long := short
	if p := who(f); p != "" {
		long = p + ": "
	}
	if f.KnownBy == "elimination" {
		if f.Rank == nil {
			return []string{what + step + " (who left the others waiting is open)", what + " (by whom is open)"}
		}
		if r := w.suspects(); len(r) > 1 {
			first := "rank " + oneOf(r)
			return []string{first + ": " + what + step + " (found by elimination: none of them left words of its own)", first + ": " + what + " (by elimination, no words of their own)", first + ": " + what}
		}
		why := " (found by elimination: it left no words of its own)"
		return []string{long + what + step + why, short + what + step + why, short + what + " (by elimination, no words of its own)"}
	}
	paren := func(s string) string {
		if s == "" {
			return ""
		}
		return " (" + s + ")"
	}
	full, base := paren(where(f.Span)), paren(w.near(f.Span))
	if inc.FirstFaultStanding == incident.Undecidable && len(inc.FirstFaultRivals) > 0 {
		others := plural(len(inc.FirstFaultRivals), "other")
		or, brief := " or one of "+others, " or "+others
		if len(inc.FirstFaultRivals) == 1 {
			r := &inc.FirstFaultRivals[0]
			brief = faultWords(r)
			if r.Rank != nil {
				brief = "rank " + strconv.Itoa(*r.Rank) + ": " + brief
			}
			or, brief = " or "+brief+paren(w.near(r.Span)), " or "+brief
		}
		return []string{long + what + step + base + or, short + what + step + base + or, short + what + base + or, short + what + base + brief, short + what + brief}
	}
	return []string{
		long + what + step + full, long + what + step + base, short + what + step + full, short + what + step + base, short + what + base, short + faultWords(f) + base,
	}
}

// suspects are the ranks found by elimination that are not ordered.
func (w *words) suspects() []int {
	out := []int{*w.inc.FirstFault.Rank}
	for i := range w.inc.FirstFaultRivals {
		if e := &w.inc.FirstFaultRivals[i]; e.KnownBy == "elimination" && e.Rank != nil {
			out = append(out, *e.Rank)
		}
	}
	return out
}

// oneOf lists numbers as alternatives: 1, 2 or 3.
func oneOf(l []int) string {
	const most = 4
	s := strconv.Itoa(l[0])
	for i, n := range l[1:] {
		switch {
		case i+2 > most && len(l) > most:
			return s + " or one of " + plural(len(l)-i-1, "other")
		case i == len(l)-2:
			s += " or " + strconv.Itoa(n)
		default:
			s += ", " + strconv.Itoa(n)
		}
	}
	return s
}

// sureWords says what standing the order and the cause have.
func (w *words) sureWords() []string {
	inc := w.inc
	first := "what failed first is " + inc.FirstFaultStanding
	if inc.FirstFaultStanding == incident.Undecidable {
		first = "what failed first cannot be decided"
		if n := len(inc.FirstFaultRivals); n > 0 {
			first += fmt.Sprintf(" (%s)", plural(n, "other candidate"))
		}
	}
	brief := "first: " + inc.FirstFaultStanding
	if len(inc.Hypotheses) == 0 {
		return []string{first + "; no known cause fits", brief + "; no known cause"}
	}
	h := inc.Hypotheses[0]
	cause := "; its cause is " + standingWords(h.Standing) + ": "
	if h.Entry == "undetermined" {
		return []string{first + "; its cause is open: " + lower(h.Title), first + "; its cause is open", brief + "; cause: open", brief + "; cause open"}
	}
	return []string{
		first + cause + lower(h.Title) + " (" + h.Entry + ")", first + cause + h.Entry,
		"first: " + inc.FirstFaultStanding + "; cause " + standingWords(h.Standing) + ": " + h.Entry,
		"first: " + inc.FirstFaultStanding + "; cause " + h.Standing + ": " + h.Entry,
		"first " + inc.FirstFaultStanding + "; " + h.Standing + ": " + h.Entry,
	}
}

func standingWords(s string) string {
	switch s {
	case incident.Established:
		return "established"
	case incident.Supported:
		return "supported, not proved"
	case incident.Possible:
		return "open, this being likeliest"
	case incident.RuledOut:
		return "ruled out"
	}
	return s
}

// causeWords is the standing of one hypothesis among others.
func causeWords(s string) string {
	if s == incident.Possible {
		return "possible"
	}
	return standingWords(s)
}

func (w *words) nothingWords() []string {
	inc := w.inc
	last, at := "", ""
	if g := inc.LastGood; g != nil {
		if g.Loss != nil {
			last = ", last loss " + number(*g.Loss)
		}
		if g.Step != nil {
			last += fmt.Sprintf(" at step %d", *g.Step)
		}
		if g.Span != nil {
			at = " (" + w.near(g.Span) + ")"
		}
	}
	s := "no failure found, and no end of the run either"
	if bad := damaged(inc); len(bad) > 0 {
		s = "no failure found in what could be read"
		switch inc.Outcome {
		case incident.FinishedRun:
			s += ", and the run finished"
		case incident.Interrupted:
			s += ", and the run was interrupted"
		}
		why := "; " + w.damageWords(&bad[0])
		if n := len(bad) - 1; n > 0 {
			why += fmt.Sprintf(", and %d more could not be read in full", n)
		}
		return []string{s + last + at + why, s + last + why, s + why, s + "; " + plural(len(bad), "artifact") + " incomplete"}
	}
	switch inc.Outcome {
	case incident.FinishedRun:
		s = "no failure: the run finished"
		if n := len(inc.Attempts); n > 1 {
			s = fmt.Sprintf("no failure: the last of %s finished", plural(n, "launch"))
		}
	case incident.Running:
		s = "no failure: the run was still going on"
	case incident.Interrupted:
		s = "no failure: the run was interrupted"
	}
	return []string{s + last + at, s + last, s}
}

// failedBefore says which launches failed before a last one that did not.
func (w *words) failedBefore() []string {
	n, last := 0, (*incident.Attempt)(nil)
	for i := range w.inc.Attempts {
		if a := &w.inc.Attempts[i]; a.FirstFault != nil {
			n, last = n+1, a
		}
	}
	if n == 0 {
		return nil
	}
	s := fmt.Sprintf("the last launch shows no failure, but %d of %s failed", n, plural(len(w.inc.Attempts), "launch"))
	which := ", launch " + last.ID
	if n > 1 {
		which = ", the latest being launch " + last.ID
	}
	what := which + ": " + faultWords(last.FirstFault)
	return []string{s + what + " (" + w.near(last.FirstFault.Span) + ")", s + what, s + which, s}
}

// damaged are the artifacts that were to be read and were not, or not to their
// end.
func damaged(inc *incident.Incident) []incident.Artifact {
	var out []incident.Artifact
	for _, a := range inc.Artifacts {
		switch a.Fate {
		case "partly read", "unreadable", "over limit":
			out = append(out, a)
		}
	}
	return out
}

// cutOff are the words of decoders about a file that stops before its end.
var cutOff = lazyre.New(`(?i)unexpected EOF|ends early|truncated|cut off|short read`)

// damageWords say what is wrong with an artifact.
func (w *words) damageWords(a *incident.Artifact) string {
	name := w.nameOf(a)
	switch {
	case a.Fate == "over limit":
		return name + " was read only up to a limit"
	case cutOff.MatchString(a.Note):
		return name + " ends early"
	case a.Fate == "unreadable":
		return name + " could not be read"
	}
	return name + " could not be read in full"
}

// againWords say how to get at what damage or a limit kept from being read, nil
// where nothing did.
func (w *words) againWords() []string {
	bad := damaged(w.inc)
	if len(bad) == 0 {
		return nil
	}
	a := &bad[0]
	do, why := "Copy "+w.nameOf(a)+" again, whole, and name it again", ""
	switch {
	case a.Path == "-":
		do = "Pipe it in again, whole"
	case a.Fate == "over limit":
		do = "Name the parts of " + w.nameOf(a) + " one by one"
	case strings.Contains(a.Note, "permission denied"):
		do = "Make " + w.nameOf(a) + " readable for yourself and name it again"
	}
	if n := len(bad) - 1; n > 0 {
		do += fmt.Sprintf(", and the same for %d more", n)
	}
	if a.Note != "" {
		why = ": " + a.Note
	}
	return []string{do + why, do}
}

// nameOf is an artifact's short name.
func (w *words) nameOf(a *incident.Artifact) string {
	if a.Path == "-" {
		return "standard input"
	}
	if s, ok := w.short[a.Path]; ok {
		return s
	}
	return a.Path
}

// Unanswered reports whether nothing of a run was recognised in what inc was
// made from: no failure, no series, no fact, no event of any kind.
func Unanswered(inc *incident.Incident) bool {
	if inc.FirstFault != nil || inc.Outcome != incident.Unclear || len(inc.Series) > 0 || inc.LastGood != nil {
		return false
	}
	for _, f := range inc.Facts {
		if len(f.Spans) > 0 {
			return false
		}
	}
	return !slices.ContainsFunc(inc.Attempts, func(a incident.Attempt) bool { return a.FirstFault != nil || a.Command != "" }) &&
		!slices.ContainsFunc(inc.Artifacts, func(a incident.Artifact) bool { return a.Recognised > 0 })
}

// nothingFound is the limit that the engine states where no artifact was found.
const nothingFound = "Nothing recognisable was found in what was named."

// unansweredWords say in one sentence why there is nothing to judge.
func (w *words) unansweredWords() string {
	all := w.inc.Artifacts
	switch len(all) {
	case 0:
		return strings.TrimSuffix(nothingFound, ".")
	case 1:
		return w.voidWords(&all[0])
	}
	var each []string
	for i := range all {
		each = append(each, w.voidWords(&all[i]))
	}
	return fmt.Sprintf("Nothing of a training run was recognised in %s: %s", plural(len(all), "artifact"), strings.Join(first(each, 3), "; "))
}

// voidWords say why an artifact holds nothing to judge.
func (w *words) voidWords(a *incident.Artifact) string {
	name, was := w.nameOf(a), "is"
	if a.Path == "-" {
		was = "was"
	}
	switch a.Fate {
	case "read":
		switch {
		case a.Size == 0:
			return name + " " + was + " empty"
		case a.Note == "blank":
			return name + " holds nothing but blanks"
		}
		return name + ": text in which nothing of a training run was recognised"
	case "not recognised":
		if a.Note != "" {
			return name + ": " + a.Note
		}
		return name + ": nothing that any reader knows"
	}
	s := w.damageWords(a)
	if a.Note != "" {
		s += " (" + a.Note + ")"
	}
	if a.Fate == "partly read" {
		s += ", and nothing of a training run stands in what could be read"
	}
	return s
}

func unread(inc *incident.Incident) string {
	n := 0
	for _, a := range inc.Artifacts {
		if a.Fate != "read" {
			n++
		}
	}
	s := ""
	switch {
	case n == 1 && len(inc.Artifacts) == 1:
		s = "; the one artifact was not read in full"
	case n == 1:
		s = fmt.Sprintf("; 1 of %d artifacts was not read in full", len(inc.Artifacts))
	case n > 1:
		s = fmt.Sprintf("; %d of %d artifacts were not read in full", n, len(inc.Artifacts))
	}
	return s
}

// orderWords relates memory and non-finite values.
func (w *words) orderWords(o incident.Order) []string {
	at := func(e *incident.Event) string {
		if e == nil || e.Span == nil {
			return ""
		}
		return " (" + w.near(e.Span) + ")"
	}
	launch, another := "", ""
	if !o.SameAttempt {
		launch, another = ", in an earlier launch", " (another launch)"
	}
	mem, nan := "device memory ran out", "non-finite value"
	switch o.Relation {
	case incident.OOMFirst:
		s := mem + "%s before the " + nan + "%s" + launch
		return []string{fmt.Sprintf(s, at(o.MemoryEvent), at(o.NonfiniteEvent)) + linkWords(o), fmt.Sprintf(s, "", "") + linkWords(o), fmt.Sprintf(s, "", ""), "device memory, then non-finite" + another}
	case incident.NaNFirst:
		s := "the " + nan + "%s came before " + mem + "%s" + launch
		return []string{fmt.Sprintf(s, at(o.NonfiniteEvent), at(o.MemoryEvent)) + linkWords(o), fmt.Sprintf(s, "", "") + linkWords(o), fmt.Sprintf(s, "", ""), "non-finite, then device memory" + another}
	case incident.OOMOnly:
		in := w.elsewhere(o.MemoryEvent)
		return []string{"device memory only" + in + ": no non-finite training value is in evidence", "device memory only" + in + ", no non-finite value", "device memory only, no non-finite value"}
	case incident.NaNOnly:
		in := w.elsewhere(o.NonfiniteEvent)
		return []string{"non-finite values only" + in + ": no device-memory failure is in evidence", "non-finite values only" + in + ", no device-memory failure", "non-finite values only, no device-memory failure"}
	case incident.Neither:
		return []string{"neither a device-memory failure nor a non-finite value is in evidence", "neither a device-memory failure nor a non-finite value", "neither device memory nor non-finite values"}
	}
	s := mem + "%s and a " + nan + "%s appeared; their order cannot be decided"
	return []string{fmt.Sprintf(s, at(o.MemoryEvent), at(o.NonfiniteEvent)) + ": " + o.Basis, fmt.Sprintf(s, at(o.MemoryEvent), at(o.NonfiniteEvent)), fmt.Sprintf(s, "", ""),
		"device memory or the " + nan + " first: undecidable"}
}

// elsewhere names the launch of an event that is not of the launch that the
// verdict is about.
func (w *words) elsewhere(e *incident.Event) string {
	n := len(w.inc.Attempts)
	if n < 2 || e == nil || e.Attempt == "" {
		return ""
	}
	main := w.inc.Attempts[n-1].ID
	if f := w.inc.FirstFault; f != nil && f.Attempt != "" {
		main = f.Attempt
	}
	if e.Attempt == main {
		return ""
	}
	return " (in launch " + e.Attempt + ")"
}

func linkWords(o incident.Order) string {
	switch o.Linked {
	case incident.LinkYes:
		return "; linked: " + o.Mechanism
	case incident.LinkUnknown:
		return "; no link in evidence"
	}
	return ""
}
