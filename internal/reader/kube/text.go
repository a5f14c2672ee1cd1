package kube

import (
	"bytes"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/jsontree"
	"github.com/inquest-dev/inquest/internal/format/textline"
)

// A textTable is a table of kubectl: the names of its columns and where they
// begin. Values are set below the names, at least two blanks apart.
type textTable struct {
	names  []string
	starts []int
	sort   string // events, pods, nodes, jobs
}

// tableOf recognises the header of a table that is read here.
func tableOf(line string) (textTable, bool) {
	t := textTable{}
	line = strings.TrimRight(line, " \r")
	if line == "" || strings.ToUpper(line) != line {
		return t, false
	}
	for at := 0; at < len(line); {
		end := len(line)
		for i := at; i+1 < len(line); i++ {
			if line[i] == ' ' && line[i+1] == ' ' {
				end = i
				break
			}
		}
		t.names = append(t.names, line[at:end])
		t.starts = append(t.starts, at)
		for at = end; at < len(line) && line[at] == ' '; {
			at++
		}
	}
	has := func(names ...string) bool {
		for _, n := range names {
			if t.column(n) < 0 {
				return false
			}
		}
		return true
	}
	switch {
	case has("TYPE", "REASON", "OBJECT", "MESSAGE"):
		t.sort = "events"
	case has("NAME", "READY", "STATUS", "RESTARTS", "AGE"):
		t.sort = "pods"
	case has("NAME", "STATUS", "ROLES", "AGE", "VERSION"):
		t.sort = "nodes"
	case has("NAME", "COMPLETIONS", "AGE"), has("NAME", "STATE", "AGE") && len(t.names) <= 4:
		t.sort = "jobs"
	default:
		return t, false
	}
	return t, true
}

func (t *textTable) column(name string) int {
	for i, n := range t.names {
		if n == name {
			return i
		}
	}
	return -1
}

// cells splits a row. A value that is wider than its column, as in tables that
// are printed row by row, shifts those behind it: then runs of two blanks part
// them.
func (t *textTable) cells(line string) map[string]string {
	out := map[string]string{}
	aligned := true
	for _, s := range t.starts[1:] {
		if s < len(line) && (line[s-1] != ' ' || line[s] == ' ' && s+1 < len(line) && strings.TrimSpace(line[s:]) == "") {
			aligned = false
		}
	}
	if !aligned {
		var parts []string
		for _, p := range strings.Split(line, "  ") {
			if p = strings.TrimSpace(p); p != "" {
				parts = append(parts, p)
			}
		}
		if len(parts) > len(t.names) { // the last column is text
			parts = append(parts[:len(t.names)-1], strings.Join(parts[len(t.names)-1:], " "))
		}
		for i, p := range parts {
			out[t.names[i]] = p
		}
		return out
	}
	for i, s := range t.starts {
		if s >= len(line) {
			break
		}
		end := len(line)
		if i+1 < len(t.starts) {
			end = min(end, t.starts[i+1])
		}
		out[t.names[i]] = strings.TrimSpace(line[s:end])
	}
	return out
}

// A textLine is one line of kubectl's text and where it stands.
type textLine struct {
	text     string // without escapes and the blanks at its end
	from, to int
}

// text reads tables and descriptions, one after the other, also behind a prompt or
// what a tool printed around them.
func (k *file) text() {
	var table textTable
	var block []textLine
	var pods []podRow
	inTable := false
	finish := func() {
		k.podRows(pods)
		k.describe(block)
		pods, block, inTable = nil, nil, false
	}
	at := len(k.data) - len(bytes.TrimPrefix(k.data, []byte("\xef\xbb\xbf")))
	for at < len(k.data) && k.ctx.Err() == nil {
		end, next := len(k.data), len(k.data)
		if i := bytes.IndexByte(k.data[at:], '\n'); i >= 0 {
			end, next = at+i, at+i+1
		}
		if end-at > maxLine {
			end = at + maxLine
			k.s.Damage(k.span(at, at), errLongLine)
		}
		raw := bytes.TrimRight(k.data[at:end], " \t\r")
		l := textLine{text: textline.Clean(string(raw)), from: at, to: at + len(raw)}
		at = next
		switch t, header := tableOf(l.text); {
		case header:
			finish()
			table, inTable = t, true
		case isName(l.text):
			finish()
			block = append(block, l)
		case len(block) > 0 && len(block) < 1<<14:
			block = append(block, l)
		case inTable && l.text == "":
			finish()
		case inTable:
			switch cell := table.cells(l.text); table.sort {
			case "events":
				k.tableEvent(cell, l)
			case "pods":
				if len(pods) < 1<<14 {
					pods = append(pods, podRow{cell, l})
				}
			case "nodes":
				k.tableNode(cell, l)
			case "jobs":
				k.tableJob(cell, l)
			}
		}
	}
	finish()
}

// isName reports whether a line begins a description: Name: and blanks.
func isName(text string) bool {
	rest, ok := strings.CutPrefix(text, "Name:")
	return ok && strings.HasPrefix(rest, "  ") && strings.TrimSpace(rest) != ""
}

// tableEvent reads a row of kubectl get events (OBJECT is pod/name) or kubectl
// events (Pod/name). LAST SEEN is an age, which is no time.
func (k *file) tableEvent(cell map[string]string, l textLine) {
	if cell["REASON"] == "" || cell["OBJECT"] == "" {
		return
	}
	count := cell["COUNT"]
	if _, n, ok := strings.Cut(cell["LAST SEEN"], "(x"); ok { // 3m30s (x256 over 58m)
		count, _, _ = strings.Cut(n, " ")
	}
	st := when(cell["LAST SEEN"])
	k.eventRow(eventRow{sort: cell["TYPE"], reason: cell["REASON"], object: cell["OBJECT"], message: cell["MESSAGE"], count: count, stamp: st}, k.span(l.from, l.to))
}

func (k *file) tableNode(cell map[string]string, l textLine) {
	who := evidence.Nobody()
	who.Host = textline.Cut(cell["NAME"], maxText)
	attrs := evidence.Attrs{}
	set(attrs, "state", cell["STATUS"])
	k.put(event(evidence.NodeState, k.span(l.from, l.to), who, evidence.Stamp{}, attrs))
}

// tableJob reads a row of kubectl get jobs or of training jobs. Which of the rows is
// about the job in question is not known: they are context.
func (k *file) tableJob(cell map[string]string, l textLine) {
	attrs := evidence.Attrs{}
	set(attrs, "job", cell["NAME"])
	for _, name := range []string{"STATE", "STATUS", "COMPLETIONS"} {
		if cell[name] != "" {
			set(attrs, "state", cell[name])
			break
		}
	}
	k.put(event(evidence.JobRecord, k.span(l.from, l.to), evidence.Nobody(), evidence.Stamp{}, attrs))
}

// A podRow is a row of kubectl get pods.
type podRow struct {
	cell map[string]string
	at   textLine
}

// podRows reads the rows of one table. The status of a pod is the reason of its
// container where it has one. Where the table names pods of several jobs, how a
// pod ended stays context.
func (k *file) podRows(rows []podRow) {
	stems := map[string]bool{}
	for _, r := range rows {
		stems[r.cell["NAMESPACE"]+"/"+stem(r.cell["NAME"])] = true
	}
	for _, r := range rows {
		name, status := r.cell["NAME"], r.cell["STATUS"]
		if name == "" || status == "" {
			continue
		}
		who := evidence.Nobody()
		who.Host = textline.Cut(name, maxText)
		attrs := evidence.Attrs{}
		set(attrs, "state", status)
		restarts, _, _ := strings.Cut(r.cell["RESTARTS"], " ")
		setInt(attrs, "restarts", restarts)
		if node := r.cell["NODE"]; node != "<none>" {
			set(attrs, "nodes", node)
		}
		span := k.span(r.at.from, r.at.to)
		k.put(event(evidence.JobRecord, span, who, evidence.Stamp{}, attrs))
		if len(stems) > 1 {
			continue
		}
		switch status {
		case "OOMKilled", "Init:OOMKilled":
			k.put(event(evidence.HostOOMSched, span, who, evidence.Stamp{}, evidence.Attrs{"what": evidence.TextOf("kubernetes")}))
		case "NodeLost", "UnexpectedAdmissionError", "NodeShutdown", "DeadlineExceeded", "ErrImagePull", "ImagePullBackOff":
			for _, e := range k.podReason(status, "", span, who) {
				k.put(e)
			}
		}
	}
}

// stem is what the names of one job's pods have in common: the name less its
// ordinals, role and random parts.
func stem(name string) string {
	for _, role := range []string{"-master-", "-worker-", "-launcher", "-chief-", "-ps-"} {
		if i := strings.LastIndex(name, role); i > 0 {
			return name[:i]
		}
	}
	parts := strings.Split(name, "-")
	n := len(parts)
	for n > 1 && (len(parts[n-1]) == 5 && !strings.ContainsAny(parts[n-1], "aeiou") || strings.Trim(parts[n-1], "0123456789") == "") {
		n-- // random suffixes have no vowels (apimachinery/pkg/util/rand)
	}
	return strings.Join(parts[:n], "-")
}

// describe reads one description. What kubectl prints of a pod is put back into
// the form of the API.
func (k *file) describe(lines []textLine) {
	if len(lines) == 0 {
		return
	}
	b := &block{lines: lines}
	for i := range lines {
		switch t := lines[i].text; {
		case t == "Containers:" || strings.HasPrefix(t, "Node-Selectors:"):
			b.pod = true
		case strings.HasPrefix(t, "Capacity:") || strings.HasPrefix(t, "Unschedulable:"):
			b.node = true
		case strings.HasPrefix(t, "Pod Template:") || strings.HasPrefix(t, "Parallelism:") || strings.HasPrefix(t, "API Version:"):
			b.owner = true
		}
	}
	name := b.value("Name")
	object := b.value("Kind")
	switch {
	case b.owner:
		if object == "" {
			object = "Job"
		}
		k.describeOwner(b, object, name)
	case b.node:
		object = "Node"
		k.describeNode(b, name)
	default:
		object = "Pod"
		k.pod(b.asPod(name))
	}
	k.describeEvents(b, object+"/"+name)
}

// A block is the lines of one description.
type block struct {
	lines            []textLine
	pod, node, owner bool
}

// value is what stands behind a key at the beginning of a line.
func (b *block) value(key string) string {
	for _, l := range b.lines {
		if rest, ok := strings.CutPrefix(l.text, key+":"); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// section is the indented lines below a key.
func (b *block) section(key string) []textLine {
	for i, l := range b.lines {
		if !strings.HasPrefix(l.text, key+":") {
			continue
		}
		end := i + 1
		for end < len(b.lines) && (b.lines[end].text == "" || b.lines[end].text[0] == ' ') {
			if b.lines[end].text == "" && key != "Events" {
				break
			}
			end++
		}
		return b.lines[i+1 : end]
	}
	return nil
}

// Nodes of a description stand where their line does.
func leaf(key, v string, l textLine) *jsontree.Node {
	return &jsontree.Node{Sort: jsontree.String, Key: key, Text: v, From: l.from + len(l.text) - len(strings.TrimLeft(l.text, " ")), At: l.from, End: l.to}
}

func branch(sort jsontree.Sort, key string, l textLine) *jsontree.Node {
	n := leaf(key, "", l)
	n.Sort = sort
	return n
}

func add(n *jsontree.Node, x ...*jsontree.Node) { n.Items = append(n.Items, x...) }

// asPod makes the pod that the block describes.
func (b *block) asPod(name string) *jsontree.Node {
	top := b.lines[0]
	pod := branch(jsontree.Object, "", top)
	meta, spec, status := branch(jsontree.Object, "metadata", top), branch(jsontree.Object, "spec", top), branch(jsontree.Object, "status", top)
	add(pod, meta, spec, status)
	add(meta, leaf("name", name, top), b.labels("Labels", "labels"), b.labels("Annotations", "annotations"))
	if by := b.value("Controlled By"); by != "" {
		owners, o := branch(jsontree.Array, "ownerReferences", top), branch(jsontree.Object, "", top)
		_, owner, _ := strings.Cut(by, "/")
		add(o, leaf("name", owner, top))
		add(owners, o)
		add(meta, owners)
	}
	for _, l := range b.lines {
		for _, f := range [...][2]string{{"Status", "phase"}, {"Reason", "reason"}, {"Message", "message"}} {
			if rest, ok := strings.CutPrefix(l.text, f[0]+":"); ok {
				add(status, leaf(f[1], strings.TrimSpace(rest), l))
			}
		}
		if rest, ok := strings.CutPrefix(l.text, "Node:"); ok {
			node, _, _ := strings.Cut(strings.TrimSpace(rest), "/")
			add(spec, leaf("nodeName", node, l))
		}
	}
	b.containers("Init Containers", spec, status, [2]string{"initContainers", "initContainerStatuses"})
	b.containers("Containers", spec, status, [2]string{"containers", "containerStatuses"})
	conditions := branch(jsontree.Array, "conditions", top)
	for _, l := range b.section("Conditions") {
		if f := strings.Fields(l.text); len(f) == 2 && f[0] != "Type" && f[0] != "----" {
			c := branch(jsontree.Object, "", l)
			add(c, leaf("type", f[0], l), leaf("status", f[1], l))
			add(conditions, c)
		}
	}
	add(status, conditions)
	return pod
}

// labels reads "Labels:  a=b" and the lines below it, "a: b" for annotations.
func (b *block) labels(key, as string) *jsontree.Node {
	n := branch(jsontree.Object, as, b.lines[0])
	for i, l := range b.lines {
		rest, ok := strings.CutPrefix(l.text, key+":")
		if !ok {
			continue
		}
		for {
			name, v, found := strings.Cut(strings.TrimSpace(rest), "=")
			if !found {
				name, v, found = strings.Cut(strings.TrimSpace(rest), ": ")
			}
			if found {
				add(n, leaf(name, v, b.lines[i]))
			}
			if i++; i >= len(b.lines) || !strings.HasPrefix(b.lines[i].text, "     ") {
				return n
			}
			rest = b.lines[i].text
		}
	}
	return n
}

// containers reads the section of containers: names at two blanks, their fields
// at four, and what belongs to a field deeper.
func (b *block) containers(key string, spec, status *jsontree.Node, group [2]string) {
	section := b.section(key)
	if len(section) == 0 {
		return
	}
	specs, states := branch(jsontree.Array, group[0], section[0]), branch(jsontree.Array, group[1], section[0])
	var c, s, in *jsontree.Node
	field := ""
	for _, l := range section {
		body := strings.TrimLeft(l.text, " ")
		indent := len(l.text) - len(body)
		name, v, ok := strings.Cut(body, ":")
		v = strings.TrimSpace(v)
		if indent > 4 && in != nil && (field == "Command" || field == "Args") {
			add(in, leaf("", body, l))
			continue
		}
		if !ok {
			continue
		}
		switch {
		case indent <= 3 && v == "":
			c, s = branch(jsontree.Object, "", l), branch(jsontree.Object, "", l)
			add(c, leaf("name", name, l), branch(jsontree.Object, "resources", l), branch(jsontree.Array, "env", l))
			add(s, leaf("name", name, l))
			add(specs, c)
			add(states, s)
			field = ""
		case c == nil:
		case indent == 4:
			field = name
			in = nil
			switch name {
			case "State", "Last State":
				run := branch(jsontree.Object, strings.ToLower(v), l)
				into := "state"
				if name == "Last State" {
					into = "lastState"
				}
				x := branch(jsontree.Object, into, l)
				add(x, run)
				add(s, x)
				in = run
			case "Restart Count":
				add(s, leaf("restartCount", v, l))
			case "Limits", "Requests":
				x := branch(jsontree.Object, strings.ToLower(name), l)
				r := c.Get("resources")
				add(r, x)
				in = x
			case "Environment":
				in = c.Get("env")
			case "Command", "Args":
				in = branch(jsontree.Array, strings.ToLower(name), l)
				add(c, in)
			}
		case indent > 4 && in != nil:
			into(in, field, name, v, l)
		}
	}
	add(spec, specs)
	add(status, states)
}

// runFields are the fields of a container's run as kubectl describe names them.
var runFields = map[string]string{"Reason": "reason", "Exit Code": "exitCode", "Signal": "signal", "Message": "message", "Started": "startedAt", "Finished": "finishedAt"}

func into(in *jsontree.Node, field, name, v string, l textLine) {
	switch field {
	case "Environment":
		e := branch(jsontree.Object, "", l)
		add(e, leaf("name", name, l), leaf("value", v, l))
		add(in, e)
	case "State", "Last State":
		if as := runFields[name]; as != "" {
			add(in, leaf(as, v, l))
		}
	default:
		add(in, leaf(name, v, l))
	}
}

// describeOwner reads a Job or a custom resource: how many pods are how far, and
// its conditions. What the pod template holds are no states.
func (k *file) describeOwner(b *block, kind, name string) {
	attrs := evidence.Attrs{}
	set(attrs, "job", name)
	for _, l := range b.lines {
		if rest, ok := strings.CutPrefix(l.text, "Pods Statuses:"); ok {
			set(attrs, "state", strings.TrimSpace(rest))
			k.put(event(evidence.JobRecord, k.span(l.from, l.to), evidence.Nobody(), evidence.Stamp{}, attrs))
		}
	}
	for _, c := range b.conditions() {
		k.workloadCondition(kind, name, c, k.at(c.Get("type"), c))
	}
}

// conditions reads the conditions of a custom resource, printed as nested keys:
// a group of them ends with its Type.
func (b *block) conditions() []*jsontree.Node {
	var out []*jsontree.Node
	in, indent := false, 0
	var c *jsontree.Node
	for _, l := range b.lines {
		body := strings.TrimLeft(l.text, " ")
		depth := len(l.text) - len(body)
		if strings.HasPrefix(body, "Conditions:") {
			in, indent, c = true, depth, nil
			continue
		}
		if in && body != "" && depth <= indent {
			in = false
		}
		name, v, ok := strings.Cut(body, ":")
		if !in || !ok {
			continue
		}
		if c == nil {
			c = branch(jsontree.Object, "", l)
		}
		as := map[string]string{"Last Transition Time": "lastTransitionTime", "Reason": "reason", "Message": "message", "Status": "status", "Type": "type"}[name]
		if as != "" {
			add(c, leaf(as, strings.TrimSpace(v), l))
		}
		if as == "type" {
			out = append(out, c)
			c = nil
		}
	}
	return out
}

// describeNode reads the table of conditions: type, status, two times, reason and
// message.
func (k *file) describeNode(b *block, name string) {
	who := evidence.Nobody()
	who.Host = textline.Cut(name, maxText)
	for _, l := range b.section("Conditions") {
		f := strings.Fields(l.text)
		if len(f) < 3 || f[0] == "Type" || f[0] == "----" {
			continue
		}
		attrs := evidence.Attrs{}
		set(attrs, "state", f[0]+"="+f[1])
		st := evidence.Stamp{}
		if len(f) >= 15 { // each time is six words
			st = when(strings.Join(f[8:14], " "))
			set(attrs, "reason", f[14])
		}
		k.put(event(evidence.NodeState, k.span(l.from, l.to), who, st, attrs))
	}
	for _, l := range b.lines {
		if rest, ok := strings.CutPrefix(l.text, "Taints:"); ok && strings.TrimSpace(rest) != "<none>" {
			attrs := evidence.Attrs{}
			set(attrs, "state", "taint "+strings.TrimSpace(rest))
			k.put(event(evidence.NodeState, k.span(l.from, l.to), who, evidence.Stamp{}, attrs))
		}
	}
}

// describeEvents reads the table of events at the end of a description.
func (k *file) describeEvents(b *block, object string) {
	var starts []int
	for _, l := range b.section("Events") {
		body := strings.TrimSpace(l.text)
		switch {
		case strings.HasPrefix(body, "Type ") && strings.Contains(body, " Message"):
			for _, name := range []string{"Type", "Reason", "Age", "From", "Message"} {
				starts = append(starts, strings.Index(l.text, name))
			}
		case strings.HasPrefix(body, "----") || body == "" || len(starts) != 5:
		case l.text[0] != ' ' || !strings.HasPrefix(body, "Normal") && !strings.HasPrefix(body, "Warning"):
		default:
			k.describedEvent(l, starts, object)
		}
	}
}

func (k *file) describedEvent(l textLine, starts []int, object string) {
	var f []string
	for _, p := range strings.Split(l.text, "  ") {
		if p = strings.TrimSpace(p); p != "" {
			f = append(f, p)
		}
	}
	if len(f) < 4 {
		return
	}
	r := eventRow{sort: f[0], reason: f[1], object: object, message: strings.Join(f[4:], " ")}
	if _, n, ok := strings.Cut(f[2], "(x"); ok {
		r.count, _, _ = strings.Cut(n, " ")
	}
	if len(f) == 4 { // a column without a value
		r.message = ""
		if starts[4] < len(l.text) {
			r.message = strings.TrimSpace(l.text[starts[4]:])
		}
	}
	k.eventRow(r, k.span(l.from, l.to))
}
