package ledger

import (
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// An argument is one thing that a command line says.
type argument struct {
	key   string // equal for the same thing in another command, whatever its spelling
	name  string // as it was written
	value string // "" for a switch
	plain bool   // it is a switch, or stands without a name
}

// A commandLine is a command taken apart: the programs that launch, what is launched, and the
// options of each.
type commandLine struct {
	programs  []string // launchers, in their order: srun, torchrun, python
	script    string   // what they run; "" where nothing tells it
	arguments []argument
	variables map[string]string // env NAME=VALUE, and NAME=VALUE before the program in a shell's words
}

var (
	scriptFile  = lazyre.New(`(?i)\.(?:py|pyz|sh|bash|ipynb|jl|lua)$`)
	pythonName  = lazyre.New(`^(?:python|pypy)[0-9.]*(?:\.exe)?$`)
	assignment  = lazyre.New(`^([A-Za-z_][A-Za-z0-9_]*)=(.*)$`)
	override    = lazyre.New(`^[+]{0,2}([A-Za-z_][A-Za-z0-9_./@:-]*)=(.*)$`)
	deletion    = lazyre.New(`^~([A-Za-z_][A-Za-z0-9_./@-]*)$`)
	negative    = lazyre.New(`^-(?:[0-9.]|inf\b)`)
	shortNumber = lazyre.New(`^(-[A-Za-z])([0-9][0-9.]*)$`)
	shellName   = lazyre.New(`^(?:ba|da|z|k)?sh$`)
	// modulesOf are the programs whose -m names a module.
	modulesOf = lazyre.New(`^(?:python|pypy)[0-9.]*$|^(?:torchrun|accelerate|deepspeed|coverage|debugpy|launch)$`)
)

// takeApart reads the words of a command. An option takes the words behind it up to the next
// option, so that of "--fp16 data.json" it is not known which is meant; see settle.
func takeApart(words []string) commandLine {
	c := commandLine{variables: map[string]string{}}
	words = withoutShell(words)
	for len(words) > 0 {
		w := path.Base(words[0])
		m := assignment.FindStringSubmatch(words[0])
		if m == nil && w != "env" {
			break
		}
		if m != nil {
			c.variables[m[1]] = m[2]
		}
		words = words[1:]
	}
	at := scriptAt(words)
	part := "launcher\x00"
	if at < 0 {
		// Nothing tells a script: all options are those of the program itself.
		part, at = "", -1
	}
	var open *argument // takes values
	place := 0
	add := func(a argument) {
		c.arguments = append(c.arguments, a)
		open = &c.arguments[len(c.arguments)-1]
	}
	for i, w := range words {
		if i == 0 && i != at {
			c.programs = append(c.programs, programName(w))
			continue
		}
		if i == at {
			c.script, part, open = w, "", nil
			continue
		}
		switch {
		case w == "--":
			open = nil
		case strings.HasPrefix(w, "-") && len(w) > 1 && !negative.MatchString(w):
			if i+1 == at && (w == "-m" || w == "--module" || w == "-c") {
				c.programs = append(c.programs, w)
				continue
			}
			name, value, has := strings.Cut(w, "=")
			if m := shortNumber.FindStringSubmatch(w); m != nil {
				name, value, has = m[1], m[2], true
			}
			add(argument{key: part + optionKey(name), name: name, value: value, plain: !has})
			if has {
				open = nil
			}
		case part == "" && override.MatchString(w):
			m := override.FindStringSubmatch(w)
			add(argument{key: optionKey(m[1]), name: m[1], value: m[2]})
			open = nil
		case part == "" && deletion.MatchString(w):
			m := deletion.FindStringSubmatch(w)
			add(argument{key: optionKey(m[1]), name: m[1], value: "~", plain: true})
			open = nil
		case open != nil && (part == "" || open.plain):
			if !open.plain {
				open.value += " " + w
			} else {
				open.value = w
			}
			open.plain = false
		case part != "":
			c.programs = append(c.programs, programName(w))
			open = nil
		default:
			place++
			add(argument{key: "\x00argument", name: "argument " + strconv.Itoa(place), value: w, plain: true})
			open = nil
		}
	}
	return c
}

// withoutShell is what a shell was asked to run, where that is one line of plain words.
func withoutShell(words []string) []string {
	if len(words) >= 3 && shellName.MatchString(path.Base(words[0])) && strings.HasPrefix(words[1], "-") && strings.HasSuffix(words[1], "c") {
		if inner := strings.Fields(words[2]); len(inner) > 0 {
			return append(inner, words[3:]...)
		}
	}
	return words
}

// scriptAt is the place of the word that names what is run, -1 where nothing tells it.
func scriptAt(words []string) int {
	program := ""
	for i, w := range words {
		base := path.Base(w)
		if i > 0 && (words[i-1] == "-m" || words[i-1] == "--module") && modulesOf.MatchString(program) {
			// A launcher that is run as a module launches another program.
			if strings.HasSuffix(w, ".launch") || strings.HasSuffix(w, ".run") || w == "accelerate.commands.launch" {
				program = "launch"
				continue
			}
			return i
		}
		if i > 0 && words[i-1] == "-c" && pythonName.MatchString(program) {
			return i
		}
		if !strings.HasPrefix(w, "-") && scriptFile.MatchString(base) {
			return i
		}
		if modulesOf.MatchString(base) {
			program = base
		}
	}
	return -1
}

// programName is a program without its folder; versions of Python are told by the environment.
func programName(w string) string {
	base := path.Base(strings.ReplaceAll(w, `\`, "/"))
	if pythonName.MatchString(base) {
		return "python"
	}
	return base
}

// optionKey is the name of an option without what is a matter of taste in it.
func optionKey(name string) string {
	bare := strings.TrimLeft(name, "-")
	if len(bare) < 2 {
		return bare
	}
	return strings.ToLower(strings.ReplaceAll(bare, "-", "_"))
}

// commands compares what was run.
func (c *comparer) commands() {
	if len(c.a.Command) == 0 || len(c.b.Command) == 0 {
		c.dontKnow("the command: one of the two has none recorded")
		return
	}
	x, y := takeApart(c.a.Command), takeApart(c.b.Command)
	settle(&x, &y)
	settle(&y, &x)
	if p, q := strings.Join(x.programs, " "), strings.Join(y.programs, " "); p != q {
		c.change(incident.ChangeCommand, "launcher", p, q, step("launcher", " ", p, q))
	}
	c.scripts(x.script, y.script)
	for _, g := range group(x.arguments, y.arguments) {
		c.option(g)
	}
	for _, name := range sortedKeys(x.variables, y.variables) {
		c.variable(name, x.variables[name], y.variables[name], false)
	}
	c.folders()
}

// settle decides what "--name word" was where the other command has the same option without a
// word, or the word without the option: a switch, and an argument behind it.
func settle(x, other *commandLine) {
	bare, places := map[string]bool{}, map[string]int{}
	for _, o := range other.arguments {
		if o.plain && o.value == "" {
			bare[o.key] = true
		}
		if o.key == "\x00argument" {
			places[o.value]++
		}
	}
	for _, a := range x.arguments {
		if a.key == "\x00argument" {
			places[a.value]--
		}
	}
	has := map[string]bool{}
	for _, o := range other.arguments {
		has[o.key] = true
	}
	for i := 0; i < len(x.arguments); i++ {
		a := &x.arguments[i]
		if a.plain || a.value == "" || a.key == "\x00argument" || strings.Contains(a.value, " ") || strings.HasPrefix(a.key, "launcher\x00") {
			continue
		}
		if (bare[a.key] || !has[a.key]) && places[a.value] > 0 {
			places[a.value]--
			word := a.value
			a.value, a.plain = "", true
			x.arguments = slices.Insert(x.arguments, i+1, argument{key: "\x00argument", name: "argument", value: word, plain: true})
			i++
		}
	}
}

// A both is what two commands say about the same thing.
type both struct {
	key, name string
	a, b      []argument
}

// group puts together what has the same key, in the order of the first command, then of the
// second.
func group(x, y []argument) []both {
	var out []both
	at := map[string]int{}
	find := func(a argument) *both {
		i, ok := at[a.key]
		if !ok {
			i = len(out)
			at[a.key] = i
			out = append(out, both{key: a.key, name: a.name})
		}
		return &out[i]
	}
	for _, a := range x {
		g := find(a)
		g.a = append(g.a, a)
	}
	for _, a := range y {
		g := find(a)
		g.b = append(g.b, a)
	}
	return out
}

// option compares what both say about one option.
func (c *comparer) option(g both) {
	removed, added := apart(g.a, g.b)
	for len(removed) > 0 && len(added) > 0 {
		if !c.worded(g, removed[0], added[0]) {
			break
		}
		removed, added = removed[1:], added[1:]
	}
	if len(removed) == 0 && len(added) == 0 {
		if !slices.EqualFunc(g.a, g.b, func(x, y argument) bool { return same(x.value, y.value) }) && len(g.a) == len(g.b) && g.key != "\x00argument" {
			p, q := values(g.a), values(g.b)
			c.change(c.kind(g, p, q), g.name, p, q, g.name+" in another order: "+brief(p)+" → "+brief(q))
		}
		return
	}
	for i := range max(len(removed), len(added)) {
		var from, to argument
		var p, q string
		name := g.name
		if i < len(removed) {
			from = removed[i]
			p, name = shown(from), from.name
		}
		if i < len(added) {
			to = added[i]
			q = shown(to)
			if i >= len(removed) {
				name = to.name
			}
		}
		c.differ(g, name, p, q, from.plain && from.value == "" || to.plain && to.value == "")
	}
}

// differ adds a difference of one option.
func (c *comparer) differ(g both, name, from, to string, bare bool) {
	of := c.kind(g, from, to)
	if of != incident.ChangeData {
		if why := c.usual(g.key, from, to); why != "" {
			c.expect(of, name, from, to, why)
			return
		}
	} else if c.a.own.Replace(from) == c.b.own.Replace(to) {
		c.expect(of, name, from, to, "of the trial itself")
		return
	}
	text := step(name, " ", from, to)
	switch {
	case bare && from == "":
		text = name + " added"
	case bare && to == "":
		text = name + " removed"
	}
	if launched, ok := strings.CutPrefix(g.key, "launcher\x00"); ok && launched != "" {
		text += " (of the launcher)"
	}
	c.change(of, name, from, to, text)
}

// worded reports, and notes, that from and to are the same in other words.
func (c *comparer) worded(g both, from, to argument) bool {
	p, q := shown(from), shown(to)
	if p == q || same(p, q) {
		c.expect(c.kind(g, p, q), g.name, p, q, "the same in other words")
		return true
	}
	return false
}

// apart are the arguments that only one of two lists has, by their values, in order.
func apart(x, y []argument) (removed, added []argument) {
	count := map[string]int{}
	for _, a := range y {
		count[shown(a)]++
	}
	for _, a := range x {
		if v := shown(a); count[v] > 0 {
			count[v]--
			continue
		}
		removed = append(removed, a)
	}
	clear(count)
	for _, a := range x {
		count[shown(a)]++
	}
	for _, a := range y {
		if v := shown(a); count[v] > 0 {
			count[v]--
			continue
		}
		added = append(added, a)
	}
	return removed, added
}

// shown is the value of an argument; a switch is on.
func shown(a argument) string {
	if a.plain && a.value == "" {
		return "true"
	}
	return a.value
}

func values(list []argument) string {
	var out []string
	for _, a := range list {
		out = append(out, shown(a))
	}
	return strings.Join(out, " ")
}

// same reports whether two values mean the same in whatever reads them: equal numbers, and the
// words for yes and no in any case.
func same(x, y string) bool {
	if x == y {
		return true
	}
	if f, err := strconv.ParseFloat(x, 64); err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
		g, err := strconv.ParseFloat(y, 64)
		return err == nil && f == g
	}
	switch strings.ToLower(x) {
	case "true", "false", "none", "null":
		return strings.EqualFold(x, y)
	}
	return false
}

// Names of options and variables that say which data are read, and those that hold the same
// words and say something else.
var (
	ofData  = lazyre.New(`(?:^|[_.])(?:data|dataset|datasets|data_?(?:path|dir|root|file|files|set|source|mix|mixture)|(?:train|training|valid|validation|val|eval|test)_(?:data|file|files|path|set|split|manifest|csv|json)|corpus|manifest|shards?|dataset_(?:name|path|config|split|dir)|annotations?|labels_(?:file|path))(?:[_.]|$)`)
	notData = lazyre.New(`dataloader|batch_?size|num_?workers|seq_?len|max_?len|pin_memory|drop_last|prefetch|data_?parallel|data_?loader|num_?data|data_?workers|data_?seed|data_?impl|data_?type|data_?size|data_?prefetch|data_?axis|data_?backend|dataset_num_proc|data_sharding`)
	dataEnd = lazyre.New(`(?i)\.(?:jsonl|parquet|arrow|tfrecords?|csv|tsv|npy|npz|lmdb|mds|tar)(?:\.(?:gz|zst|xz|bz2))?$`)
)

// kind is what a difference of an option is of.
func (c *comparer) kind(g both, from, to string) string {
	key := strings.TrimPrefix(g.key, "launcher\x00")
	if ofData.MatchString(key) && !notData.MatchString(key) {
		return incident.ChangeData
	}
	if g.key == "\x00argument" && (dataEnd.MatchString(from) || dataEnd.MatchString(to)) {
		return incident.ChangeData
	}
	return incident.ChangeCommand
}

// scripts compares what the launchers run.
func (c *comparer) scripts(p, q string) {
	if p == q {
		return
	}
	if p != "" && q != "" && c.a.within(p) == c.b.within(q) {
		c.expect(incident.ChangeCommand, "script", p, q, "the same file of the same project")
		return
	}
	c.change(incident.ChangeCommand, "script", p, q, step("script", " ", p, q))
}

// within is a path relative to the folder of the project.
func (s side) within(p string) string {
	p = strings.ReplaceAll(p, `\`, "/")
	dir := strings.ReplaceAll(s.Dir, `\`, "/")
	if !path.IsAbs(p) && dir != "" {
		p = path.Join(dir, p)
	}
	root := dir
	if s.Environment != nil && s.Environment.Git != nil && s.Environment.Git.Root != "" {
		root = strings.ReplaceAll(s.Environment.Git.Root, `\`, "/")
	}
	if rest, ok := strings.CutPrefix(path.Clean(p), path.Clean(root)+"/"); ok && root != "" {
		return rest
	}
	return path.Clean(p)
}

// folders compares where the commands ran.
func (c *comparer) folders() {
	if c.a.Dir == c.b.Dir || c.a.Dir == "" || c.b.Dir == "" {
		return
	}
	if x, y := c.a.Environment, c.b.Environment; x != nil && y != nil && x.Git != nil && y.Git != nil && c.a.within(".") == c.b.within(".") {
		c.expect(incident.ChangeCommand, "working folder", c.a.Dir, c.b.Dir, "the same folder of another copy of the project")
		return
	}
	if c.a.own.Replace(c.a.Dir) == c.b.own.Replace(c.b.Dir) {
		c.expect(incident.ChangeCommand, "working folder", c.a.Dir, c.b.Dir, "of the trial itself")
		return
	}
	c.change(incident.ChangeCommand, "working folder", c.a.Dir, c.b.Dir, step("working folder", " ", c.a.Dir, c.b.Dir))
}
