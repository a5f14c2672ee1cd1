package mlflow

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/mlflowfile"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/lazyre"
	"github.com/inquest-dev/inquest/internal/reader"
)

// A Remote is a tracking server that the user named.
type Remote struct {
	// Address is http or https, a host and, for servers behind a proxy, a path: what
	// MLFLOW_TRACKING_URI holds. The address of a page of MLflow's own pages does as well:
	// of its /#/experiments/ID/runs/ID the run, of /#/experiments/ID the runs of that
	// experiment are read.
	Address string
	// Username and Password, or Token, are sent to that host alone (MLFLOW_TRACKING_USERNAME,
	// _PASSWORD, _TOKEN). Without them a name and a password in the address are. They are in
	// no error and no result.
	Username, Password, Token string
	// Transport sends the requests; nil is http.DefaultTransport.
	Transport http.RoundTripper
}

// IsAddress reports whether what a user named is the address of a server and not a path.
func IsAddress(name string) bool {
	return strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://")
}

// Name is the address without credentials, page and query, under which the server's runs
// are reported; "" if it is none.
func (r Remote) Name() string {
	c, err := dial(r)
	if err != nil {
		return ""
	}
	return c.name
}

// Bounds of what is asked of a server.
const (
	remoteTimeout   = 60 * time.Second // of one request
	maxBody         = 64 << 20         // bytes of one answer
	maxRemoteRuns   = 200              // the newest
	maxExperiments  = 5000
	pageRuns        = 200
	pagePoints      = 25_000 // the most that MLflow allows
	maxRemotePoints = 50_000_000
	maxFailures     = 5 // series in a row that cannot be had
)

// Fetch reads runs from a tracking server over its REST interface (mlflow/protos/service.proto,
// /api/2.0/mlflow): of those that the address names the newest 200, each with its parameters,
// tags, status and the whole history of every metric. The newest is what the diagnosis hears of.
// Only requests that read are sent, to that host alone; a redirection to another is an
// error. What a single series lacks is damage; the error is ctx's, or says why nothing
// more can be had. Artifact of the runs is the address without its credentials.
func Fetch(ctx context.Context, from Remote, s reader.Sink) error {
	c, err := dial(from)
	if err != nil {
		return err
	}
	runs, more, err := c.runs(ctx)
	if err != nil {
		return err
	}
	if len(runs) == 0 {
		return fmt.Errorf("%s has no runs", c.name)
	}
	slices.SortStableFunc(runs, func(a, b remoteRun) int { return -cmp.Compare(a.Info.Start, b.Info.Start) })
	apart := reader.Apart(s)
	for i := range runs {
		to := s
		if i > 0 {
			to = apart
		}
		if to == nil {
			break
		}
		rec := c.record(to, &runs[i])
		if i == 0 && more {
			rec.Damage(evidence.RunDamage{Kind: evidence.OverBound, Span: evidence.Span{Artifact: c.name, Kind: "record"}, Text: fmt.Sprintf("more than %d runs on the server; older ones were not asked for", maxRemoteRuns)})
		}
		if err := c.histories(ctx, rec, &runs[i]); err != nil {
			return err
		}
		rec.Close()
	}
	return nil
}

// A client asks one server.
type client struct {
	http             *http.Client
	base             *url.URL // without credentials, fragment and query
	name             string   // base as text
	user, pass       string
	token            string
	experiment, run  string // of the address
	names            map[string]string
	points, failures int64
}

var pageOf = lazyre.New(`/experiments/(\d{1,19})(?:/runs/([0-9a-f]{32}))?`)

func dial(from Remote) (*client, error) {
	u, err := url.Parse(from.Address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("an MLflow server is named by an address like http://host:5000")
	}
	c := &client{user: from.Username, pass: from.Password, token: from.Token, names: map[string]string{}}
	if c.user == "" && c.token == "" && u.User != nil {
		c.user = u.User.Username()
		c.pass, _ = u.User.Password()
	}
	page := u.Fragment
	if page == "" { // pages of some hosts stand in the path
		if i := strings.Index(u.Path, "/experiments/"); i >= 0 {
			page, u.Path = u.Path[i:], u.Path[:i]
		}
	}
	if m := pageOf.FindStringSubmatch(page); m != nil {
		c.experiment, c.run = m[1], m[2]
	}
	c.base = &url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimRight(u.Path, "/")}
	c.name = c.base.String()
	c.http = &http.Client{Transport: from.Transport, Timeout: remoteTimeout, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if req.URL.Host != c.base.Host || req.URL.Scheme != c.base.Scheme {
			return errors.New("the server redirects to another host, which is not asked")
		}
		if len(via) > 3 {
			return errors.New("the server redirects in circles")
		}
		return nil
	}}
	return c, nil
}

// ask sends one request and decodes the answer. body is nil for GET.
func (c *client) ask(ctx context.Context, what string, query url.Values, body, answer any) error {
	u := *c.base
	u.Path += "/api/2.0/mlflow/" + what
	u.RawQuery = query.Encode()
	method, in := http.MethodGet, io.Reader(nil)
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		method, in = http.MethodPost, bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), in)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	switch {
	case c.token != "":
		req.Header.Set("Authorization", "Bearer "+c.token)
	case c.user != "":
		req.SetBasicAuth(c.user, c.pass)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if ue := (*url.Error)(nil); errors.As(err, &ue) {
			err = ue.Err
		}
		return fmt.Errorf("ask %s for %s: %w", c.name, what, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("ask %s for %s: %w", c.name, what, err)
	case len(b) > maxBody:
		return fmt.Errorf("ask %s for %s: over limit: the answer is longer than 64 MiB", c.name, what)
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		return fmt.Errorf("ask %s for %s: %s; name and password are taken from MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or a token from MLFLOW_TRACKING_TOKEN", c.name, what, resp.Status)
	case resp.StatusCode != http.StatusOK:
		var said struct{ Message string }
		_ = json.Unmarshal(b, &said) // a proxy's own words are no JSON
		return fmt.Errorf("ask %s for %s: %s %s", c.name, what, textline.OneLine(resp.Status, 80), textline.OneLine(said.Message, maxNote))
	}
	if err := json.Unmarshal(b, answer); err != nil {
		return fmt.Errorf("ask %s for %s: the answer is not MLflow's: %w", c.name, what, err)
	}
	return nil
}

// A whole is an int64, which protobuf's JSON writes as a text.
type whole int64

func (w *whole) UnmarshalJSON(b []byte) error {
	text := strings.Trim(string(b), `"`)
	if text == "null" || text == "" {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	*w = whole(n)
	return err
}

// A double is a number, which protobuf's JSON writes as a text where it is not finite.
type double float64

func (d *double) UnmarshalJSON(b []byte) error {
	switch text := strings.Trim(string(b), `"`); text {
	case "null":
		*d = double(math.NaN())
		return nil
	default:
		v, err := strconv.ParseFloat(text, 64)
		if errors.Is(err, strconv.ErrRange) {
			err = nil
		}
		*d = double(v)
		return err
	}
}

type keyed struct{ Key, Value string }

type remoteRun struct {
	Info struct {
		ID         string `json:"run_id"`
		UUID       string `json:"run_uuid"` // before 1.0
		Name       string `json:"run_name"`
		Experiment string `json:"experiment_id"`
		Status     string
		Start      whole  `json:"start_time"`
		End        whole  `json:"end_time"`
		Stage      string `json:"lifecycle_stage"`
	}
	Data struct {
		Metrics      []struct{ Key string }
		Params, Tags []keyed
	}
}

// runs lists the runs that are wanted; more says that there are others.
func (c *client) runs(ctx context.Context) (runs []remoteRun, more bool, err error) {
	if c.run != "" {
		var a struct{ Run remoteRun }
		err := c.ask(ctx, "runs/get", url.Values{"run_id": {c.run}}, nil, &a)
		return []remoteRun{a.Run}, false, err
	}
	var ids []string
	for token := ""; len(ids) < maxExperiments; {
		var a struct {
			Experiments []struct {
				ID   string `json:"experiment_id"`
				Name string
			}
			Next string `json:"next_page_token"`
		}
		body := map[string]any{"max_results": 1000}
		if token != "" {
			body["page_token"] = token
		}
		if err := c.ask(ctx, "experiments/search", nil, body, &a); err != nil {
			return nil, false, err
		}
		for _, e := range a.Experiments {
			c.names[e.ID] = textline.OneLine(e.Name, maxNote)
			ids = append(ids, e.ID)
		}
		if token = a.Next; token == "" || len(a.Experiments) == 0 {
			break
		}
	}
	if c.experiment != "" {
		ids = []string{c.experiment}
	}
	if len(ids) == 0 {
		return nil, false, nil
	}
	for token := ""; ; {
		var a struct {
			Runs []remoteRun
			Next string `json:"next_page_token"`
		}
		body := map[string]any{"experiment_ids": ids, "max_results": pageRuns, "order_by": []string{"attributes.start_time DESC"}}
		if token != "" {
			body["page_token"] = token
		}
		if err := c.ask(ctx, "runs/search", nil, body, &a); err != nil {
			return nil, false, err
		}
		runs = append(runs, a.Runs...)
		if token = a.Next; token == "" || len(a.Runs) == 0 {
			return runs[:min(len(runs), maxRemoteRuns)], len(runs) > maxRemoteRuns, nil
		}
		if len(runs) >= maxRemoteRuns {
			return runs[:maxRemoteRuns], true, nil
		}
	}
}

// record begins the recording of a run.
func (c *client) record(s reader.Sink, r *remoteRun) *reader.Recording {
	rec := reader.NewRecording(s, Tracker, c.name)
	run := &rec.Run
	run.ID = textline.OneLine(cmp.Or(r.Info.ID, r.Info.UUID), maxNote)
	run.Name = textline.OneLine(r.Info.Name, maxNote)
	run.Project = cmp.Or(c.names[r.Info.Experiment], textline.OneLine(r.Info.Experiment, maxNote))
	run.Folder = c.name
	run.Keeps = evidence.Clamped
	run.Status, run.StatusSaid = statusOf(r.Info.Status), textline.OneLine(r.Info.Status, 32)
	run.StatusSpan = evidence.Span{Artifact: c.name, Kind: "pointer", Pointer: "runs/" + run.ID + "/info/status", Quote: run.StatusSaid}
	run.Started, run.Ended = reader.StampAt(wall(int64(r.Info.Start))), reader.StampAt(wall(int64(r.Info.End)))
	run.Cannot = append(run.Cannot, "A server whose store is a database gives the largest finite number for an infinity, 1.7976931348623157e308; such values are listed as suspect.", "Console output is not kept.")
	if r.Info.Stage == "deleted" {
		note(run, "deleted in MLflow, and still on the server")
	}
	for _, p := range r.Data.Params {
		name, value := textline.OneLine(p.Key, maxNote), textline.OneLine(p.Value, maxSetting)
		rec.Setting(name, value, evidence.Span{Artifact: c.name, Kind: "pointer", Pointer: "runs/" + run.ID + "/params/" + name, Quote: textline.OneLine(value, maxNote)})
	}
	for _, t := range r.Data.Tags {
		tag(run, t.Key, t.Value)
	}
	return rec
}

// histories reads all metrics of a run.
func (c *client) histories(ctx context.Context, rec *reader.Recording, r *remoteRun) error {
	for _, m := range r.Data.Metrics {
		err := c.history(ctx, rec, m.Key)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			c.failures = 0
			continue
		}
		if c.failures++; c.failures >= maxFailures {
			rec.Close()
			return err
		}
		rec.Damage(evidence.RunDamage{Kind: evidence.BadRecord, Span: evidence.Span{Artifact: c.name, Kind: "pointer", Pointer: "runs/" + rec.Run.ID + "/metrics/" + textline.OneLine(m.Key, maxNote)}, Text: err.Error()})
	}
	return nil
}

// history reads one metric, in the order in which the server has it.
func (c *client) history(ctx context.Context, rec *reader.Recording, key string) error {
	name := mlflowfile.Key(key)
	rec.File = "runs/" + rec.Run.ID + "/metrics/" + textline.OneLine(key, maxNote)
	var t *reader.Track
	n := int64(0)
	for token := ""; ; {
		query := url.Values{"run_id": {rec.Run.ID}, "metric_key": {key}, "max_results": {strconv.Itoa(pagePoints)}}
		if token != "" {
			query.Set("page_token", token)
		}
		var a struct {
			Metrics []struct {
				Value     double
				Timestamp whole
				Step      whole
			}
			Next string `json:"next_page_token"`
		}
		if err := c.ask(ctx, "metrics/get-history", query, nil, &a); err != nil {
			return err
		}
		for _, p := range a.Metrics {
			if c.points++; c.points > maxRemotePoints {
				return fmt.Errorf("over limit: more than %d values", maxRemotePoints)
			}
			v := float64(p.Value)
			if t == nil {
				if t = rec.Track(name, system(key), v); t == nil {
					return nil
				}
			}
			n++
			t.Add(int64(p.Step), wall(int64(p.Timestamp)), v, reader.Place{Line: n})
			if v == Clamp || v == -Clamp {
				t.Suspect(1, clampReason)
			}
		}
		if token == a.Next || a.Next == "" || len(a.Metrics) == 0 {
			return nil
		}
		token = a.Next
	}
}
