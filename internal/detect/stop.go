package detect

import "github.com/inquest-dev/inquest/internal/evidence"

// outsideStops says whether training was seen to run, and names who told the job
// to stop, where a record says so. A bare
// signal does not: scheduler, launcher and people send the same ones. Of several
// records the scheduler's reason counts before a person's key press.
func outsideStops(in Input, f evidence.Known) {
	for _, name := range []string{"loss", "grad_norm", "lr"} {
		for _, s := range in.named(name, "train") {
			if _, ok := f["run.progressed"]; !ok && !beforeTraining(s) {
				f.Set("run.progressed", evidence.BoolOf(true), s.Span(s.Last))
			}
		}
	}
	for _, by := range []struct {
		kind   evidence.Kind
		sender string
	}{
		{evidence.Preempted, "preemption"},
		{evidence.TimeLimit, "time limit"},
		{evidence.Interrupted, "person"},
	} {
		if e := in.first(by.kind); e != nil {
			f.Set("stop.sender", evidence.TextOf(by.sender), e.Span)
			return
		}
	}
}
