package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/inquest-dev/inquest/internal/early"
	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/gpu"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/process"
	"github.com/inquest-dev/inquest/internal/record"
	"github.com/inquest-dev/inquest/internal/redact"
	"github.com/inquest-dev/inquest/internal/store"
	"github.com/inquest-dev/inquest/internal/trial"
)

// storeDir is where trials are kept: flag is --store, "" is $XDG_STATE_HOME/inquest.
func storeDir(flag string) (string, error) {
	if flag != "" {
		return filepath.Abs(flag)
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "inquest"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".local", "state", "inquest"), nil
}

// trials makes trials into s, their output kept and not shown. An interrupt of ctx ends the
// command; the trial is still diagnosed and saved.
func (a *app) trials(s *store.Store) trial.Run {
	a.trying.Store(true)
	return func(ctx context.Context, j trial.Job) (*trial.Done, error) {
		r, err := a.record(ctx, recording{
			job: j, store: s, must: true, every: cmp.Or(j.Every, time.Second), share: closely(j.Every), tools: gpu.Tools,
			diagnose:   func(incident.Exit) bool { return true },
			diagnosing: func() (context.Context, func()) { return context.WithTimeout(context.WithoutCancel(ctx), time.Minute) },
		})
		if err != nil {
			return nil, err
		}
		return &trial.Done{Trial: r.trial, Diagnosis: r.diagnosis}, nil
	}
}

// closely is the share of a CPU that sampling may take where it is asked for: a run that is
// judged by its memory may cost more than one that is only recorded.
func closely(every time.Duration) float64 {
	if every > 0 && every < time.Second {
		return .03
	}
	return 0
}

// A recording is a trial to be made: all commands that start the user's command make one here.
type recording struct {
	job         trial.Job
	store       *store.Store // nil where none can be named
	must        bool         // it is not made where it cannot be kept
	in, out, er *os.File     // the user's streams; nil shows nothing
	forward     bool         // signals go to the command
	every       time.Duration
	share       float64 // of a CPU for samples; 0 is the default
	tools       gpu.Runner
	caught      *process.Caught                  // signals that the command is still to get
	started     *early.Start                     // nil where the command is still to be started
	diagnose    func(incident.Exit) bool         // whether to, once it ended so
	diagnosing  func() (context.Context, func()) // bounds the diagnosis
}

// A recorded is what came of it.
type recorded struct {
	trial     incident.Trial
	diagnosis *incident.Incident
	kept      error // why the store does not have all of it
	folder    string
	undone    error // why it was not diagnosed
	took      time.Duration
	unshown   []string // what of the output did not reach the user, and why
	midLine   bool     // the terminal shows an unfinished line
}

// record makes one trial. Nothing of the catalogue is loaded before its command has ended, and
// nothing waits for a disk before it has started.
func (a *app) record(ctx context.Context, x recording) (*recorded, error) {
	now, id := time.Now(), ""
	if x.started != nil {
		now, id = x.started.Begun, x.started.ID
	}
	j := x.job
	if j.Dir == "" {
		j.Dir, _ = os.Getwd()
	}
	t := incident.Trial{
		Schema: incident.TrialSchema, ID: cmp.Or(id, early.NewID(now)), By: j.By, Series: j.Series, Incident: j.Incident,
		Command: record.MaskCommand(j.Command), Template: record.MaskCommand(j.Template), Values: j.Values, Set: setting(j.Env),
		Scenario: record.Scenario(j.Dir, j.Command), Launch: record.Launch(os.Environ()),
		Dir: j.Dir, PID: os.Getpid(), Begun: now.UTC().Format(time.RFC3339Nano), Out: j.Out,
	}
	k := &keeping{around: make(chan struct{})}
	log, err := k.begin(x.store, &t, x.started, x.must)
	if err != nil {
		return nil, err
	}
	o := record.Options{
		Command: j.Command, Dir: x.job.Dir, Env: j.Env, In: x.in, Out: x.out, Err: x.er, Forward: x.forward, Caught: x.caught,
		Every: x.every, Share: x.share, Tools: x.tools, Timeout: j.Timeout, Sampled: k.sample,
	}
	if log != nil {
		o.Log = log
	}
	if x.started != nil {
		o.Process = process.Adopt(
			process.Options{Command: j.Command, Log: log, In: x.in, Out: x.out, Err: x.er, Forward: true},
			process.Running{Process: x.started.Process, Begun: x.started.Started, Out: x.started.Out, Err: x.started.Err, Signals: x.started.Signals, Early: x.started.Early},
		)
	}
	around, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	o.Started = func(int) { go k.surround(around, j, x.tools) }
	r := record.Run(ctx, o)
	if log != nil {
		log.Close()
	}
	var unknown []string // of what it ran in
	if r.Exit.Error == "" {
		t.Environment, unknown = k.surroundings(stop)
	}
	ended := r.Ended.UTC().Format(time.RFC3339Nano)
	t.Ended, t.Exit, t.Measures, t.LogBytes = &ended, &r.Exit, r.Measures, r.LogBytes
	t.Problems = append(append(t.Problems, r.Problems...), unknown...)
	for i, p := range t.Problems {
		t.Problems[i] = redact.Text(p)
	}
	t.Samples = k.end(t)
	d := &recorded{folder: k.folder, took: r.Ended.Sub(r.Begun), midLine: r.MidLine, unshown: r.Unshown}
	if x.diagnose(r.Exit) {
		ctx, stop := x.diagnosing()
		d.diagnosis, d.undone = a.diagnoseTrial(ctx, k, t)
		stop()
	}
	v := trial.Judge(r.Exit, d.diagnosis)
	t.Verdict = &v
	k.judged(d.diagnosis, v)
	d.trial, d.kept = t, k.close()
	return d, nil
}

// diagnoseTrial diagnoses what a trial left. It returns soon when ctx is done.
func (a *app) diagnoseTrial(ctx context.Context, k *keeping, t incident.Trial) (*incident.Incident, error) {
	path := k.folder
	if path == "" {
		path = t.Log
	}
	if path == "" {
		return nil, errors.New("nothing of it could be kept")
	}
	type answer struct {
		inc *incident.Incident
		err error
	}
	done := make(chan answer, 1)
	go func() {
		o, err := a.options([]string{path})
		if err != nil {
			done <- answer{nil, err}
			return
		}
		inc, err := engine.Diagnose(ctx, o)
		done <- answer{inc, err}
	}()
	select {
	case d := <-done:
		return d.inc, d.err
	case <-ctx.Done():
	}
	select {
	case d := <-done:
		return d.inc, d.err
	case <-time.After(grace):
		return nil, ctx.Err()
	}
}

// samplesEvery is how long samples wait to be written, so that a kill loses little.
const samplesEvery = 30 * time.Second

// A keeping writes the records of one trial. What it cannot write is noted and the trial goes on.
type keeping struct {
	folder string // of the trial; "" where the store has none

	mu      sync.Mutex
	w       *store.Writer // nil where the store cannot be written
	err     error         // the first
	samples []incident.Sample
	written int // of samples
	at      time.Time
	synced  chan struct{}

	around      chan struct{} // closed when environment and unknown are known
	environment *incident.Environment
	unknown     []string
}

// begin commits the trial's first record and makes its log, whose path it sets. Where the store
// cannot be written the log is a temporary file, or there is none; with must that is an error.
// A command that was started already has its log.
func (k *keeping) begin(s *store.Store, t *incident.Trial, started *early.Start, must bool) (*os.File, error) {
	var log *os.File
	if s == nil {
		k.err = errors.New("no folder for it is known: neither --store nor XDG_STATE_HOME nor HOME is set")
	} else {
		t.Log = filepath.Join(s.TrialDir(*t), early.LogName)
		if k.w, k.err = s.Begin(*t); k.err == nil {
			k.folder = k.w.Dir()
			if started == nil {
				log, k.err = early.OpenLog(t.Log)
			}
		}
	}
	if started != nil {
		if k.err != nil {
			t.Problems = append(t.Problems, k.err.Error())
		}
		return started.Log, nil
	}
	if k.err == nil {
		return log, nil
	}
	if must {
		if k.w != nil {
			k.w.Close()
		}
		return nil, k.err
	}
	t.Problems = append(t.Problems, k.err.Error())
	t.Log = filepath.Join(os.TempDir(), "inquest-"+t.ID+".log")
	log, err := early.OpenLog(t.Log)
	if err != nil {
		t.Log = ""
		t.Problems = append(t.Problems, "no log is kept: "+err.Error())
		return nil, nil
	}
	return log, nil
}

// put commits a record, where the store can be written.
func (k *keeping) put(r incident.Record) {
	if k.w == nil {
		return
	}
	if r.At == "" {
		r.At = time.Now().UTC().Format(time.RFC3339Nano)
	}
	if err := k.w.Put(r); err != nil && k.err == nil {
		k.err = err
	}
}

// surround commits what the trial runs in, while it runs.
func (k *keeping) surround(ctx context.Context, j trial.Job, tools gpu.Runner) {
	env, unknown := record.Environment(ctx, j.Dir, j.Command, tools)
	k.mu.Lock()
	k.environment, k.unknown = env, unknown
	k.put(incident.Record{Kind: incident.RecordEnvironment, Environment: env})
	k.mu.Unlock()
	close(k.around)
}

// surrounding is how long the end of a trial waits for what it ran in to be known, and again
// once the asking is cancelled.
const surrounding = time.Second

// surroundings is what the trial ran in and what of that is not known; nil where it could not be
// told in time.
func (k *keeping) surroundings(cancel func()) (*incident.Environment, []string) {
	for range 2 {
		select {
		case <-k.around:
			k.mu.Lock()
			defer k.mu.Unlock()
			return k.environment, k.unknown
		case <-time.After(surrounding):
			cancel()
		}
	}
	return nil, nil
}

// sample keeps a sample. It may be called concurrently with the trial, not with itself.
func (k *keeping) sample(s incident.Sample) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.samples = append(k.samples, s)
	if now := time.Now(); k.at.IsZero() {
		k.at = now
	} else if now.Sub(k.at) >= samplesEvery {
		k.at = now
		k.flush()
	}
}

func (k *keeping) flush() {
	if k.written < len(k.samples) {
		k.put(incident.Record{Kind: incident.RecordSamples, Samples: k.samples[k.written:]})
		k.written = len(k.samples)
	}
}

// end commits how the trial ended, begins to bring it to the disk, and returns the samples.
func (k *keeping) end(t incident.Trial) []incident.Sample {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.flush()
	k.put(incident.Record{At: *t.Ended, Kind: incident.RecordEnded, Ended: &incident.Ended{
		At: *t.Ended, Exit: *t.Exit, Measures: t.Measures, LogBytes: t.LogBytes, Problems: t.Problems,
	}})
	k.synced = make(chan struct{})
	go func(w *store.Writer, synced chan struct{}) {
		defer close(synced)
		if w != nil {
			w.Sync()
		}
	}(k.w, k.synced)
	return k.samples
}

// judged commits what the trial came to.
func (k *keeping) judged(inc *incident.Incident, v incident.TrialVerdict) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if inc != nil {
		k.put(incident.Record{Kind: incident.RecordDiagnosis, Diagnosis: inc})
	}
	k.put(incident.Record{Kind: incident.RecordVerdict, Verdict: &v})
}

// syncing is how long the end of a trial waits for a disk.
const syncing = 2 * time.Second

// close ends the writing, and says what could not be written. What is known of the surroundings
// only now is dropped: a trial does not wait for it.
func (k *keeping) close() error {
	k.mu.Lock()
	w, kept := k.w, k.err
	k.w = nil
	k.mu.Unlock()
	if w == nil {
		return kept
	}
	done := make(chan error, 1)
	go func() {
		<-k.synced
		w.Sync()
		done <- w.Close()
	}()
	select {
	case err := <-done:
		return errors.Join(kept, err)
	case <-time.After(syncing):
		return kept // the system goes on with it
	}
}

// setting are the variables of env, NAME=value, without secrets.
func setting(env []string) map[string]string {
	set := map[string]string{}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		_, value, _ = strings.Cut(redact.Text(name+"="+value), "=")
		set[name] = value
	}
	return set
}

// endWords says how a command ended.
func endWords(e incident.Exit) string {
	switch {
	case e.Error != "":
		return "did not start: " + e.Error
	case e.Signal != "":
		return fmt.Sprintf("was ended by %s (status %d)", e.Signal, e.Status)
	default:
		return fmt.Sprintf("ended with status %d", e.Status)
	}
}
