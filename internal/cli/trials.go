package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"time"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/gpu"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/record"
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

// newTrialID is an id that no other process takes at the same moment, in the order of time.
func newTrialID(now time.Time) string {
	var b [5]byte
	rand.Read(b[:])
	return "t" + now.UTC().Format("20060102-150405") + "-" + hex.EncodeToString(b[:])
}

// trials makes trials into s, their output kept and not shown.
func (a *app) trials(s *store.Store) trial.Run {
	return func(ctx context.Context, j trial.Job) (*trial.Done, error) {
		now := time.Now()
		t := incident.Trial{Schema: incident.TrialSchema, ID: newTrialID(now), By: j.By, Series: j.Series, Incident: j.Incident,
			Command: j.Command, Template: j.Template, Values: j.Values, Dir: j.Dir, Begun: now.UTC().Format(time.RFC3339Nano), Out: j.Out}
		w, err := s.Begin(t)
		if err != nil {
			return nil, err
		}
		defer w.Close()
		t.Log = filepath.Join(w.Dir(), "output.log")
		log, err := os.Create(t.Log)
		if err != nil {
			return nil, err
		}
		defer log.Close()
		r := record.Run(ctx, record.Options{Command: j.Command, Dir: j.Dir, Env: j.Env, Log: log, Every: cmp.Or(j.Every, time.Second), Tools: gpu.Tools, Timeout: j.Timeout,
			Sampled: func(x incident.Sample) {
				if st, err := log.Stat(); err == nil {
					x.Log = st.Size() // which step it was at, then
				}
				t.Samples = append(t.Samples, x)
			}})
		ended := r.Ended.UTC().Format(time.RFC3339Nano)
		t.Ended, t.Exit, t.Measures, t.LogBytes, t.Problems = &ended, &r.Exit, r.Measures, r.LogBytes, r.Problems
		if err := w.Put(incident.Record{At: ended, Kind: incident.RecordEnded, Ended: &incident.Ended{At: ended, Exit: r.Exit, Measures: r.Measures, LogBytes: r.LogBytes, Problems: r.Problems}}); err != nil {
			return nil, err
		}
		o, err := a.options([]string{w.Dir()})
		if err != nil {
			return nil, err
		}
		inc, err := engine.Diagnose(ctx, o)
		if err != nil {
			inc = nil
		}
		v := trial.Judge(r.Exit, inc)
		t.Verdict = &v
		return &trial.Done{Trial: t, Diagnosis: inc}, nil
	}
}
