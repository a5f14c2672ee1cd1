// Package kube reads what Kubernetes (1.18 to 1.34) and the operators above it
// keep of a job: pods, events, nodes, Jobs, Kubeflow training jobs, JobSets and
// Kueue workloads as JSON or YAML (kubectl get -o json|yaml, one object or a list),
// the tables of kubectl get pods and events and kubectl events, and kubectl
// describe pod, job and node. The fields are those of the API reference, core/v1,
// batch/v1 and events.k8s.io/v1.
//
// Every container's state, every condition and every event is put down as
// context (job_record, job_event, node_state). Where one says how the job's
// process ended (OOMKilled, an exit code, Evicted, preemption, a deadline, a lost
// node), it is that event too. Messages mean what the reader of logs makes of them.
// What is said of a container's run before its newest, or of a pod that another
// one of the same index replaced, belongs to an earlier start.
package kube

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/jsontree"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/reader"
)

const (
	maxFile  = 64 << 20 // bytes of JSON or YAML
	maxLine  = 64 << 10 // bytes of a line of text that are looked at
	maxQuote = 1024     // bytes kept as a quote
	maxText  = 256      // bytes of an attribute
	maxHeld  = 1 << 16  // events that are held back until it is known which start they belong to
)

var (
	errLongFile = errors.New("over limit: longer than 64 MiB")
	errLongLine = errors.New("over limit: line longer than 64 KiB")
)

// New returns the reader. log is the reader of logs, which says what a message
// means.
func New(log reader.Reader) reader.Reader { return kube{log} }

type kube struct{ log reader.Reader }

func (kube) Name() string { return "kube" }

type shape int

const (
	none shape = iota
	asJSON
	asYAML
	asText
)

// kinds are the objects that are read, and the lists of them.
var kinds = map[string]bool{"Pod": true, "Event": true, "Node": true, "Job": true, "PyTorchJob": true, "MPIJob": true, "TFJob": true, "XGBoostJob": true, "PaddleJob": true, "JAXJob": true,
	"TrainJob": true, "JobSet": true, "Workload": true, "RayJob": true, "RayCluster": true, "LeaderWorkerSet": true, "List": true, "PodList": true, "EventList": true, "NodeList": true, "JobList": true,
	"PyTorchJobList": true, "MPIJobList": true, "JobSetList": true, "WorkloadList": true, "TrainJobList": true}

// shapeOf says what the first bytes of a file are.
func shapeOf(head []byte) shape {
	text := string(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")))
	if strings.IndexByte(text, 0) >= 0 {
		return none
	}
	trimmed := strings.TrimLeft(text, " \t\r\n")
	if strings.HasPrefix(trimmed, "{") && !strings.Contains(firstLine(trimmed), "\"toolset_name\"") {
		if strings.Contains(text, `"apiVersion"`) && kinds[valueAfter(text, `"kind"`)] {
			return asJSON
		}
		return none
	}
	api, kind := false, false
	lines := strings.Split(text, "\n")
	for _, l := range lines {
		l = strings.TrimRight(l, "\r")
		api = api || strings.HasPrefix(strings.TrimPrefix(l, "- "), "apiVersion: ")
		k, ok := strings.CutPrefix(strings.TrimPrefix(strings.TrimLeft(l, " "), "- "), "kind: ")
		kind = kind || ok && kinds[k]
	}
	if api && (kind || strings.Contains(text, "\nitems:")) {
		return asYAML
	}
	for i, l := range lines {
		if _, ok := tableOf(l); ok {
			return asText
		}
		if strings.HasPrefix(l, "Name:  ") && i+1 < len(lines) {
			for _, next := range lines[i+1 : min(i+12, len(lines))] {
				for _, key := range []string{"Namespace:  ", "Roles:  ", "Labels:  ", "Containers:"} {
					if strings.HasPrefix(next, key) {
						return asText
					}
				}
			}
		}
		if i > 12 && !strings.HasPrefix(l, "#") {
			break
		}
	}
	return none
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// valueAfter is the first string value of a key in JSON.
func valueAfter(text, key string) string {
	for {
		i := strings.Index(text, key)
		if i < 0 {
			return ""
		}
		text = text[i+len(key):]
		rest, ok := strings.CutPrefix(strings.TrimLeft(text, " \t\r\n"), ":")
		rest, quoted := strings.CutPrefix(strings.TrimLeft(rest, " \t\r\n"), `"`)
		if v, _, closed := strings.Cut(rest, `"`); ok && quoted && closed && kinds[v] {
			return v
		}
	}
}

// Sniff claims objects of the API that are read here, and texts that begin with
// a table or description of kubectl.
func (kube) Sniff(_ evidence.Artifact, head []byte) reader.Confidence {
	if shapeOf(head) != none {
		return reader.Sure
	}
	return reader.No
}

// Read implements reader.Reader.
func (r kube) Read(ctx context.Context, in reader.Input, s reader.Sink) error {
	f, err := in.Open()
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer f.Close()
	b := bufio.NewReaderSize(f, maxLine)
	head, _ := b.Peek(4096)
	form := shapeOf(head)
	k := &file{ctx: ctx, log: r.log, s: s, a: in.Artifact, lined: form == asText}
	if in.Size > 0 { // as stated; pages that are not written take no memory
		k.data = make([]byte, 0, min(in.Size, maxFile)+1)
	}
	over, err := k.slurp(b)
	if err != nil {
		return err
	}
	if over {
		defer func() { s.Damage(k.end(), errLongFile) }()
	}
	switch form {
	case asJSON:
		k.json(over)
	case asYAML:
		objects(k.ctx, k.data, k.object, func(at int, err error) { s.Damage(k.span(at, at), err) })
	default:
		k.text()
	}
	k.flush()
	k.tell()
	return k.ctx.Err()
}

// A file is one artifact in hand.
type file struct {
	ctx  context.Context
	log  reader.Reader
	s    reader.Sink
	a    evidence.Artifact
	data []byte

	lined bool // events stand in lines of their own, as kubectl prints them
	lines *jsontree.Lines
	pods  []podEvents
	held  int
	told  []toldEnd
}

func (k *file) slurp(r io.Reader) (over bool, err error) {
	buf := make([]byte, 64<<10)
	for {
		if err := k.ctx.Err(); err != nil {
			return false, err
		}
		n, err := r.Read(buf)
		keep := min(n, maxFile-len(k.data))
		k.data = append(k.data, buf[:keep]...)
		over = over || keep < n
		if err == io.EOF {
			return over, nil
		}
		if err != nil {
			return over, fmt.Errorf("read: %w", err)
		}
	}
}

func (k *file) json(over bool) {
	at := len(k.data) - len(bytes.TrimPrefix(k.data, []byte("\xef\xbb\xbf")))
	for at < len(k.data) { // kubectl prints one value; jq -c and watches print many
		list := false
		n, end, err := jsontree.Parse(k.data, at, func(key string, x *jsontree.Node) bool {
			if key != "items" && key != "" || x.Sort != jsontree.Object || k.ctx.Err() != nil {
				return false
			}
			list = true
			k.object(x)
			return true
		})
		if !list {
			k.object(n)
		}
		if err != nil {
			if !over {
				k.s.Damage(k.span(end, end), err)
			}
			return
		}
		rest := bytes.TrimLeft(k.data[end:], " \t\r\n")
		at = len(k.data) - len(rest)
	}
}

// span is data[from:to] as text, cut to maxQuote.
func (k *file) span(from, to int) evidence.Span {
	if k.lines == nil {
		k.lines = jsontree.NewLines(k.data)
	}
	to = min(to, from+maxQuote)
	return evidence.Span{Artifact: k.a.Path, Kind: "text", Line: int64(k.lines.At(from)), Column: from - bytes.LastIndexByte(k.data[:from], '\n'), Offset: int64(from), Length: int64(to - from), Quote: string(k.data[from:to])}
}

func (k *file) end() evidence.Span { return k.span(len(k.data), len(k.data)) }

// at is the place of a value with its key, the place of or where there is none.
func (k *file) at(n, or *jsontree.Node) evidence.Span {
	if n == nil {
		n = or
	}
	to := n.End
	if n.Sort == jsontree.Object || n.Sort == jsontree.Array { // its first line
		if i := bytes.IndexByte(k.data[n.From:n.End], '\n'); i >= 0 {
			to = n.From + i
		}
	}
	return k.span(n.From, to)
}

// podEvents are the events of one pod until it is known whether another replaced it.
type podEvents struct {
	job, slot string // slot is what at most one pod of a job fills at a time, "" if not known
	created   string
	gpu       bool
	ended     bool
	events    []evidence.Event
	ends      []evidence.Event // how it ended, which counts only for the job in question
}

func (k *file) hold(p podEvents) {
	k.held += len(p.events) + len(p.ends)
	k.pods = append(k.pods, p)
	if k.held > maxHeld {
		k.flush()
	}
}

// flush hands over what was held back.
//
//  1. A pod that has ended and whose place a younger pod has taken belongs to an
//     earlier start of the job.
//  2. A list can hold pods of several jobs. Then those count whose pods have a GPU;
//     if these are of several jobs as well, how a pod ended is not known to be how
//     this job ended, and stays context.
func (k *file) flush() {
	newest := map[string]string{}
	jobs, gpuJobs := map[string]bool{}, map[string]bool{}
	for i := range k.pods {
		p := &k.pods[i]
		jobs[p.job] = true
		if p.gpu {
			gpuJobs[p.job] = true
		}
		if key := p.job + "\x00" + p.slot; p.slot != "" && p.created > newest[key] {
			newest[key] = p.created
		}
	}
	ours := func(job string) bool {
		switch {
		case k.a.Owner.Job != "" && jobs[k.a.Owner.Job]:
			return job == k.a.Owner.Job
		case len(jobs) <= 1:
			return true
		}
		return len(gpuJobs) == 1 && gpuJobs[job]
	}
	for i := range k.pods {
		p := &k.pods[i]
		list := p.events
		if ours(p.job) {
			list = append(list, p.ends...)
		}
		replaced := p.slot != "" && p.ended && p.created < newest[p.job+"\x00"+p.slot]
		for _, e := range list {
			if replaced {
				e.Who.Attempt = evidence.Earlier
			}
			k.s.Event(e)
		}
	}
	k.pods, k.held = nil, 0
}

// A toldEnd is what an event says of how a pod of the job called stem ended.
type toldEnd struct {
	stem string
	evidence.Event
}

// tell hands over what events say of how pods ended, if all that do are about
// pods of one job: a name space holds many. What is said of a node is the machine's record.
func (k *file) tell() {
	stems := map[string]bool{}
	for i := range k.told {
		if k.told[i].stem != "" { // what is said of a node is about no pod
			stems[k.told[i].stem] = true
		}
	}
	for i := range k.told {
		if k.told[i].stem == "" || len(stems) <= 1 {
			k.s.Event(k.told[i].Event)
		}
	}
}

func (k *file) put(e evidence.Event) { k.s.Event(e) }

// said has the log reader read a message and returns the failures in it, at span.
func (k *file) said(text string, span evidence.Span, who evidence.Who, st evidence.Stamp) []evidence.Event {
	if text == "" || k.ctx.Err() != nil {
		return nil
	}
	c, err := reader.Within(k.ctx, k.log, evidence.Artifact{Path: k.a.Path, Kind: k.a.Kind, Owner: evidence.Owner{Rank: evidence.None, LocalRank: evidence.None}}, []byte(text+"\n"))
	if err != nil {
		return nil
	}
	var out []evidence.Event
	for _, x := range c.Events {
		spec := evidence.SpecOf(x.Kind)
		if spec == nil || spec.Role != evidence.RoleFault && spec.Role != evidence.RoleStop && spec.Role != evidence.RoleEffect {
			continue
		}
		own := x.Who
		x.Who = who
		if own.Rank != evidence.None && who.Rank == evidence.None {
			x.Who.Rank = own.Rank
		}
		if own.PID != evidence.None {
			x.Who.PID = own.PID
		}
		x.Span, x.Step = span, evidence.None
		if quote := strings.Join(strings.Fields(span.Quote), " "); !strings.Contains(quote, strings.Join(strings.Fields(x.Text), " ")) {
			x.Text = textline.Clean(quote) // the message was put into the words of another printout, or its escapes were resolved
		}
		if st.Known() {
			x.Stamp = st
		}
		out = append(out, x)
	}
	return out
}

func event(kind evidence.Kind, span evidence.Span, who evidence.Who, st evidence.Stamp, attrs evidence.Attrs) evidence.Event {
	return evidence.Event{Kind: kind, Who: who, Stamp: st, Step: evidence.None, Text: wordsOf(span), Attrs: attrs, Span: span}
}

// wordsOf is what stands at a place, its columns one blank apart.
func wordsOf(span evidence.Span) string {
	return textline.Clean(strings.Join(strings.Fields(span.Quote), " "))
}
