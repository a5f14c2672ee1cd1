package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/incident"
)

// Checkpoint is the name that stands for a checkpoint in the command that evaluates it:
// {CHECKPOINT}.
const Checkpoint = "CHECKPOINT"

// Defaults of a verification.
const (
	DefaultRuns      = 3
	DefaultMaxGrowth = 0.02
	DefaultMaxSpread = 0.05
)

// VerifyOptions say what is verified, and with what it is compared.
type VerifyOptions struct {
	Request   incident.VerificationRequest
	Tool      incident.Tool
	By        string // verify, recheck
	Series    string
	Incident  string
	Original  *Original
	Reference *Observed
	Scratch   *Scratch
	Guard     *Guard
	Every     time.Duration // between two samples of memory
	FailFast  bool          // no run follows one that failed
	Notice    func(string)  // what goes on, for people; may be nil
	Now       func() time.Time
}

// Verify repeats the scenario of a request, each time in a fresh process, and judges it. Where
// the request has no command, only its checkpoint is looked at. An error means that nothing was
// run: a command that the guard refuses (ErrOverwrite), or a store that takes no trial. When ctx
// ends, what was run until then is judged.
func Verify(ctx context.Context, o VerifyOptions, run Run) (*incident.Trials, error) {
	s := &verification{VerifyOptions: o, run: run, begun: o.Now()}
	s.e = VerifyEvidence{Request: o.Request, Original: o.Original, Reference: o.Reference, Recheck: o.By == incident.ByRecheck}
	s.out = &incident.Trials{Schema: incident.TrialsSchema, Tool: o.Tool, ID: o.Series, By: o.By, Incident: o.Incident, Template: o.Request.Command, Trials: []incident.Trial{}, Limits: []string{}}
	if s.out.Template == nil {
		s.out.Template = []string{}
	}
	if err := s.admit(); err != nil {
		return nil, err
	}
	if len(o.Request.Command) > 0 {
		if err := s.repeat(ctx); err != nil {
			return nil, err
		}
	} else if o.Request.Checkpoint != "" {
		s.checkpoint(ctx, s.path(o.Request.Checkpoint), nil)
	}
	for _, n := range o.Request.Nearby {
		if s.stop(ctx) {
			break
		}
		s.say("a function beside it: " + strings.Join(n, " "))
		s.e.Nearby = append(s.e.Nearby, s.once(ctx, n, nil))
	}
	s.e.Stopped = s.out.Stopped
	v := JudgeVerification(s.e)
	s.out.Verification = &v
	if shared := o.Guard.Shared(); len(shared) > 0 {
		s.out.Limits = append(s.out.Limits, fmt.Sprintf("More than one run wrote into %s: a later one may have found what an earlier one left. Put {OUT} in its place.", strings.Join(shared, ", ")))
	}
	if o.Original == nil && len(o.Request.Command) > 0 {
		s.out.Limits = append(s.out.Limits, "No incident is named, so there is no failure whose point had to be passed: --incident ID names one.")
	}
	return s.out, nil
}

// A verification is one that is going on.
type verification struct {
	VerifyOptions
	run   Run
	begun time.Time
	e     VerifyEvidence
	out   *incident.Trials
}

func (s *verification) say(text string) {
	if s.Notice != nil {
		s.Notice(text)
	}
}

// path is a path of the request as this process finds it.
func (s *verification) path(p string) string {
	if !filepath.IsAbs(p) && s.Request.Dir != "" {
		return filepath.Join(s.Request.Dir, p)
	}
	return p
}

// admit asks the guard about every command before any is run. {OUT} and {CHECKPOINT} stand for
// folders of our own.
func (s *verification) admit() error {
	own := filepath.Join(s.Scratch.Root, "out")
	s.Guard.Own = append(s.Guard.Own, s.Scratch.Root)
	values := map[string]string{Out: own, Checkpoint: filepath.Join(own, "checkpoint")}
	for _, c := range append([][]string{s.Request.Command, s.Request.Evaluate}, s.Request.Nearby...) {
		if len(c) == 0 {
			continue
		}
		if err := s.Guard.Check(Fill(c, values), nil); err != nil {
			return err
		}
	}
	return nil
}

// stop reports whether nothing more is to be run, and notes why.
func (s *verification) stop(ctx context.Context) bool {
	switch {
	case s.out.Stopped != "":
	case ctx.Err() != nil:
		s.out.Stopped = incident.StoppedInterrupt
	case s.Request.Budget > 0 && s.left() <= 0:
		s.out.Stopped = "time budget"
	}
	return s.out.Stopped != ""
}

// left is what is left of the time for all runs.
func (s *verification) left() time.Duration {
	return time.Duration(s.Request.Budget*float64(time.Second)) - s.Now().Sub(s.begun)
}

// timeout is how long the next run may take; 0 is any time.
func (s *verification) timeout() time.Duration {
	t := time.Duration(s.Request.Timeout * float64(time.Second))
	if s.Request.Budget > 0 {
		if left := max(s.left(), time.Millisecond); t == 0 || left < t {
			t = left
		}
	}
	return t
}

// metricNames are the names of the metrics that were asked for.
func (s *verification) metricNames() []string {
	var out []string
	for _, t := range s.Request.Metrics {
		if m, err := ParseMetric(t); err == nil {
			out = append(out, m.Name)
		}
	}
	return out
}

// repeat makes the runs.
func (s *verification) repeat(ctx context.Context) error {
	for i := range s.Request.Runs {
		if s.stop(ctx) {
			return nil
		}
		s.say(fmt.Sprintf("run %d of %d", i+1, s.Request.Runs))
		d, out, err := s.one(ctx, s.Request.Command, s.Incident, fmt.Sprintf("run-%d", i+1), nil)
		if err != nil {
			if i == 0 {
				return err
			}
			s.out.Stopped = err.Error()
			return nil
		}
		o := Observe(*d, s.metricNames())
		s.e.Runs = append(s.e.Runs, o)
		good := ended(&d.Trial) && result(&d.Trial) == incident.Passed
		if good && s.Request.Checkpoint != "" {
			s.checkpoint(ctx, s.path(Fill([]string{s.Request.Checkpoint}, map[string]string{Out: out})[0]), &d.Trial)
		}
		s.forget(out)
		if d.Trial.Exit != nil && d.Trial.Exit.Stopped == incident.StoppedDisk {
			s.out.Stopped = incident.StoppedDisk
		}
		if !good && s.FailFast {
			s.out.Stopped = "a run failed"
		}
	}
	return nil
}

func (s *verification) forget(out string) {
	if err := s.Scratch.Remove(out); err != nil {
		s.out.Limits = append(s.out.Limits, fmt.Sprintf("The scratch folder %s could not be removed: %v.", out, err))
	}
}

// one makes one run and notes it. Its scratch folder is returned, and is the caller's to remove.
func (s *verification) one(ctx context.Context, command []string, about, name string, values map[string]string) (*Done, string, error) {
	out, err := s.Scratch.New(name)
	if err != nil {
		return nil, "", err
	}
	put := map[string]string{Out: out}
	for k, v := range values {
		put[k] = v
	}
	args := Fill(command, put)
	if err := s.Guard.Check(args, nil); err != nil {
		s.Scratch.Remove(out)
		return nil, "", err
	}
	watched, done := s.Scratch.Watch(ctx)
	d, err := s.run(watched, Job{By: s.By, Series: s.Series, Incident: about, Command: args, Template: command, Values: map[string]string{}, Dir: s.Request.Dir,
		// Python keeps back what it prints to a file, and with it the step that it is at.
		Env: append(Variables(out, s.Request.Online), "PYTHONUNBUFFERED=1"), Out: out, Timeout: s.timeout(), Every: s.Every})
	full := errors.Is(context.Cause(watched), ErrDisk)
	done()
	if err != nil {
		s.Scratch.Remove(out)
		return nil, "", err
	}
	if full && d.Trial.Exit != nil {
		d.Trial.Exit.Stopped = incident.StoppedDisk
		v := Judge(*d.Trial.Exit, d.Diagnosis)
		d.Trial.Verdict = &v
	}
	kept := d.Trial
	kept.Samples = []incident.Sample{}
	if kept.Problems == nil {
		kept.Problems = []string{}
	}
	s.out.Trials = append(s.out.Trials, kept)
	return d, out, nil
}

// once runs a command that must succeed, beside the runs of the scenario.
func (s *verification) once(ctx context.Context, command []string, values map[string]string) Nearby {
	n := Nearby{Command: Fill(command, values)}
	d, out, err := s.one(ctx, command, "", "beside", values)
	if err != nil {
		n.Error = err.Error()
		return n
	}
	s.forget(out)
	d.Trial.Samples = nil
	n.Done = d
	return n
}

// checkpoint looks at a checkpoint, and has the user's command use it. t is the run that should
// have written it, nil where there was none.
func (s *verification) checkpoint(ctx context.Context, path string, t *incident.Trial) {
	s.say("looking at " + path)
	c, err := InspectCheckpoint(ctx, path)
	if err != nil {
		s.out.Stopped = incident.StoppedInterrupt
		return
	}
	if t != nil {
		c.Trial = t.ID
		if c.State == incident.Yes && !newer(path, t.Begun) {
			c.State, c.Says = incident.Unknown, "it is older than the run, which did not write it"
		}
	}
	s.e.Checkpoints = append(s.e.Checkpoints, c)
	if len(s.Request.Evaluate) == 0 || c.State == incident.No || s.stop(ctx) {
		return
	}
	s.say("evaluating " + path)
	s.e.Evaluated = append(s.e.Evaluated, Evaluated{path, s.once(ctx, s.Request.Evaluate, map[string]string{Checkpoint: path})})
}

// newer reports whether something at path was written since an instant. Clocks of file systems
// may be a little behind.
func newer(path, since string) bool {
	begun, err := time.Parse(time.RFC3339Nano, since)
	if err != nil {
		return true
	}
	late := false
	filepath.WalkDir(path, func(_ string, d os.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if st, err := d.Info(); err == nil && st.ModTime().After(begun.Add(-2*time.Second)) {
			late = true
			return filepath.SkipAll
		}
		return nil
	})
	return late
}
