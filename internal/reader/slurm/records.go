package slurm

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/textline"
)

// A record is one row about a job or a step of it.
type record struct {
	job   string // 4410, 4410.batch, 4410_7.0
	state string
	by    string // user id of who cancelled it
	host  string // the one host that it speaks of
	attrs evidence.Attrs
	end   evidence.Stamp
	at    line
}

// step reports whether r is about a step, and whether the step is the job's own
// program rather than its batch script or what sits beside.
func (r *record) step() (is, program bool) {
	_, name, is := strings.Cut(r.job, ".")
	return is, is && name != "" && strings.Trim(name, "0123456789+") == ""
}

// A book holds the records of one table until its end, because only then is it
// known which of them are of the job's last start.
type book struct {
	rows []record
}

// add keeps r. Rows beyond maxRows are handed over without a word about how
// their job ended.
func (b *book) add(p *parser, r record) {
	if len(b.rows) >= maxRows {
		p.s.Event(p.recordOf(&r, false))
		return
	}
	b.rows = append(b.rows, r)
}

// close hands the records over, and after each the event that its job's end is.
//
//  1. A job's row that comes again (sacct -D, a requeued job) begins a new start;
//     what belongs to the starts before is marked as earlier.
//  2. For each job's last start that is not COMPLETED, the row nearest to the
//     failure is taken: the first step of the program with the job's state, else
//     the first row with it. A row that says who cancelled the job is nearer.
//  3. Tables of several jobs say of none how it ended, unless the artifact is
//     known to belong to one of them.
func (b *book) close(p *parser) {
	last := map[string]int{} // job -> row at which its last start begins
	starts := map[string]int{}
	for i := range b.rows {
		r := &b.rows[i]
		if is, _ := r.step(); !is {
			last[r.job] = i
			starts[r.job]++
		}
	}
	jobOf := func(r *record) string {
		job, _, _ := strings.Cut(r.job, ".")
		return job
	}
	mains := map[string]bool{} // parts of a het job are one
	done := map[string]bool{}
	limit := map[string]evidence.Value{}
	for i := range b.rows {
		r := &b.rows[i]
		if !p.ours(r.job) {
			continue
		}
		whole, _, _ := strings.Cut(jobOf(r), "+")
		mains[whole] = true
		if is, _ := r.step(); !is && i == last[r.job] {
			done[r.job] = r.state == "COMPLETED"
			limit[r.job] = r.attrs["req_mem"]
		}
	}
	nearest := map[string]int{} // job -> row
	if len(mains) == 1 {
		for i := range b.rows {
			r := &b.rows[i]
			job := jobOf(r)
			if i < last[job] || done[job] || !p.ours(r.job) || endOf(r) == "" {
				continue
			}
			old, had := nearest[job]
			_, program := r.step()
			switch {
			case !had:
				nearest[job] = i
			default:
				if _, already := b.rows[old].step(); program && !already && r.state == b.rows[old].state && b.rows[old].by == "" {
					nearest[job] = i
				}
			}
		}
	}
	for i := range b.rows {
		r := &b.rows[i]
		job := jobOf(r)
		earlier := starts[job] > 1 && i < last[job]
		x := p.recordOf(r, earlier)
		p.s.Event(x)
		if n, ok := nearest[job]; ok && n == i {
			p.s.Event(p.endEvent(r, x.Who, limit[job]))
		}
	}
	b.rows = nil
}

// recordOf is the job_record of r. What another job used or asked for is left
// out: it says nothing of this one.
func (p *parser) recordOf(r *record, earlier bool) evidence.Event {
	r.attrs["job"] = evidence.TextOf(textline.Cut(r.job, 64))
	if r.state != "" {
		r.attrs["state"] = evidence.TextOf(r.state)
	}
	if !p.ours(r.job) {
		delete(r.attrs, "max_rss")
		delete(r.attrs, "req_mem")
	}
	x := p.event(evidence.JobRecord, r.at, r.attrs)
	x.Who.Host, x.Stamp = r.host, r.end
	if earlier {
		x.Who.Attempt = evidence.Earlier
	}
	return x
}

// endOf is the kind of event that the end of r is, "" where its state says
// nothing of it.
func endOf(r *record) evidence.Kind {
	switch r.state {
	case "OUT_OF_MEMORY":
		return evidence.HostOOMSched
	case "TIMEOUT", "DEADLINE":
		return evidence.TimeLimit
	case "NODE_FAIL", "BOOT_FAIL":
		return evidence.NodeFailure
	case "PREEMPTED", "REQUEUED":
		return evidence.Preempted
	case "CANCELLED":
		return evidence.Cancelled
	case "FAILED":
		if r.attrs["code"].I > 0 || r.attrs["signal"].I > 0 {
			return evidence.Exited
		}
	}
	return ""
}

// ends names the variants of the events that states are.
var ends = map[string]string{"OUT_OF_MEMORY": "slurm-state", "TIMEOUT": "slurm", "DEADLINE": "slurm-deadline", "NODE_FAIL": "slurm", "BOOT_FAIL": "slurm-boot",
	"PREEMPTED": "slurm-preemption", "REQUEUED": "slurm-requeue", "CANCELLED": "slurm", "FAILED": "slurm"}

func (p *parser) endEvent(r *record, who evidence.Who, limit evidence.Value) evidence.Event {
	kind := endOf(r)
	attrs := evidence.Attrs{"what": evidence.TextOf(ends[r.state])}
	switch kind {
	case evidence.HostOOMSched:
		if v := r.attrs["max_rss"]; v.Valid() {
			attrs["used"] = v
		}
		if limit.Valid() && limit.Lo > 0 {
			attrs["limit"] = limit
		}
		if v := r.attrs["task"]; v.Valid() {
			attrs["task"] = v
		}
	case evidence.Exited:
		for _, n := range []string{"code", "signal"} {
			if v := r.attrs[n]; v.Valid() {
				attrs[n] = v
			}
		}
	case evidence.Cancelled:
		if r.by != "" && r.by != "0" { // root is the administrator, and Slurm itself
			attrs["what"] = evidence.TextOf("slurm-user")
			attrs["by"] = evidence.TextOf(textline.Cut(r.by, 64))
		}
	}
	x := p.event(kind, r.at, attrs)
	x.Who, x.Stamp = who, r.end
	return x
}
