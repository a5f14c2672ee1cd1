package mcp

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inquest-dev/inquest/internal/incident"
)

type alignIn struct {
	Run  string   `json:"run" jsonschema:"path of what a tracker left: a run's folder, a store, a file"`
	Logs []string `json:"logs,omitempty" jsonschema:"paths of the job's own logs; none where the tracker kept the console output"`
	From int      `json:"from,omitempty" jsonschema:"first row of the common timeline; next of the answer before"`
}

type alignOut struct {
	Runs     []alignedRun   `json:"runs" jsonschema:"at most 4"`
	More     int            `json:"more_runs"`
	Answer   string         `json:"answer" jsonschema:"which came first: nonfinite first, memory first, unknown, only nonfinite, only memory or neither"`
	Basis    string         `json:"quoted_basis" jsonschema:"how that is known, or why it is not"`
	Missing  string         `json:"quoted_missing,omitempty"`
	Clocks   []alignedClock `json:"clocks" jsonschema:"how the clocks of log and tracker stand to each other; at most 3"`
	After    []string       `json:"quoted_after_death" jsonschema:"what a tracker went on recording after the log's last word"`
	Disagree []string       `json:"quoted_disagreements"`
	Rows     []alignedRow   `json:"timeline"`
	Total    int            `json:"timeline_total"`
	Next     *int           `json:"next" jsonschema:"from of the next page; null on the last"`
	Limits   []string       `json:"quoted_limits"`
}

type alignedRun struct {
	Tracker string `json:"tracker"`
	Name    string `json:"quoted_name"`
	Status  string `json:"status" jsonschema:"finished, failed, killed, crashed, running-or-dead or unknown"`
	Basis   string `json:"quoted_status_basis"`
	Keeps   string `json:"keeps" jsonschema:"what this tracker makes of a value that is not finite: kept, clamped, zeroed, dropped or replaced"`
	First   string `json:"quoted_first_nonfinite,omitempty" jsonschema:"series and steps between which it ceased to be finite"`
}

type alignedClock struct {
	Offset  float64 `json:"offset_s" jsonschema:"log less tracker"`
	Bound   float64 `json:"bound_s"`
	Shared  int     `json:"shared_steps"`
	Means   string  `json:"means"`
	Applied bool    `json:"applied"`
}

type alignedRow struct {
	Time string `json:"time,omitempty"`
	Step *int64 `json:"step"`
	Kind string `json:"kind"`
	Text string `json:"quoted_text"`
}

func addAlignTracker(s *server) {
	add(s, describe("align_tracker", "Set a tracked run against the job's log",
		"Read what an experiment tracker (TensorBoard, W&B, MLflow, Trainer state and others) recorded of a run and set it against the job's logs: whether memory failed or the loss ceased to be finite first, how their clocks stand to each other, and what the tracker cannot show.",
		"none; files are only read. For a corrected copy of the tracker's data show the user inquest tracker repair.",
		"4 runs, about 25 rows of the common timeline an answer; next continues. Local files only: no server is asked.",
		"the answer with its basis, runs with status and how they treat values that are not finite, clocks, disagreements, and a common timeline."),
		s.alignTracker)
}

func (s *server) alignTracker(ctx context.Context, _ *mcp.CallToolRequest, in alignIn) (*alignOut, string, error) {
	run := strings.TrimSpace(unquoted(in.Run))
	switch {
	case s.Align == nil:
		return nil, "", failed(nil, "Trackers cannot be read here. Run inquest tracker align RUN LOG.")
	case run == "" || run == "-":
		return nil, "", failed(nil, "run is the path of what a tracker left: a run's folder, a store or a file.")
	case strings.Contains(run, "://"):
		return nil, "", failed(nil, "run is an address; these tools ask no server. inquest tracker align does, for the user.")
	case len(in.Logs) > maxPaths:
		return nil, "", failed(nil, "%d logs are more than the %d that are taken. Name the folder they are in.", len(in.Logs), maxPaths)
	}
	var logs []string
	for _, p := range in.Logs {
		if p = unquoted(p); p == "-" || strings.Contains(p, "://") {
			return nil, "", failed(nil, "logs are paths of files or folders on this machine.")
		}
		logs = append(logs, p)
	}
	a, err := s.Align(ctx, run, logs)
	if err != nil {
		if ctx.Err() != nil {
			return nil, "", ctx.Err()
		}
		return nil, "", failed(err, "The run could not be set against the log. Check that both paths exist; where there is no log, diagnose reads the tracker alone.")
	}
	if len(a.Runs) == 0 {
		return nil, "", failed(nil, "There is no run of an experiment tracker in what was named. Name its folder, as runs/, wandb/ or mlruns/.")
	}
	out := alignmentOf(a)
	text := out.page(a, max(in.From, 0))
	return out, text, nil
}

func alignmentOf(a *incident.Alignment) *alignOut {
	out := &alignOut{Runs: []alignedRun{}, Answer: phrase(a.Order.Answer), Basis: quote(a.Order.Basis, 300), Missing: quote(a.Order.Missing, 240), Clocks: []alignedClock{},
		Disagree: quoteAll(texts(a.Disagree), 3, 200), Limits: quoteAll(append(texts(a.Limits), a.NotFound...), 3, 200)}
	for i := range a.Runs[:min(len(a.Runs), 4)] {
		r := &a.Runs[i]
		x := alignedRun{Tracker: word(r.Tracker), Name: quote(first(r.Name, r.ID, r.Folder), 120), Status: word(r.Status), Basis: quote(r.Basis, 160), Keeps: word(r.Keeps)}
		if o := r.First; o != nil {
			said := o.Series
			if o.Before != nil && o.Before.Step != nil {
				said += fmt.Sprintf(", finite at step %d", *o.Before.Step)
			}
			if o.At.Step != nil {
				said += fmt.Sprintf(", not finite at step %d", *o.At.Step)
			}
			x.First = quote(said, 160)
		}
		out.Runs = append(out.Runs, x)
	}
	out.More = len(a.Runs) - len(out.Runs)
	for _, c := range a.Clocks[:min(len(a.Clocks), 3)] {
		out.Clocks = append(out.Clocks, alignedClock{c.Offset, c.Bound, c.Shared, phrase(c.Means), c.Applied})
	}
	var after []string
	for _, d := range a.After {
		after = append(after, fmt.Sprintf("%d points after death; %s", d.Points, d.Basis))
	}
	out.After = quoteAll(after, 2, 200)
	return out
}

// page fills in the rows from one on and returns the answer as text.
func (out *alignOut) page(a *incident.Alignment, from int) string {
	var l lines
	l.add("Which came first: %s. %s", out.Answer, out.Basis)
	l.with("Missing: %s", out.Missing)
	for _, r := range out.Runs {
		l.add("%s %s: %s; values that are not finite are %s. %s", r.Tracker, r.Name, r.Status, r.Keeps, r.First)
	}
	for _, d := range out.Disagree {
		l.add("They disagree: %s", shorter(d, 160))
	}
	out.Total = len(a.Rows)
	rows, text, next := fill(from, len(a.Rows), 0, Budget-1_000-headSize(out)-jsonSize(l.String()), func(i int) (alignedRow, string) {
		row := &a.Rows[i]
		x := alignedRow{Time: word(deref(row.Time, "")), Step: row.Step, Kind: word(row.Kind), Text: quote(row.Text, 180)}
		line := strings.TrimSpace(x.Time + " " + x.Kind)
		if x.Step != nil {
			line += fmt.Sprintf(" step %d", *x.Step)
		}
		return x, line + " " + shorter(x.Text, 120)
	})
	out.Rows = rows
	for _, x := range text {
		l.add("%s", x)
	}
	if next < len(a.Rows) {
		out.Next = &next
		l.add("More: from %d.", next)
	}
	return l.String()
}
