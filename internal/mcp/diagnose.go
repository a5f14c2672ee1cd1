package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/incident"
)

// How long a call of diagnose waits, in seconds: clients give up on calls that take long.
const (
	waitDefault = 45
	waitMost    = 600
	// maxPasted is the most text that is taken as an argument.
	maxPasted = 1 << 20
	maxPaths  = 4096
)

type diagnoseIn struct {
	Paths       []string `json:"paths,omitempty" jsonschema:"files, folders, archives or globs on this machine, as the user who started inquest may read them; a relative one is relative to the folder where inquest was started"`
	Text        string   `json:"text,omitempty" jsonschema:"the log itself, where it is no file here; at most 1 MiB"`
	Case        string   `json:"case,omitempty" jsonschema:"a case from an earlier call: wait for it, or get its verdict again"`
	Baseline    string   `json:"baseline,omitempty" jsonschema:"a case of a run that worked, to compare with"`
	All         bool     `json:"all,omitempty" jsonschema:"read every text below the paths, not only recognised kinds"`
	WaitSeconds *int     `json:"wait_seconds,omitempty" jsonschema:"how long this call may take; when it is over the case goes on being read, and the answer says how far it is. 0 to 600, by default 45"`
}

type diagnoseOut struct {
	Case    string   `json:"case" jsonschema:"id of the case, for the other tools; valid until inquest mcp ends or 64 later cases have ended"`
	State   string   `json:"state" jsonschema:"waiting, reading or done"`
	Done    int      `json:"artifacts_done"`
	Total   int      `json:"artifacts_total" jsonschema:"0 until it is known"`
	Verdict *verdict `json:"verdict" jsonschema:"null until the case is done"`
	Next    string   `json:"next" jsonschema:"what to call next, and what for"`
}

func addDiagnose(s *server) {
	add(s, describe("diagnose", "Diagnose a failed training run",
		"Say what failed first in a GPU training run, what only followed, why, and the one change to make. Give paths (a folder with everything the job left is best) or text; or case, to wait for an earlier call or to see its verdict again.",
		"none on what is read. Pasted text is kept in a private folder of inquest until it ends. No command is run.",
		"text 1 MiB, 4096 paths, 64 kept cases, answer 12 KB. A call waits wait_seconds (45); a larger job goes on being read, and a further call with case waits for it. Cancelling the call that began a case ends its reading.",
		"the case id, its state, and the bounded verdict: outcome, first_fault with standing and place, the order of memory failure and non-finite values, collateral, ranked causes with evidence for and against, the remedy, limits."),
		s.diagnose)
}

func (s *server) diagnose(ctx context.Context, req *mcp.CallToolRequest, in diagnoseIn) (*diagnoseOut, string, error) {
	wait := deref(in.WaitSeconds, waitDefault)
	if wait < 0 || wait > waitMost {
		return nil, "", failed(nil, "wait_seconds is %d; it may be 0 to %d.", wait, waitMost)
	}
	id, mine := strings.TrimSpace(in.Case), false
	if id == "" {
		c, err := s.begin(ctx, &in)
		if err != nil {
			return nil, "", err
		}
		id, mine = c.ID, true
	} else if len(in.Paths) > 0 || in.Text != "" {
		return nil, "", failed(nil, "case names a case that exists; paths and text make a new one. Give either.")
	}
	waited, stop := context.WithTimeout(ctx, time.Duration(wait)*time.Second)
	defer stop()
	c, err := s.await(waited, req, id)
	switch {
	case ctx.Err() != nil:
		if mine {
			_ = s.desk.Cancel(id) // it may have ended meanwhile
		}
		return nil, "", ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		if c, err = s.desk.Case(id); err != nil {
			return nil, "", err
		}
	case err != nil:
		return nil, "", err
	}
	if !c.Ended() {
		out := &diagnoseOut{Case: c.ID, State: c.State, Done: c.Done, Total: c.Total, Next: "diagnose with case " + c.ID + " waits for the verdict"}
		return out, fmt.Sprintf("Case %s is %s: %d of %d artifacts. Call diagnose with case %s to wait for the verdict.", c.ID, c.State, c.Done, c.Total, c.ID), nil
	}
	r, err := s.ended(ctx, c)
	if err != nil {
		return nil, "", err
	}
	return s.answer(c, r)
}

// begin opens a case of what was handed over and puts it in line.
func (s *server) begin(ctx context.Context, in *diagnoseIn) (*incident.Case, error) {
	switch {
	case len(in.Paths) == 0 && strings.TrimSpace(in.Text) == "":
		return nil, failed(nil, "There is nothing to diagnose. Give paths of what the job left (a folder is best), or the log itself as text, or the id of an earlier case.")
	case len(in.Paths) > 0 && in.Text != "":
		return nil, failed(nil, "Give paths or text, not both: they would be two runs. Save the text beside the other files to have it read with them.")
	case len(in.Text) > maxPasted:
		return nil, failed(nil, "text has %d bytes and may have %d. Save it as a file and give its path: files may have any size.", len(in.Text), maxPasted)
	case len(in.Paths) > maxPaths:
		return nil, failed(nil, "%d paths are more than the %d that are taken. Name the folder they are in.", len(in.Paths), maxPaths)
	}
	h := desk.Handling{Baseline: strings.TrimSpace(in.Baseline), All: in.All}
	if h.Baseline != "" {
		if _, err := s.result(ctx, &h.Baseline); err != nil {
			return nil, err
		}
	}
	c, err := s.open(ctx, in)
	if err != nil {
		return nil, failed(err, "What was named could not be opened. Check that each path exists and may be read, and call again.")
	}
	if err := s.desk.Diagnose(c.ID, h); err != nil {
		_ = s.desk.Remove(c.ID)
		return nil, err
	}
	return c, nil
}

func (s *server) open(ctx context.Context, in *diagnoseIn) (*incident.Case, error) {
	if len(in.Paths) > 0 {
		var paths []string
		for _, p := range in.Paths {
			if p = unquoted(p); p == "-" {
				return nil, errors.New("- is standard input, on which the protocol is spoken: give the log as text")
			}
			paths = append(paths, p)
		}
		return s.desk.Local("paths named over MCP", paths)
	}
	c, err := s.desk.Begin("text pasted over MCP")
	if err != nil {
		return nil, err
	}
	if _, err := s.desk.Put(ctx, c.ID, "pasted.log", strings.NewReader(in.Text)); err != nil {
		_ = s.desk.Remove(c.ID)
		return nil, err
	}
	return c, nil
}

// await is the case at its end; it tells a client that asked for it how far the reading is.
func (s *server) await(ctx context.Context, req *mcp.CallToolRequest, id string) (*incident.Case, error) {
	token := req.Params.GetProgressToken()
	var last *incident.Case
	told := -1 // progress must rise from one notice to the next
	err := s.desk.Watch(ctx, id, func(c *incident.Case) error {
		last = c
		if token == nil || c.Ended() || c.Done <= told {
			return nil
		}
		told = c.Done
		// A client that does not take it still gets its answer.
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: float64(c.Done), Total: float64(c.Total),
			Message: fmt.Sprintf("%s: %d of %d artifacts", c.State, c.Done, c.Total),
		})
		return nil
	})
	if err == nil && (last == nil || !last.Ended()) {
		err = ctx.Err()
		if err == nil {
			last, err = s.desk.Case(id)
		}
	}
	return last, err
}

// answer is the verdict as large as an answer may be: where all of it is too much, every text is
// shorter.
func (s *server) answer(c *incident.Case, r *desk.Result) (*diagnoseOut, string, error) {
	for percent := 100; ; percent = percent * 4 / 5 {
		v := s.verdict(r, percent)
		out := &diagnoseOut{Case: c.ID, State: word(c.State), Done: c.Done, Total: c.Total, Verdict: v, Next: v.next()}
		text := v.text(c.ID, percent)
		if fits(out, text) || percent < 15 {
			return out, text, nil
		}
	}
}
