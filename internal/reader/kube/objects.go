package kube

import (
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/jsontree"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// object reads one object. Objects in the lists of the API itself carry no kind:
// their fields tell.
func (k *file) object(n *jsontree.Node) {
	if n == nil || n.Sort != jsontree.Object || k.ctx.Err() != nil {
		return
	}
	switch kind := n.Str("kind"); {
	case kind == "Pod" || kind == "" && n.Get("spec", "containers") != nil:
		k.pod(n)
	case kind == "Event" || kind == "" && (n.Get("involvedObject") != nil || n.Get("regarding") != nil):
		k.eventObject(n)
	case kind == "Node" || kind == "" && n.Get("status", "nodeInfo") != nil:
		k.node(n)
	case n.Get("status", "conditions") != nil:
		k.workload(n)
	case kind == "" && n.Get("object") != nil: // kubectl get --watch --output-watch-events
		k.object(n.Get("object"))
	}
}

// jobLabels name the job that a pod belongs to, the outermost first.
var jobLabels = []string{"training.kubeflow.org/job-name", "jobset.sigs.k8s.io/jobset-name", "volcano.sh/job-name", "ray.io/cluster", "leaderworkerset.sigs.k8s.io/name",
	"batch.kubernetes.io/job-name", "job-name", "pytorch-job-name", "mpi-job-name"}

// A podID is what a pod's labels and environment tell of its place in the job.
type podID struct {
	job, slot string
	rank      int // of its process, if it runs one
	world     int
	gpus      int
	node      string
	at        *jsontree.Node // what states the rank
}

func identity(n *jsontree.Node) podID {
	id := podID{rank: evidence.None, world: evidence.None, node: n.Str("spec", "nodeName")}
	labels, notes := n.Get("metadata", "labels"), n.Get("metadata", "annotations")
	for _, l := range jobLabels {
		if id.job = labels.Str(l); id.job != "" {
			break
		}
	}
	if owners := n.List("metadata", "ownerReferences"); id.job == "" && len(owners) > 0 {
		id.job = owners[0].Str("name")
	}
	index := func(l string) *jsontree.Node {
		if x := labels.Get(l); x != nil {
			return x
		}
		return notes.Get(l)
	}
	for _, l := range []string{"training.kubeflow.org/replica-index", "batch.kubernetes.io/job-completion-index", "leaderworkerset.sigs.k8s.io/worker-index", "volcano.sh/task-index"} {
		if x := index(l); x != nil {
			id.slot = labels.Str("training.kubeflow.org/replica-type") + labels.Str("volcano.sh/task-spec") + labels.Str("jobset.sigs.k8s.io/job-index") + labels.Str("leaderworkerset.sigs.k8s.io/group-index") + "/" + x.Text
			break
		}
	}
	env := map[string]*jsontree.Node{}
	for _, c := range n.List("spec", "containers") {
		for name, v := range c.Get("resources", "limits").Pairs() {
			if strings.HasSuffix(name, "/gpu") || strings.Contains(name, "nvidia.com/mig-") {
				id.gpus += atoi(v.Text, 0)
			}
		}
		for _, e := range c.List("env") {
			v := e.Get("value")
			if v == nil && strings.Contains(e.Str("valueFrom", "fieldRef", "fieldPath"), "job-completion-index") {
				v = index("batch.kubernetes.io/job-completion-index")
			}
			if name := e.Str("name"); v != nil && env[name] == nil {
				env[name] = v
			}
		}
	}
	id.rankFrom(env)
	return id
}

// rankFrom finds the rank of the one process of a pod. A pod that runs several
// (more than one GPU, or PET_NPROC_PER_NODE) is a node of the job, whose number is
// no rank.
func (id *podID) rankFrom(env map[string]*jsontree.Node) {
	value := func(name string) string {
		if x := env[name]; x != nil {
			return x.Text
		}
		return ""
	}
	one := id.gpus <= 1
	for _, name := range []string{"PET_NPROC_PER_NODE", "NPROC_PER_NODE", "LOCAL_WORLD_SIZE"} {
		if v := value(name); v != "" && v != "1" && !(id.gpus == 1 && (v == "auto" || v == "gpu")) {
			one = false
		}
	}
	if !one {
		return
	}
	names := []string{"RANK"}
	if id.gpus == 1 {
		names = append(names, "PET_NODE_RANK", "NODE_RANK")
	}
	for _, name := range names {
		if n := atoi(value(name), evidence.None); n >= 0 {
			id.rank, id.at = n, env[name]
			if w := atoi(value("WORLD_SIZE"), 0); w > n {
				id.world = w
			}
			return
		}
	}
}

func atoi(s string, or int) int {
	if n, err := strconv.Atoi(strings.TrimSpace(s)); err == nil && len(s) < 8 {
		return n
	}
	return or
}

// pod reads one pod.
func (k *file) pod(n *jsontree.Node) {
	id := identity(n)
	who := evidence.Nobody()
	who.Host, who.Rank = textline.Cut(textline.Clean(n.Str("metadata", "name")), maxText), id.rank
	p := podEvents{job: id.job, slot: id.slot, created: n.Str("metadata", "creationTimestamp"), gpu: id.gpus > 0}
	status := n.Get("status")
	phase := status.Str("phase")
	p.ended = phase == "Failed" || phase == "Succeeded"
	if id.at != nil {
		attrs := evidence.Attrs{"rank": evidence.IntOf(int64(id.rank)), "host": text(who.Host)}
		if id.world > 0 {
			attrs["world"] = evidence.IntOf(int64(id.world))
		}
		p.events = append(p.events, event(evidence.RankInfo, k.at(id.at, n), who, evidence.Stamp{}, attrs))
	}
	for _, group := range []string{"initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"} {
		for _, c := range status.List(group) {
			k.container(&p, n, c, who, id, group != "containerStatuses")
		}
	}
	disrupted := k.conditions(&p, n, who)
	k.podStatus(&p, n, who, id, disrupted)
	k.facts(n, who)
	k.hold(p)
}

// launchOptions are the options of torchrun that state the size of the job.
var launchOptions = lazyre.New(`^--(nnodes|nproc[-_]per[-_]node)(?:=(\S+))?$`)

// launch puts down how many processes the container's command starts on how many
// hosts. A range of hosts (2:8) or a number left to the devices (gpu, auto) states none.
func (k *file) launch(c *jsontree.Node, who evidence.Who) {
	var words []string
	var at []*jsontree.Node
	for _, key := range []string{"command", "args"} {
		for _, x := range c.List(key) {
			for _, w := range strings.Fields(x.Text) {
				if len(words) < 4096 {
					words, at = append(words, w), append(at, x)
				}
			}
		}
	}
	hosts, per := 0, 0
	var place *jsontree.Node
	for i, w := range words {
		m := launchOptions.FindStringSubmatch(w)
		if m == nil {
			continue
		}
		v := m[2]
		if v == "" && !strings.Contains(w, "=") && i+1 < len(words) {
			v = words[i+1]
		}
		n := atoi(v, 0)
		if n < 1 {
			continue
		}
		if m[1] == "nnodes" {
			hosts = n
			continue
		}
		per, place = n, at[i]
	}
	if per == 0 {
		return
	}
	span := k.at(place, c)
	k.s.Fact(evidence.Fact{Name: "setting.nproc_per_node", Value: text(strconv.Itoa(per)), Who: who, Span: span})
	if hosts > 0 {
		k.s.Fact(evidence.Fact{Name: "run.world", Value: evidence.IntOf(int64(hosts) * int64(per)), Who: who, Span: span})
	}
}

// facts puts down what the pod asks for beside memory, which its job records have.
func (k *file) facts(n *jsontree.Node, who evidence.Who) {
	fact := func(name string, at *jsontree.Node, v string) {
		if at != nil && v != "" {
			k.s.Fact(evidence.Fact{Name: "setting.kube_" + name, Value: text(v), Who: who, Span: k.at(at, n)})
		}
	}
	for _, c := range n.List("spec", "containers") {
		k.launch(c, who)
		for _, side := range []string{"limits", "requests"} {
			x := c.Get("resources", side, "memory")
			fact(side+"_memory", x, x.Str())
			for name, v := range c.Get("resources", side).Pairs() {
				if side == "limits" && strings.HasSuffix(name, "/gpu") {
					fact("limits_gpu", v, v.Text)
				}
			}
		}
	}
	for _, v := range n.List("spec", "volumes") {
		if d := v.Get("emptyDir"); d.Str("medium") == "Memory" {
			x := d.Get("sizeLimit")
			fact("shm_size", x, x.Str())
		}
	}
	x := n.Get("spec", "activeDeadlineSeconds")
	fact("active_deadline_seconds", x, x.Str())
	x = n.Get("spec", "restartPolicy")
	fact("restart_policy", x, x.Str())
}

// container reads one container's status.
//
//	state.terminated             its newest run
//	state.waiting, .running      the newest run that ended is lastState
//	lastState beside terminated  the run before: an earlier start
func (k *file) container(p *podEvents, pod, c *jsontree.Node, who evidence.Who, id podID, init bool) {
	name := c.Str("name")
	if !init && beside(pod, name) {
		who.Rank = evidence.None
		had := len(p.ends)
		defer func() { p.ends = p.ends[:had] }()
	}
	limit := evidence.Value{}
	for _, group := range []string{"containers", "initContainers"} {
		for _, x := range pod.List("spec", group) {
			if x.Str("name") == name {
				limit, _ = bytesOf(x.Str("resources", "limits", "memory"))
			}
		}
	}
	base := func(state string, earlier bool) evidence.Attrs {
		attrs := evidence.Attrs{}
		set(attrs, "job", id.job)
		set(attrs, "state", state)
		set(attrs, "nodes", id.node)
		setInt(attrs, "restarts", c.Str("restartCount"))
		if limit.Valid() && !init && !earlier && !beside(pod, name) {
			attrs["req_mem"] = limit
		}
		return attrs
	}
	state, last := c.Get("state"), c.Get("lastState", "terminated")
	terminated := state.Get("terminated")
	switch {
	case terminated != nil:
		k.terminated(p, terminated, base("terminated", false), who, limit, init, false)
		if last != nil && last.Sort == jsontree.Object && len(last.Items) > 0 {
			k.terminated(p, last, base("terminated before", true), who, limit, init, true)
		}
		return
	case state.Get("waiting") != nil:
		w := state.Get("waiting")
		attrs := base("waiting", false)
		set(attrs, "reason", w.Str("reason"))
		p.events = append(p.events, event(evidence.JobRecord, k.at(w.Get("reason"), w), who, evidence.Stamp{}, attrs))
		span := k.at(w.Get("message"), w)
		p.ends = append(p.ends, k.said(row("Warning", w.Str("reason"), w.Str("message")), span, who, evidence.Stamp{})...)
	case state.Get("running") != nil:
		r := state.Get("running")
		p.events = append(p.events, event(evidence.JobRecord, k.at(r.Get("startedAt"), r), who, when(r.Str("startedAt")), base("running", false)))
	default:
		p.events = append(p.events, event(evidence.JobRecord, k.at(c.Get("name"), c), who, evidence.Stamp{}, base("unknown", false)))
	}
	if last != nil && len(last.Items) > 0 {
		k.terminated(p, last, base("terminated", false), who, limit, init, false)
	}
}

// beside reports whether a container of the pod has no GPU while another has one:
// how such a helper ends is not how the run did.
func beside(pod *jsontree.Node, name string) bool {
	own, other := false, false
	for _, c := range pod.List("spec", "containers") {
		for r := range c.Get("resources", "limits").Pairs() {
			if strings.HasSuffix(r, "/gpu") || strings.Contains(r, "nvidia.com/mig-") {
				own = own || c.Str("name") == name
				other = other || c.Str("name") != name
			}
		}
	}
	return other && !own
}

// terminated reads how one run of a container ended.
func (k *file) terminated(p *podEvents, t *jsontree.Node, attrs evidence.Attrs, who evidence.Who, limit evidence.Value, init, earlier bool) {
	at := t.Get("reason")
	if at == nil {
		at = t.Get("exitCode")
	}
	span, st := k.at(at, t), when(t.Str("finishedAt"))
	if earlier {
		who.Attempt = evidence.Earlier
	}
	reason := t.Str("reason")
	set(attrs, "reason", reason)
	setInt(attrs, "code", t.Str("exitCode"))
	if n := atoi(t.Str("signal"), 0); n > 0 {
		attrs["signal"] = evidence.IntOf(int64(n))
	}
	p.events = append(p.events, event(evidence.JobRecord, span, who, st, attrs))
	what := "kubernetes"
	if init {
		what = "kubernetes-init"
	}
	if reason == "OOMKilled" {
		oom := evidence.Attrs{"what": evidence.TextOf("kubernetes")}
		if limit.Valid() {
			oom["limit"] = limit
		}
		p.ends = append(p.ends, event(evidence.HostOOMSched, span, who, st, oom))
	}
	if code, ok := attrs["code"]; ok && code.I != 0 {
		exit := evidence.Attrs{"what": evidence.TextOf(what), "code": code}
		if s, ok := attrs["signal"]; ok {
			exit["signal"] = s
		}
		p.ends = append(p.ends, event(evidence.Exited, span, who, st, exit))
	}
	if m := t.Get("message"); m != nil {
		p.ends = append(p.ends, k.said(m.Text, k.at(m, t), who, st)...)
	}
}

// disruptions are the reasons of the condition DisruptionTarget (core/v1).
var disruptions = map[string]bool{"PreemptionByScheduler": true, "DeletionByTaintManager": true, "EvictionByEvictionAPI": true, "DeletionByPodGC": true, "TerminationByKubelet": true}

// conditions puts down each condition of a pod and returns the one that says why it
// was taken away.
func (k *file) conditions(p *podEvents, n *jsontree.Node, who evidence.Who) (disrupted *jsontree.Node) {
	for _, c := range n.List("status", "conditions") {
		attrs := evidence.Attrs{}
		set(attrs, "object", "Pod/"+who.Host)
		set(attrs, "state", c.Str("type")+"="+c.Str("status"))
		set(attrs, "reason", c.Str("reason"))
		p.events = append(p.events, event(evidence.JobEvent, k.at(c.Get("type"), c), who, when(c.Str("lastTransitionTime")), attrs))
		if c.Str("type") == "DisruptionTarget" && c.Str("status") == "True" && disruptions[c.Str("reason")] {
			disrupted = c
		}
	}
	return disrupted
}

// podStatus reads phase, reason and message of the pod as a whole.
func (k *file) podStatus(p *podEvents, n *jsontree.Node, who evidence.Who, id podID, disrupted *jsontree.Node) {
	status := n.Get("status")
	if status.Get("phase") == nil {
		return
	}
	attrs := evidence.Attrs{}
	set(attrs, "job", id.job)
	set(attrs, "state", status.Str("phase"))
	set(attrs, "reason", status.Str("reason"))
	set(attrs, "nodes", id.node)
	at := status.Get("reason")
	if at == nil {
		at = status.Get("phase")
	}
	span := k.at(at, status)
	p.events = append(p.events, event(evidence.JobRecord, span, who, evidence.Stamp{}, attrs))
	reason, message := status.Str("reason"), status.Str("message")
	if m := status.Get("message"); m != nil && message != "" { // which says more
		span = k.at(m, status)
	}
	found := k.podReason(reason, message, span, who)
	if disrupted != nil {
		st := when(disrupted.Str("lastTransitionTime"))
		for i := range found {
			found[i].Stamp = st
		}
		if len(found) == 0 {
			found = append(found, event(evidence.Preempted, k.at(disrupted.Get("reason"), disrupted), who, st, evidence.Attrs{"what": evidence.TextOf("kubernetes-disruption")}))
		}
	}
	p.ends = append(p.ends, found...)
}

// podReasons are reasons of a pod's status that no message of theirs explains.
var podReasons = map[string]struct {
	kind evidence.Kind
	what string
}{
	"NodeLost":     {evidence.NodeFailure, "kubernetes-node-lost"},
	"Shutdown":     {evidence.Preempted, "node-shutdown"}, // kubelet 1.20 and 1.21
	"NodeShutdown": {evidence.Preempted, "node-shutdown"},
	"Preempting":   {evidence.Preempted, "kubernetes-preempted"},
	"Preempted":    {evidence.Preempted, "kubernetes-preempted"},
}

// podReason is what reason and message of a pod's status say.
func (k *file) podReason(reason, message string, span evidence.Span, who evidence.Who) []evidence.Event {
	if reason == "" {
		return nil
	}
	if reason == "UnexpectedAdmissionError" || strings.HasPrefix(reason, "OutOf") && strings.Contains(reason, "/gpu") {
		kind := evidence.DeviceConfig
		if strings.Contains(message, "unhealthy") || strings.Contains(message, "no healthy devices") {
			kind = evidence.DeviceLost
		}
		return []evidence.Event{event(kind, span, who, evidence.Stamp{}, evidence.Attrs{"what": evidence.TextOf("kubernetes-device-plugin")})}
	}
	if found := k.said("Status: Failed, Reason: "+reason+", Message: "+oneLine(message), span, who, evidence.Stamp{}); len(found) > 0 {
		return found
	}
	if r, ok := podReasons[reason]; ok {
		return []evidence.Event{event(r.kind, span, who, evidence.Stamp{}, evidence.Attrs{"what": evidence.TextOf(r.what)})}
	}
	return nil
}

func oneLine(s string) string {
	return textline.Cut(strings.Join(strings.Fields(textline.Clean(s)), " "), 4096)
}

// row is an event as kubectl describe prints it, which is how the wordings know it.
func row(sort, reason, message string) string {
	return sort + "  " + oneLine(reason) + "  1s  kubelet  " + oneLine(message)
}

// An eventRow is one event of the orchestrator, however it was printed.
type eventRow struct {
	sort, reason, object, message string // object is kind/name
	count                         string
	stamp                         evidence.Stamp
}

// eventRow puts the event down, and what it says of how the job's pod ended. What
// is said of a node is context, except that its OOM killer was at work: which
// jobs the node ran is not known.
func (k *file) eventRow(r eventRow, span evidence.Span) {
	attrs := evidence.Attrs{}
	set(attrs, "object", r.object)
	set(attrs, "reason", r.reason)
	set(attrs, "state", r.sort)
	setInt(attrs, "count", r.count)
	who := evidence.Nobody()
	kind, name, _ := strings.Cut(r.object, "/")
	kind = strings.ToLower(kind)
	if kind == "pod" || kind == "node" {
		who.Host = textline.Cut(textline.Clean(name), maxText)
	}
	if kind == "node" && !strings.Contains(r.reason, "OOM") {
		delete(attrs, "object")
		delete(attrs, "count")
		k.put(event(evidence.NodeState, span, who, r.stamp, attrs))
		return
	}
	if _, node, ok := strings.Cut(r.message, "Successfully assigned "); ok && kind == "pod" && r.reason == "Scheduled" {
		if _, node, ok = strings.Cut(node, " to "); ok {
			set(attrs, "nodes", strings.TrimSpace(node))
		}
	}
	k.put(event(evidence.JobEvent, span, who, r.stamp, attrs))
	var ends []evidence.Event
	switch r.reason {
	case "UnexpectedAdmissionError", "NodeLost":
		ends = k.podReason(r.reason, r.message, span, who)
		for i := range ends {
			ends[i].Stamp = r.stamp
		}
	case "BackoffLimitExceeded", "PyTorchJobFailed", "MPIJobFailed", "TFJobFailed", "JobSetFailed":
		ends = []evidence.Event{event(evidence.WrapperError, span, who, r.stamp, evidence.Attrs{"what": evidence.TextOf("kubernetes-job")})}
	default:
		ends = k.said(row(r.sort, r.reason, r.message), span, who, r.stamp)
	}
	of := ""
	if kind != "node" {
		of = stem(name)
	}
	for _, e := range ends {
		if k.lined { // the text is what stands there, not what it was read as
			e.Text = wordsOf(span)
		} else if m := oneLine(r.message); m != "" {
			e.Text = m
		}
		if len(k.told) < maxHeld {
			k.told = append(k.told, toldEnd{of, e})
		}
	}
}

// eventObject reads an event of core/v1 or events.k8s.io/v1.
func (k *file) eventObject(n *jsontree.Node) {
	of := n.Get("involvedObject")
	if of == nil {
		of = n.Get("regarding")
	}
	first := func(names ...[]string) string {
		for _, path := range names {
			if v := n.Str(path...); v != "" {
				return v
			}
		}
		return ""
	}
	r := eventRow{sort: n.Str("type"), reason: n.Str("reason"), object: of.Str("kind") + "/" + of.Str("name"),
		message: first([]string{"message"}, []string{"note"}),
		count:   first([]string{"series", "count"}, []string{"count"}, []string{"deprecatedCount"}),
		stamp: when(first([]string{"series", "lastObservedTime"}, []string{"lastTimestamp"}, []string{"eventTime"}, []string{"deprecatedLastTimestamp"},
			[]string{"firstTimestamp"}, []string{"metadata", "creationTimestamp"}))}
	at := n.Get("message")
	if at == nil {
		at = n.Get("note")
	}
	if at == nil {
		at = n.Get("reason")
	}
	k.eventRow(r, k.at(at, n))
}

// node reads the conditions of a node.
func (k *file) node(n *jsontree.Node) {
	who := evidence.Nobody()
	who.Host = textline.Cut(textline.Clean(n.Str("metadata", "name")), maxText)
	for _, c := range n.List("status", "conditions") {
		attrs := evidence.Attrs{}
		set(attrs, "state", c.Str("type")+"="+c.Str("status"))
		set(attrs, "reason", c.Str("reason"))
		k.put(event(evidence.NodeState, k.at(c.Get("type"), c), who, when(c.Str("lastTransitionTime")), attrs))
	}
	for _, t := range n.List("spec", "taints") {
		attrs := evidence.Attrs{}
		set(attrs, "state", "taint "+t.Str("key"))
		set(attrs, "reason", t.Str("effect"))
		k.put(event(evidence.NodeState, k.at(t.Get("key"), t), who, when(t.Str("timeAdded")), attrs))
	}
}

// workload reads the conditions of a Job, a training job, a JobSet or a Kueue
// Workload.
func (k *file) workload(n *jsontree.Node) {
	name := n.Str("metadata", "name")
	for _, c := range n.List("status", "conditions") {
		k.workloadCondition(n.Str("kind"), name, c, k.at(c.Get("type"), c))
	}
}

func (k *file) workloadCondition(kind, name string, c *jsontree.Node, span evidence.Span) {
	who, st := evidence.Nobody(), when(c.Str("lastTransitionTime"))
	sort, on, reason := c.Str("type"), c.Str("status") == "True", c.Str("reason")
	attrs := evidence.Attrs{}
	set(attrs, "object", kind+"/"+name)
	set(attrs, "state", sort+"="+c.Str("status"))
	set(attrs, "reason", reason)
	k.put(event(evidence.JobEvent, span, who, st, attrs))
	if !on {
		return
	}
	what := func(kind evidence.Kind, w string) {
		k.put(event(kind, span, who, st, evidence.Attrs{"what": evidence.TextOf(w)}))
	}
	switch {
	case reason == "DeadlineExceeded":
		what(evidence.TimeLimit, "kubernetes-deadline")
	case kind == "Workload" && (sort == "Evicted" && reason == "Preempted" || sort == "Preempted"):
		what(evidence.Preempted, "kueue")
	case kind != "Workload" && (sort == "Complete" || sort == "Succeeded" || sort == "Completed"):
		done := evidence.Attrs{"state": evidence.TextOf("COMPLETED"), "code": evidence.IntOf(0)}
		set(done, "job", name)
		k.put(event(evidence.JobRecord, span, who, st, done))
	case kind != "Workload" && sort == "Failed":
		what(evidence.WrapperError, "kubernetes-job")
	}
}
