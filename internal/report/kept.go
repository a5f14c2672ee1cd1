package report

import (
	"cmp"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// keptFormats and incidentsFormats list the formats of a kept incident and of a list of them.
// Adding one is a row here and a file beside this one.
var (
	keptFormats = []format[*incident.Kept]{
		{"text", writeKeptText},
		{"json", writeJSON[*incident.Kept]},
		{"markdown", writeKeptMarkdown},
		{"html", writeKeptHTML},
	}
	incidentsFormats = []format[*incident.Incidents]{
		{"text", writeIncidentsText},
		{"json", writeJSON[*incident.Incidents]},
		{"markdown", writeIncidentsMarkdown},
	}
)

// KeptFormats returns the names of the formats of WriteKept, the default first.
func KeptFormats() []string { return formatNames(keptFormats) }

// IncidentsFormats returns the names of the formats of WriteIncidents, the default first.
func IncidentsFormats() []string { return formatNames(incidentsFormats) }

// WriteKept renders a kept incident in the named format.
func WriteKept(w io.Writer, format string, k *incident.Kept, o Options) error {
	return writeIn(keptFormats, w, format, k, o)
}

// WriteIncidents renders a list of kept incidents in the named format.
func WriteIncidents(w io.Writer, format string, l *incident.Incidents, o Options) error {
	return writeIn(incidentsFormats, w, format, l, o)
}

// A keptView is a kept incident as reports speak of it. Its diagnosis is rendered apart.
type keptView struct {
	*incident.Kept
	diagnosis *incident.Incident
}

// newKeptView is k with no text in it that can steer or reorder what surrounds it. What no
// report but JSON shows of its trials is left out.
func newKeptView(k *incident.Kept) *keptView {
	bare := *k
	bare.Diagnosis, bare.Trials = nil, nil
	bare.Acts = slices.Clone(k.Acts)
	for i := range bare.Acts {
		bare.Acts[i].Diagnosis = nil
		if r := bare.Acts[i].Result; r != nil {
			short := *r
			short.Trials = nil
			bare.Acts[i].Result = &short
		}
	}
	return &keptView{copyClean(reflect.ValueOf(&bare)).Interface().(*incident.Kept), k.Diagnosis}
}

// statusOf is the status of an incident in words.
func statusOf(status string, closed bool) string {
	if closed {
		return status + ", closed"
	}
	return status
}

func (v *keptView) failedVariants() []string {
	title := strings.TrimSuffix(v.Title, ".")
	if v.Scenario == "" {
		return []string{title}
	}
	return []string{title + " (" + v.Scenario + ")", title}
}

func (v *keptView) statusVariants() []string {
	s := statusOf(v.Status, v.Closed) + ": "
	return []string{s + v.Says}
}

func (v *keptView) causeVariants() []string {
	if v.Cause == nil {
		return []string{"not known: no diagnosis names one"}
	}
	c := cmp.Or(v.Cause.Title, v.Cause.Entry)
	sure := v.sureWords()
	return []string{c + " (" + sure + ")", c}
}

// sureWords say how sure the cause is.
func (v *keptView) sureWords() string {
	switch {
	case v.Cause.Confirmed:
		return "confirmed by a verification"
	case v.Fix != nil && v.Fix.Single && v.Status == incident.Confirmed:
		return cmp.Or(v.Cause.Standing, "possible") + " by the evidence; the change that was verified is not one that it calls for"
	}
	return cmp.Or(v.Cause.Standing, "possible") + " by the evidence, not confirmed"
}

func (v *keptView) fixVariants() []string {
	switch {
	case v.Fix == nil:
		s := "none is verified"
		if d := v.diagnosis; d != nil && d.Remedy != nil && d.Remedy.Change != "" {
			return []string{s + "; to try: " + strings.TrimSuffix(oneLine(d.Remedy.Change), "."), s}
		}
		return []string{s}
	case !v.Fix.Single:
		return []string{fmt.Sprintf("not proved, %d things changed at once: %s", len(v.Fix.Changes), changesWords(v.Fix.Changes, 4)), fmt.Sprintf("not proved: %d things changed at once", len(v.Fix.Changes))}
	}
	return []string{changesWords(v.Fix.Changes, 1)}
}

// solvedTitle heads what is said of the fix.
func (v *keptView) solvedTitle() string {
	switch {
	case v.Fix != nil && !v.Fix.Single:
		return "What had changed when it succeeded"
	case v.Status == incident.Regressed:
		return "What had solved it"
	}
	return "What solved it"
}

func (v *keptView) checkVariants() []string {
	if len(v.FollowUp) == 0 {
		return []string{"no command is on record"}
	}
	cmd := commandLine(v.FollowUp)
	if v.Fix != nil && v.Fix.Single {
		return []string{"inquest incident recheck " + v.ID + ", or run " + cmd, "inquest incident recheck " + v.ID}
	}
	return []string{"inquest verify --incident " + v.ID + " -- " + cmd + ", with the one change in it", "inquest verify --incident " + v.ID + " -- COMMAND"}
}

// lines are the first lines of a report.
func (v *keptView) lines() []labelled {
	out := labelledLines([]string{"Failed", "Status", "Cause", "Fix", "Check"}, v.failedVariants, v.statusVariants, v.causeVariants, v.fixVariants, v.checkVariants)
	out[4].Text = v.checkVariants()[0]
	return out
}

// whenWords say when and how often it failed.
func (v *keptView) whenWords() string {
	failed, processes := 0, 0
	for _, r := range v.Table {
		if r.Failed > 0 {
			failed++
		}
		processes = max(processes, r.Processes)
	}
	s := fmt.Sprintf("first %s", stampWords(v.First))
	if v.Last != v.First {
		s += ", last " + stampWords(v.Last)
	}
	s += fmt.Sprintf("; %d of %s on record failed", failed, plural(len(v.Table), "start"))
	if processes > 1 {
		s += fmt.Sprintf(", of up to %d processes each", processes)
	}
	return s
}

// stampWords is a time on record for people, to the second.
func stampWords(at string) string {
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return cmp.Or(oneLine(at), "at an unknown time")
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// changesWords puts the first of changes in words.
func changesWords(all []incident.Change, most int) string {
	var out []string
	for i, c := range all {
		if i == most {
			out = append(out, fmt.Sprintf("and %d more", len(all)-most))
			break
		}
		out = append(out, oneLine(c.Text))
	}
	return strings.Join(out, "; ")
}

// commandLine is a command as one types it in a POSIX shell.
func commandLine(args []string) string {
	var out []string
	for _, a := range args {
		if a == "" || strings.ContainsFunc(a, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("@%_+=:,./-[]{}", r))
		}) {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		out = append(out, a)
	}
	return strings.Join(out, " ")
}

// keptColumns head the table of trials.
var keptColumns = []gridColumn{{"began (UTC)", false, 3}, {"by", false, 2}, {"result", false, 1}, {"peak", true, 4}, {"took", true, 5}, {"changed since the failure", false, 0}}

func (v *keptView) row(r *incident.KeptRow) []string {
	at := stampWords(r.Begun)
	at = strings.TrimSuffix(at, " UTC")
	return []string{at, r.By, v.resultCell(r), peakCell(r.Peak), tookCell(r.Seconds), v.changeCell(r)}
}

func (v *keptView) resultCell(r *incident.KeptRow) string {
	s := strings.ReplaceAll(cmp.Or(r.Result, "unknown"), "_", " ")
	if r.Processes > 1 {
		s += fmt.Sprintf(" (%d of %d ranks)", r.Failed, r.Processes)
	}
	if r.Result == incident.TrialFailed || r.Result == incident.TrialUnclear {
		switch {
		case r.Signal != "":
			s += ", " + r.Signal
		case r.Status != nil && *r.Status != 0:
			s += fmt.Sprintf(", status %d", *r.Status)
		}
	}
	if r.Verdict != "" {
		s += ", " + strings.ReplaceAll(r.Verdict, "_", " ")
	}
	return s
}

func (v *keptView) changeCell(r *incident.KeptRow) string {
	s := "–"
	switch {
	case r.Trial == v.Original:
		return "the failure"
	case !r.Compared:
		s = "not known"
	case len(r.Changes) > 0:
		s = changesWords(r.Changes, 3)
	case r.Unknown > 0:
		s = "nothing that both record"
	default:
		s = "nothing on record"
	}
	return s
}

func peakCell(m *incident.Measure) string {
	if m == nil {
		return "–"
	}
	s := evidence.Bytes(m.Peak)
	if m.AtLeast {
		s = "≥ " + s
	}
	return s
}

// peakWords say what the peak of the failure is of.
func peakWords(m *incident.Measure) string {
	if m == nil {
		return ""
	}
	name := map[string]string{incident.Resident: "in memory of the process tree", incident.AddressSpace: "of address space", incident.CgroupMemory: "charged to the cgroup", incident.DeviceMemory: "on the device", incident.Reserved: "reserved by the framework", incident.Allocated: "allocated by the framework"}[m.Name]
	s := peakCell(m) + " " + cmp.Or(name, "of "+oneLine(m.Name))
	if m.Limit != nil {
		s += ", of at most " + evidence.Bytes(*m.Limit)
		if m.LimitBy != "" {
			s += " (" + oneLine(m.LimitBy) + ")"
		}
	}
	return s
}

func tookCell(s *float64) string {
	if s == nil {
		return "–"
	}
	d := time.Duration(*s * float64(time.Second))
	switch {
	case d < 10*time.Second:
		return d.Round(10 * time.Millisecond).String()
	default:
		return d.Round(time.Second).String()
	}
}

// actWords say what was done.
func actWords(a *incident.Act) (mark, text string) {
	text = strings.TrimSpace(a.Text)
	switch a.Kind {
	case incident.ActNote:
		return "note", text
	case incident.ActClose:
		return "closed", text
	case incident.ActReopen:
		return "reopened", text
	case incident.ActJoint:
		return "diagnosed together", fmt.Sprintf("%s of launch %s", plural(len(a.Trials), "process log"), a.Launch)
	case incident.ActVerified:
		verdict, by := "", "verification"
		if a.Result != nil {
			if a.Result.By == incident.ByRecheck {
				by = "recheck"
			}
			if a.Result.Verification != nil {
				verdict = strings.ReplaceAll(a.Result.Verification.Verdict, "_", " ")
			}
		}
		s := cmp.Or(verdict, "no verdict") + ", " + plural(len(a.Trials), "trial")
		if text != "" {
			s += ": " + text
		}
		return by, s
	case incident.ActBoundary:
		return "boundary", text
	case incident.ActReverted:
		return "taken back", text
	case incident.ActConfirmed:
		return "cause named", text
	}
	return oneLine(a.Kind), text
}

// environmentLines say what the failure ran in.
func environmentLines(e *incident.Environment) []labelled {
	if e == nil {
		return nil
	}
	var out []labelled
	put := func(label string, parts ...string) {
		parts = slices.DeleteFunc(parts, func(s string) bool { return strings.TrimSpace(s) == "" })
		if len(parts) > 0 {
			out = append(out, labelled{label, strings.Join(parts, ", ")})
		}
	}
	memory, cpus := "", ""
	if e.Memory > 0 {
		memory = evidence.Bytes(e.Memory) + " of memory"
	}
	if e.CPUs > 0 {
		cpus = plural(e.CPUs, "CPU")
	}
	put("Host", e.Host, strings.TrimSpace(e.System+" "+e.Kernel), cpus, memory)
	var cards []string
	for _, d := range e.Devices {
		s := fmt.Sprintf("%d: %s", d.Index, d.Name)
		if d.Memory > 0 {
			s += ", " + evidence.Bytes(d.Memory)
		}
		cards = append(cards, s)
	}
	if len(cards) > 0 {
		out = append(out, labelled{"Devices", listed(cards, 8)})
	}
	driver := ""
	if e.Driver != "" {
		driver = "driver " + e.Driver
	}
	put("Python", e.Python, driver)
	var versions []string
	for _, name := range []string{"torch", "transformers", "accelerate", "deepspeed", "lightning", "jax", "tensorflow", "vllm", "numpy"} {
		if ver := e.Packages[name]; ver != "" {
			versions = append(versions, name+" "+ver)
		}
	}
	if n := len(e.Packages) - len(versions); n > 0 && len(e.Packages) > 0 {
		versions = append(versions, fmt.Sprintf("%s more", thousands(int64(n))))
	}
	put("Versions", versions...)
	if g := e.Git; g != nil {
		changed := ""
		if g.Changed {
			changed = "with changes that are not committed"
		}
		commit := g.Commit
		if len(commit) > 12 {
			commit = commit[:12]
		}
		put("Code", strings.TrimSpace(g.Branch+" "+commit), changed)
	}
	put("Allocator", e.Allocator)
	var limits []string
	for _, name := range limitNames(e.Limits) {
		limits = append(limits, strings.ReplaceAll(name, "_", " ")+" "+limitWords(name, e.Limits[name]))
	}
	put("Limits", limits...)
	return out
}

func limitNames(m map[string]int64) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// limitWords is a limit: of bytes, but for those that count.
func limitWords(name string, n int64) string {
	switch name {
	case "open_files", "processes", "cpus":
		return thousands(n)
	}
	return evidence.Bytes(n)
}

// notHelped says what did not help, and the trial that shows it.
func notHelped(n incident.NotHelped) string {
	if n.Trial == "" {
		return sentence(upper(n.Text))
	}
	return sentence(upper(n.Text) + " (trial " + oneLine(n.Trial) + ")")
}
