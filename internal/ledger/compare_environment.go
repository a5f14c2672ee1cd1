package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// allocatorNames are the variables that configure PyTorch's caching allocator.
var allocatorNames = []string{"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"}

// environment of both trials; false where one does not say.
func (c *comparer) environments() (x, y *incident.Environment, ok bool) {
	x, y = c.a.Environment, c.b.Environment
	return x, y, x != nil && y != nil
}

// variables compares environment variables, those that this program set among them, and the
// settings of the allocator.
func (c *comparer) variables() {
	x, y := maps.Clone(c.a.Set), maps.Clone(c.b.Set)
	ex, ey, ok := c.environments()
	if !ok || (len(ex.Variables) == 0) != (len(ey.Variables) == 0) {
		c.dontKnow("environment variables: " + c.silent(ex == nil || len(ex.Variables) == 0, ey == nil || len(ey.Variables) == 0))
	} else {
		x, y = merged(ex.Variables, c.a.Set), merged(ey.Variables, c.b.Set)
	}
	for _, name := range sortedKeys(x, y) {
		if !slices.Contains(allocatorNames, name) {
			c.variable(name, x[name], y[name], true)
		}
	}
	c.allocator(x, y)
}

// silent says which of the two trials does not say.
func (c *comparer) silent(a, b bool) string {
	switch {
	case a && b:
		return "neither trial has it recorded"
	case a:
		return c.a.ID + " has it not recorded"
	}
	return c.b.ID + " has it not recorded"
}

func merged(base, over map[string]string) map[string]string {
	m := maps.Clone(base)
	if m == nil {
		m = map[string]string{}
	}
	maps.Copy(m, over)
	return m
}

// variable compares one variable; inherited says that it is not of the command's own words.
func (c *comparer) variable(name, from, to string, inherited bool) {
	if from == to {
		return
	}
	key := strings.ToLower(name)
	of := incident.ChangeEnvironment
	if ofData.MatchString(key) && !notData.MatchString(key) {
		of = incident.ChangeData
	}
	if same(from, to) && from != "" && to != "" {
		c.expect(of, name, from, to, "the same in other words")
		return
	}
	if why := c.usual(key, from, to); why != "" && of != incident.ChangeData {
		c.expect(of, name, from, to, why)
		return
	}
	if inherited && byThisProgram.MatchString(key) && (has(c.a.Set, name) != has(c.b.Set, name) || has(c.a.Set, name) && has(c.b.Set, name)) {
		c.expect(of, name, from, to, "set by this program so that the trial destroys nothing")
		return
	}
	if name == "CUDA_VISIBLE_DEVICES" && c.scheduled() && strings.Count(from, ",") == strings.Count(to, ",") && from != "" && to != "" {
		c.expect(of, name, from, to, "the scheduler's choice of as many devices")
		return
	}
	c.change(of, name, from, to, step(name, "=", from, to))
}

func has(m map[string]string, name string) bool { _, ok := m[name]; return ok }

// scheduled reports whether a scheduler gave both trials their devices.
func (c *comparer) scheduled() bool {
	x, y, ok := c.environments()
	return ok && x.Variables["SLURM_JOB_ID"] != "" && y.Variables["SLURM_JOB_ID"] != ""
}

// allocator compares the settings of the allocator key by key, wherever they are set.
func (c *comparer) allocator(x, y map[string]string) {
	name, p := allocatorConf(c.a, x)
	other, q := allocatorConf(c.b, y)
	if name == "" {
		name = other
	}
	from, to := confKeys(p), confKeys(q)
	for _, key := range sortedKeys(from, to) {
		if from[key] == to[key] {
			continue
		}
		if same(from[key], to[key]) && from[key] != "" && to[key] != "" {
			c.expect(incident.ChangeSetting, key, from[key], to[key], "the same in other words")
			continue
		}
		c.change(incident.ChangeSetting, key, from[key], to[key], step(key, ":", from[key], to[key])+" in "+name)
	}
	if p != "" && q != "" && name != other {
		c.expect(incident.ChangeSetting, "allocator settings", name, other, "the same variable by its other name")
	}
}

// allocatorConf is the variable that configures the allocator of a trial, and its value. Where
// several are set, the one that PyTorch looks at first.
func allocatorConf(s side, variables map[string]string) (name, value string) {
	for _, n := range allocatorNames {
		if v, ok := variables[n]; ok && v != "" {
			return n, v
		}
	}
	if s.Environment != nil && s.Environment.Allocator != "" {
		v := s.Environment.Allocator
		if n, rest, ok := strings.Cut(v, "="); ok && slices.Contains(allocatorNames, n) {
			return n, rest
		}
		return allocatorNames[0], v
	}
	return "", ""
}

// confKeys takes KEY:VALUE,KEY:VALUE apart; commas between brackets are part of a value.
func confKeys(conf string) map[string]string {
	out := map[string]string{}
	depth, begin := 0, 0
	put := func(part string) {
		part = strings.TrimSpace(part)
		if part == "" {
			return
		}
		key, value, ok := strings.Cut(part, ":")
		if !ok {
			value = "true"
		}
		out[strings.TrimSpace(key)] = strings.TrimSpace(value)
	}
	for i := range len(conf) {
		switch conf[i] {
		case '[':
			depth++
		case ']':
			depth = max(0, depth-1)
		case ',':
			if depth == 0 {
				put(conf[begin:i])
				begin = i + 1
			}
		}
	}
	put(conf[begin:])
	return out
}

var (
	versionNumber = lazyre.New(`\d+\.\d+(?:\.\d+)?\S*`)
	packageRun    = lazyre.New(`[-_.]+`)
)

// versions compares what is installed.
func (c *comparer) versions() {
	x, y, ok := c.environments()
	if !ok {
		c.dontKnow("versions: " + c.silent(x == nil, y == nil))
		return
	}
	c.python(x.Python, y.Python)
	if x.Driver != y.Driver {
		if x.Driver == "" || y.Driver == "" {
			c.dontKnow("the driver: " + c.silent(x.Driver == "", y.Driver == ""))
		} else {
			c.change(incident.ChangeVersion, "driver", x.Driver, y.Driver, step("driver", " ", x.Driver, y.Driver))
		}
	}
	if len(x.Packages) == 0 || len(y.Packages) == 0 {
		if len(x.Packages) != len(y.Packages) || x.Python != "" || y.Python != "" {
			c.dontKnow("installed packages: " + c.silent(len(x.Packages) == 0, len(y.Packages) == 0))
		}
		return
	}
	p, q := packages(x.Packages), packages(y.Packages)
	for _, name := range sortedKeys(p, q) {
		if p[name] != q[name] {
			c.change(incident.ChangeVersion, name, p[name], q[name], step(name, " ", p[name], q[name]))
		}
	}
}

// packages are distributions by the one spelling that an index knows them by.
func packages(m map[string]string) map[string]string {
	out := make(map[string]string, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out[strings.ToLower(packageRun.ReplaceAllString(name, "-"))] = m[name]
	}
	return out
}

// python compares the interpreters by their versions.
func (c *comparer) python(p, q string) {
	if p == q {
		return
	}
	v, w := lastVersion(p), lastVersion(q)
	switch {
	case v == "" || w == "":
		c.dontKnow("the version of Python: " + c.silent(v == "", w == ""))
	case v == w:
		c.expect(incident.ChangeVersion, "Python", p, q, "the same version at another place; the packages are compared")
	default:
		c.change(incident.ChangeVersion, "Python", v, w, step("Python", " ", v, w))
	}
}

// lastVersion is the version in a path and version of Python: the path may hold one as well.
func lastVersion(s string) string {
	all := versionNumber.FindAllString(s, -1)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// code compares the state of the working trees.
func (c *comparer) code() {
	x, y, ok := c.environments()
	if !ok || x.Git == nil || y.Git == nil {
		c.dontKnow("code: " + c.silent(c.a.Environment == nil || c.a.Environment.Git == nil, c.b.Environment == nil || c.b.Environment.Git == nil) + ": no Git working tree")
		return
	}
	g, h := *x.Git, *y.Git
	if g.Commit == "" || h.Commit == "" {
		if g.Commit != h.Commit {
			c.dontKnow("code: " + c.silent(g.Commit == "", h.Commit == "") + ": no commit")
		}
	} else if state(g) != state(h) {
		c.change(incident.ChangeCode, "code", state(g), state(h), step("code", " ", state(g), state(h))+"; how much of it changed is not looked at")
		return
	}
	if g.Changed && h.Changed && g.Digest == "" && h.Digest == "" {
		c.dontKnow("code: both working trees differ from their commit, and it is not recorded how")
	}
	if g.Branch != h.Branch {
		c.expect(incident.ChangeCode, "branch", g.Branch, h.Branch, "the same code")
	}
}

// state is a commit, and what differs from it.
func state(g incident.Git) string {
	s := g.Commit
	if len(s) > 12 {
		s = s[:12]
	}
	if g.Changed {
		s += " with changes"
		if g.Digest != "" {
			s += " " + g.Digest[:min(len(g.Digest), 12)]
		}
	}
	return s
}

// machine compares what the trials ran on.
func (c *comparer) machine() {
	x, y, ok := c.environments()
	if !ok {
		c.dontKnow("the machine: " + c.silent(x == nil, y == nil))
		return
	}
	of := incident.ChangeMachine
	if x.Host != y.Host {
		c.expect(of, "host", x.Host, y.Host, "another machine; its kind is compared")
	}
	text := func(name, p, q string) {
		switch {
		case p == q:
		case p == "" || q == "":
			c.dontKnow(name + ": " + c.silent(p == "", q == ""))
		default:
			c.change(of, name, p, q, step(name, " ", p, q))
		}
	}
	text("operating system", x.System, y.System)
	text("kernel", x.Kernel, y.Kernel)
	text("processors", number(int64(x.CPUs)), number(int64(y.CPUs)))
	if p, q := x.Memory, y.Memory; p != q && p > 0 && q > 0 && near(p, q) {
		c.expect(of, "host memory", bytesOf(p), bytesOf(q), "within 1 % of each other, as machines of one kind are")
	} else {
		text("host memory", bytesOf(p), bytesOf(q))
	}
	text("GPUs", devices(x.Devices), devices(y.Devices))
	c.cards(x.Devices, y.Devices)
	for _, name := range sortedKeys(x.Limits, y.Limits) {
		c.limit(name, x.Limits, y.Limits)
	}
}

// cards notes that the same kind of devices are not the same ones.
func (c *comparer) cards(x, y []incident.TrialDevice) {
	if len(x) == 0 || devices(x) != devices(y) {
		return
	}
	ids := func(list []incident.TrialDevice) string {
		var out []string
		for _, d := range list {
			if d.UUID != "" {
				out = append(out, d.UUID)
			}
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
	if p, q := ids(x), ids(y); p != q && p != "" && q != "" {
		c.expect(incident.ChangeMachine, "devices", p, q, "other cards of the same kind")
	}
}

// limit compares one limit. A limit that only one trial states is a change only where the other
// states limits at all: then it had none.
func (c *comparer) limit(name string, x, y map[string]int64) {
	p, inX := x[name]
	q, inY := y[name]
	if p == q && inX == inY {
		return
	}
	label := "limit of " + strings.ReplaceAll(name, "_", " ")
	if len(x) == 0 || len(y) == 0 {
		c.dontKnow(label + ": " + c.silent(len(x) == 0, len(y) == 0))
		return
	}
	if strings.HasSuffix(name, "_free") { // what others leave of a disk
		if inX && inY {
			c.expect(incident.ChangeMachine, label, bytesOf(p), bytesOf(q), "it differs between any two moments")
		}
		return
	}
	value := func(v int64, in bool) string {
		switch {
		case !in || v < 0:
			return "none"
		case v < 1<<16 || !strings.Contains(name, "memory") && !strings.Contains(name, "space") && !strings.Contains(name, "size") && !strings.HasSuffix(name, "_free") && name != "data" && name != "stack" && name != "resident":
			return strconv.FormatInt(v, 10)
		}
		return bytesOf(v)
	}
	from, to := value(p, inX), value(q, inY)
	if from == to {
		return
	}
	if strings.HasSuffix(name, "_free") {
		c.expect(incident.ChangeMachine, strings.ReplaceAll(name, "_", " "), from, to, "what is free changes by itself")
		return
	}
	if p > 0 && q > 0 && p != q && near(p, q) && strings.Contains(name, "shared") {
		c.expect(incident.ChangeMachine, label, from, to, "within 1 % of each other, as machines of one kind are")
		return
	}
	c.change(incident.ChangeMachine, label, from, to, step(label, " ", from, to))
}

// near reports whether two sizes are within 1 % of each other.
func near(p, q int64) bool {
	d := float64(p) - float64(q)
	return max(d, -d) <= 0.01*float64(max(p, q))
}

// devices is how many devices of which kind there are.
func devices(list []incident.TrialDevice) string {
	count := map[string]int{}
	for _, d := range list {
		kind := d.Name
		if kind == "" {
			kind = "GPU"
		}
		if d.Memory > 0 {
			kind += " with " + bytesOf(d.Memory)
		}
		count[kind]++
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(count)) {
		out = append(out, fmt.Sprintf("%d × %s", count[k], k))
	}
	return strings.Join(out, ", ")
}

// bytesOf is a size in words, "" for none.
func bytesOf(n int64) string {
	switch {
	case n <= 0:
		return ""
	case n >= 1<<30:
		return strconv.FormatFloat(float64(n)/(1<<30), 'f', 2, 64) + " GiB"
	case n >= 1<<20:
		return strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64) + " MiB"
	}
	return strconv.FormatInt(n, 10) + " B"
}

// number is a count in words, "" for none.
func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// sortedKeys are the keys of both maps, once each.
func sortedKeys[V any](x, y map[string]V) []string {
	keys := slices.Collect(maps.Keys(x))
	for k := range y {
		if _, ok := x[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}
