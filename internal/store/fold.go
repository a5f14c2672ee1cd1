package store

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
)

// maxSamples bounds the samples that are kept of one trial when it is read.
const maxSamples = 100_000

// A Reading is a trial as its file has it.
type Reading struct {
	Trial     incident.Trial
	Diagnosis *incident.Incident // null where none was stored
}

// A folding makes one trial of its records.
type folding struct {
	dir     string // of the trial
	samples bool   // keep them

	trial     incident.Trial
	begun     bool
	diagnosis *incident.Incident
	unknown   map[string]int // records of kinds that this program does not know
	dropped   int            // samples over the bound
	last      int            // the last record's number
	problems  []string
}

// foldTrial reads a trial from its file of records. What of it cannot be read is named in
// Trial.Problems; an error means that nothing of it could be.
func foldTrial(dir, id string, r io.Reader, samples bool) (*Reading, error) {
	f := folding{dir: dir, samples: samples, unknown: map[string]int{}, last: -1}
	d, err := readRecords(r, f.record)
	if err != nil && f.last < 0 {
		return nil, err
	}
	f.damage(d, err)
	t := &f.trial
	t.Problems = slices.Clone(t.Problems)
	if !f.begun {
		f.problem("the record of its begin is missing")
		t.Schema = incident.TrialSchema
	}
	if t.ID != id {
		if t.ID != "" {
			f.problem(fmt.Sprintf("its records are of a trial %s", t.ID))
		}
		t.ID = id
	}
	if f.dropped > 0 {
		f.problem(fmt.Sprintf("%d samples are left out: at most %d are read", f.dropped, maxSamples))
	}
	for _, k := range slices.Sorted(maps.Keys(f.unknown)) {
		f.problem(fmt.Sprintf("%s of a kind %q, which this version does not know; kept as they are", counted(f.unknown[k], "record"), k))
	}
	if t.Verdict == nil {
		t.Verdict = f.verdict()
	} else if f.diagnosis != nil && t.Verdict.Fingerprint == "" && t.Verdict.Result != incident.Passed {
		t.Verdict.Fingerprint = f.diagnosis.Fingerprint
	}
	t.Problems = append(t.Problems, f.problems...)
	t.Command, t.Template = list(t.Command), list(t.Template)
	t.Problems, t.Measures, t.Samples = list(t.Problems), list(t.Measures), list(t.Samples)
	t.Values, t.Set = table(t.Values), table(t.Set)
	if e := t.Environment; e != nil {
		e.Limits, e.Variables, e.Packages, e.Devices = table(e.Limits), table(e.Variables), table(e.Packages), list(e.Devices)
	}
	if t.Launch != nil {
		t.Launch.Variables = table(t.Launch.Variables)
	}
	return &Reading{Trial: *t, Diagnosis: f.diagnosis}, nil
}

// list and table make what is empty so that JSON shows it as such.
func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}

func table[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return m
}

func (f *folding) problem(text string) { f.problems = append(f.problems, text) }

func (f *folding) damage(d damage, err error) {
	if d.broken > 0 {
		f.problem(fmt.Sprintf("%s of its records cannot be read; the first is line %d: %s", counted(d.broken, "line"), d.first, d.why))
	}
	switch {
	case err != nil:
		f.problem("its records could not be read to their end: " + reason(err))
	case d.cut:
		f.problem(fmt.Sprintf("its records are not read beyond %d bytes", int64(maxFile)))
	case d.torn > 0:
		f.problem(fmt.Sprintf("the last %s of its records were being written when their writer ended, and are no record", counted(int(d.torn), "byte")))
	}
}

// record takes the next record.
func (f *folding) record(r *incident.Record) {
	f.last = r.Seq
	t := &f.trial
	if a := r.Attached; a != nil {
		whole, err := attached(a, f.dir)
		if err != nil {
			f.problem(fmt.Sprintf("its %s cannot be read from %s: %s", bounded(r.Kind, 40), bounded(a.Name, 80), reason(err)))
			return
		}
		if whole.Kind != r.Kind {
			f.problem(fmt.Sprintf("%s has another record than its %s", bounded(a.Name, 80), bounded(r.Kind, 40)))
			return
		}
		r = whole
	}
	switch {
	case r.Kind == incident.RecordBegun && r.Begun != nil:
		if f.begun {
			f.problem("it has a second record of its begin, which is passed over")
			return
		}
		f.begun = true
		// What was recorded before, as can be where a line was lost, stands.
		early := *t
		*t = *r.Begun
		if early.Environment != nil {
			t.Environment = early.Environment
		}
		if early.Exit != nil {
			t.Ended, t.Exit, t.Measures, t.LogBytes = early.Ended, early.Exit, early.Measures, early.LogBytes
		}
		if early.Verdict != nil {
			t.Verdict = early.Verdict
		}
		t.Samples = f.keep(early.Samples, t.Samples)
	case r.Kind == incident.RecordEnvironment && r.Environment != nil:
		t.Environment = r.Environment
	case r.Kind == incident.RecordSamples:
		t.Samples = f.keep(t.Samples, r.Samples)
	case r.Kind == incident.RecordEnded && r.Ended != nil:
		e := r.Ended
		t.Ended, t.Exit, t.Measures, t.LogBytes = &e.At, &e.Exit, e.Measures, e.LogBytes
		for _, p := range e.Problems {
			if !slices.Contains(t.Problems, p) {
				t.Problems = append(t.Problems, p)
			}
		}
	case r.Kind == incident.RecordDiagnosis && r.Diagnosis != nil:
		f.diagnosis = r.Diagnosis
	case r.Kind == incident.RecordVerdict && r.Verdict != nil:
		t.Verdict = r.Verdict
	case slices.Contains([]string{incident.RecordBegun, incident.RecordEnvironment, incident.RecordEnded, incident.RecordDiagnosis, incident.RecordVerdict}, r.Kind):
		f.problem(fmt.Sprintf("a record says that it is its %s and has none", r.Kind))
	default:
		if len(f.unknown) < 16 {
			f.unknown[bounded(r.Kind, 40)]++
		}
	}
}

// keep appends samples within the bound.
func (f *folding) keep(have, more []incident.Sample) []incident.Sample {
	if !f.samples {
		return nil
	}
	if room := maxSamples - len(have); len(more) > room {
		f.dropped += len(more) - room
		more = more[:room]
	}
	return append(have, more...)
}

// verdict is what a trial's other records say where none has a verdict: its writer was ended
// before it judged, or it runs still.
func (f *folding) verdict() *incident.TrialVerdict {
	t := &f.trial
	v := &incident.TrialVerdict{}
	switch {
	case t.Exit == nil:
		v.Result, v.Text = incident.Unfinished, noEnd
		return v
	case t.Exit.Stopped != "":
		v.Result, v.Text = incident.TrialUnclear, "this program ended it: "+t.Exit.Stopped
	case t.Exit.Error != "":
		v.Result, v.Text = incident.TrialFailed, "it did not start: "+t.Exit.Error
	case t.Exit.Status == 0:
		v.Result, v.Text = incident.Passed, "it ended with status 0; no diagnosis judged it"
	case t.Exit.Signal != "":
		v.Result, v.Text = incident.TrialFailed, "it was ended by "+t.Exit.Signal
	default:
		v.Result, v.Text = incident.TrialFailed, "it ended with status "+strconv.Itoa(t.Exit.Status)
	}
	d := f.diagnosis
	if d == nil || v.Result == incident.Passed {
		return v
	}
	v.Fingerprint, v.Standing = d.Fingerprint, d.FirstFaultStanding
	if e := d.FirstFault; e != nil {
		v.Class, v.Kind = e.Class, e.Kind
		if v.Result == incident.TrialFailed && slices.Contains([]string{"device_memory", "host_memory", "shared_memory"}, e.Class) && d.FirstFaultStanding != incident.Undecidable {
			v.Result, v.Where = incident.OutOfMemory, e.Class
		}
	}
	if len(d.Hypotheses) > 0 {
		v.Cause = d.Hypotheses[0].Entry
	}
	return v
}

// noEnd is what is said of a trial without an end before anybody asks for its process.
const noEnd = "its end is not on record"

// settle says of a trial what is so here and now: where its log is in a store that may have
// been moved, and whether a trial without an end runs still. dir is the trial's folder.
func settle(t *incident.Trial, dir string) {
	if t.Log != "" && filepath.Base(filepath.FromSlash(t.Log)) == logFile {
		if here := filepath.Join(dir, logFile); here != t.Log {
			if st, err := os.Lstat(here); err == nil && st.Mode().IsRegular() {
				t.Log = here
			}
		}
	}
	if v := t.Verdict; v != nil && v.Result == incident.Unfinished && v.Text == noEnd {
		w := *v
		w.Text = unfinished(t)
		t.Verdict = &w
	}
}

// unfinished says what is known of a trial whose end is not on record. Only a process of this
// machine can be asked for, and its number may be another's by now.
func unfinished(t *incident.Trial) string {
	host, _ := os.Hostname()
	switch {
	case t.PID <= 0 || t.Environment == nil || t.Environment.Host == "":
		return noEnd + "; whether it runs still is not known"
	case t.Environment.Host != host:
		return noEnd + "; whether it runs still on " + t.Environment.Host + " cannot be seen from here"
	}
	switch running(t.PID, t.Begun) {
	case yes:
		return "it runs still, as process " + strconv.Itoa(t.PID)
	case no:
		return "its end was never recorded, and its process is gone"
	}
	return noEnd + "; whether process " + strconv.Itoa(t.PID) + " is still its own is not known"
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// bounded is the beginning of a text that a file of the store has in a place of a name.
func bounded(s string, n int) string {
	s = strings.ToValidUTF8(s, "?")
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}

// reason is an error without the path that it is of, which is said beside it.
func reason(err error) string {
	if e, ok := err.(*os.PathError); ok {
		return e.Err.Error()
	}
	return err.Error()
}
