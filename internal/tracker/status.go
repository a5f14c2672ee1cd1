package tracker

import (
	"fmt"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// An End is how a run ended, as far as its files prove it.
type End struct {
	Status evidence.RunStatus
	Said   string // the tracker's own word
	Exit   *int64
	Basis  string // one sentence
	// Dead is set where the run is not running any more: by the tracker's word, or by the rule
	// that the basis names.
	Dead bool
}

// EndOf says how a run ended. A run without an end is taken for dead only where its newest
// point, or where none has a time the newest change of its files, is older than o.Stale at
// o.Now.
func EndOf(r *Run, o Options) End { return r.end(o) }

func (r *Run) end(o Options) End {
	e := End{Status: evidence.RunUnknown}
	for _, p := range r.Parts { // the latest start that states something counts
		if p.Status != evidence.RunUnknown && p.Status != "" || p.StatusSaid != "" {
			e.Status, e.Said, e.Exit = p.Status, p.StatusSaid, nil
			if p.HasExit {
				code := p.Exit
				e.Exit = &code
			}
		}
	}
	if e.Status == "" {
		e.Status = evidence.RunUnknown
	}
	switch e.Status {
	case evidence.RunFinished:
		e.Dead = true
		e.Basis = "Its files state an end without a failure; that the training was complete they do not prove."
		if r.Tracker == "mlflow" {
			e.Basis = "MLflow states FINISHED, which a script that fails outside its run block gets at its exit as well; that the training was complete it does not prove."
		}
	case evidence.RunFailed, evidence.RunKilled, evidence.RunCrashed:
		e.Dead = true
		e.Basis = fmt.Sprintf("Its files state that it %s; why, they do not say.", map[evidence.RunStatus]string{evidence.RunFailed: "failed", evidence.RunKilled: "was killed", evidence.RunCrashed: "crashed"}[e.Status])
		if e.Exit != nil {
			e.Basis = fmt.Sprintf("Its files state the exit code %d; why it ended they do not say.", *e.Exit)
		}
	case evidence.RunOpen:
		how := "No end is on record, and nothing in the files proves that a process is alive"
		if e.Said != "" {
			how = "It is on record as running, and nothing in the files proves that a process is alive"
		}
		e.Dead, e.Basis = r.age(o, how)
	default:
		how := "The format keeps no word of how a run ended"
		e.Dead, e.Basis = r.age(o, how)
	}
	return e
}

// age holds the newest point against the clock.
func (r *Run) age(o Options, how string) (dead bool, basis string) {
	limit := o.Stale
	if limit <= 0 {
		limit = DefaultStale
	}
	newest, what := r.newest(), "newest point"
	at := newest.Time
	if !newest.Known() {
		what = "newest file"
		for _, p := range r.Parts {
			if m := o.Modified[p.Artifact]; m.After(at) {
				at = m
			}
		}
	}
	switch {
	case at.IsZero():
		return false, how + "; no point or file has a time, so whether it runs cannot be told."
	case o.Now.IsZero():
		return false, fmt.Sprintf("%s; its %s is of %s.", how, what, at.UTC().Format("2006-01-02 15:04:05Z"))
	}
	age := o.Now.Sub(at)
	if age < 0 {
		return false, fmt.Sprintf("%s; its %s lies %s ahead of this machine's clock, so its age cannot be told.", how, what, Lasting(-age))
	}
	if age > limit {
		return true, fmt.Sprintf("%s; its %s is %s old, more than the %s of --stale, so it is taken for dead.", how, what, Lasting(age), Lasting(limit))
	}
	return false, fmt.Sprintf("%s; its %s is %s old, within the %s of --stale, so it may be alive.", how, what, Lasting(age), Lasting(limit))
}

// Lasting is a length of time in its two largest units.
func Lasting(d time.Duration) string {
	if d >= 48*time.Hour {
		return fmt.Sprintf("%d days", int(d/(24*time.Hour)))
	}
	d = d.Round(time.Second)
	s := d.String()
	if d >= time.Hour {
		s = d.Truncate(time.Minute).String()
	}
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
