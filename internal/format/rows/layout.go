package rows

import (
	"bytes"
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/lazyre"
)

// NoStep stands for a step that is not stated.
const NoStep = -1

// StepNames are the names of step columns, best first, lower case; a counter of optimizer
// steps comes before one of iterations or updates.
var StepNames = [...]string{"_step", "step", "global_step", "trainer/global_step", "train/global_step", "global_step/max_steps", "iteration", "iter", "num_updates", "current_steps", "training_iteration", "update", "train_steps", "steps"}

var timeNames = [...]string{"_timestamp", "timestamp", "wall_time", "wall time", "time", "created_at", "ts", "date"}

var (
	seriesNames = [...]string{"metric", "metric_name", "name", "tag", "key"}
	runNames    = [...]string{"run_name", "run_id", "run_uuid", "run"}
	phaseNames  = [...]string{"mode", "split", "phase"}
)

// A Layout says what the cells of the rows of one file are for. It is given the rows in
// the order of the file; who reads a file and who writes a changed copy of it ask one each
// and so agree on names and steps.
type Layout struct {
	// Tracker names who wrote the file, from the first row on: trainer_state, lightning,
	// keras, ultralytics, mmengine, mmcv, ray, tensorboard-csv, tensorboard-json, wandb-csv,
	// wandb-jsonl, mlflow-csv, mlflow-json, csv, tsv, jsonl; or what its reader set.
	Tracker string
	// Filtered says that the loss may be a replaced one: the file is one of transformers'
	// Trainer or of what is built on it.
	Filtered bool

	form  Form
	file  string
	roles map[string]*role
	row   Reading

	known  bool   // Tracker is decided
	long   bool   // one value a row, with the name of its series beside it
	epochs bool   // epochs are the only counter
	steps  bool   // some row had a step
	run    string // of all points, where the file's name has it
	panels bool
	panel  map[string]int // column of a run's step, in a panel export
	iters  iterations
}

// A role is what a name of cells means.
type role struct {
	step, time int // how good a step or time, 0 for none
	kind       roleKind
	name, run  string // of its points
	val        string // of its points in rows of an evaluation
}

type roleKind uint8

const (
	value roleKind = iota
	series
	run
	phase
	epoch
	setting // part of the configuration, or of no meaning as a number
	axis    // another counter of a panel export
	longValue
)

// A Reading is what the cells of one row are.
type Reading struct {
	Step   int64 // NoStep where none is stated
	Epochs bool  // Step counts epochs
	Time   Time  // zero where none is stated
	// TimeText is the time as written.
	TimeText []byte
	Points   []Point
	// Closing is the cell by which transformers' Trainer says that training returned, -1.
	Closing int
	// Total is how many steps the run has, by its row, 0 if unstated, and in which cell.
	Total     int64
	TotalCell int
}

// A Point is one value of a series.
type Point struct {
	Cell int    // index into the row's cells
	Name string // of the series
	Run  string // of several in one file
	Step int64  // NoStep where none is stated
}

// NewLayout returns the layout of a file of a form; member is that of FormOf.
func NewLayout(file string, f Form, member string) *Layout {
	l := &Layout{form: f, file: file, roles: map[string]*role{}}
	switch {
	case f == Document && member == "log_history":
		l.Tracker, l.Filtered, l.known = "trainer_state", true, true
	case f == Document:
		l.Tracker, l.known = "mlflow-json", true
		l.longFormat([]Cell{{Name: "key"}, {Name: "value"}})
	}
	return l
}

// NewColumns returns the layout of rows whose columns a reader knows from a schema, as
// those of a Parquet file.
func NewColumns(file, tracker string, names []string) *Layout {
	l := &Layout{form: Table, file: file, roles: map[string]*role{}}
	cells := make([]Cell, len(names))
	for i, n := range names {
		cells[i].Name = n
	}
	l.Header(cells)
	l.Tracker, l.known = tracker, true
	return l
}

// Header takes the header of a table; one in the middle begins anew.
func (l *Layout) Header(cells []Cell) {
	has := map[string]bool{}
	for i := range cells {
		has[cells[i].Name] = true
	}
	clear(l.roles)
	l.panel, l.long = nil, false
	l.steps, l.epochs = false, false
	if len(cells) >= 3 && cells[0].Name == "Wall time" && cells[1].Name == "Step" && cells[2].Name == "Value" {
		l.Tracker, l.known = "tensorboard-csv", true
		l.oneSeries()
		return
	}
	if l.panels = l.panelColumns(cells, has); l.panels {
		l.Tracker, l.known = "wandb-csv", true
		return
	}
	l.decide(cells)
	l.longFormat(cells)
	for i := range cells {
		r := l.role(cells[i].Name)
		l.steps = l.steps || r.step > 0
		l.epochs = l.epochs || r.kind == epoch
	}
	l.epochs = l.epochs && !l.steps
}

// oneSeries gives the value column its name, which stands in that of the file.
func (l *Layout) oneSeries() {
	run, tag := tagOf(l.file)
	l.run, l.roles["Value"] = run, &role{name: tag}
}

// panelColumns gives the columns of a W&B panel export their roles: after the x axis, for
// each run and metric "RUN - METRIC" with the least and greatest value of what was put
// together in one row, METRIC__MIN and METRIC__MAX.
func (l *Layout) panelColumns(cells []Cell, has map[string]bool) bool {
	found := false
	runs := map[string]bool{}
	for i := range cells {
		name := cells[i].Name
		base := strings.TrimSuffix(strings.TrimSuffix(name, "__MIN"), "__MAX")
		at := strings.LastIndex(base, " - ")
		if at < 0 || !has[base] || !has[base+"__MIN"] || !has[base+"__MAX"] {
			continue
		}
		found, runs[base[:at]] = true, true
		r := &role{run: base[:at], name: name[at+3:]}
		if base[at+3:] == "_step" {
			r.kind = axis
			if base == name {
				if l.panel == nil {
					l.panel = map[string]int{}
				}
				l.panel[r.run] = i
			}
		}
		l.roles[name] = r
	}
	for i := range cells { // what was added for one of the runs
		name := cells[i].Name
		if at := strings.LastIndex(name, " - "); at >= 0 && runs[name[:at]] && l.roles[name] == nil {
			l.roles[name] = &role{run: name[:at], name: name[at+3:]}
		}
	}
	if first := cells[0].Name; found && l.roles[first] == nil {
		if r := l.role(first); r.step == 0 && r.kind != epoch {
			r.kind = axis
		} else {
			l.epochs = r.kind == epoch
		}
	}
	return found
}

// longFormat finds the columns of a table with one value a row.
func (l *Layout) longFormat(cells []Cell) {
	at, name := -1, ""
	for i := range cells {
		key := lower(cells[i].Name)
		for _, s := range seriesNames {
			if key == s && (name == "" || s != "name") {
				name = cells[i].Name
			}
		}
		if key == "value" || key == "metric_value" {
			at = i
		}
	}
	if at < 0 || name == "" {
		return
	}
	l.long = true
	l.roles[name] = &role{kind: series}
	l.roles[cells[at].Name] = &role{kind: longValue}
}

// longRow reports whether a row of JSON names its series in one cell and has its value in
// another.
func (l *Layout) longRow(cells []Cell) bool {
	named, valued := false, false
	for i := range cells {
		c := &cells[i]
		named = named || c.Quoted && !c.Number && rank(seriesNames[:], c.Name) > 0
		valued = valued || c.Number && c.Name == "value"
	}
	return named && valued
}

func lower(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

// rank returns how good a name is among names, best first; 0 for none of them.
func rank(names []string, key string) int {
	for i, n := range names {
		if n == key {
			return len(names) - i
		}
	}
	return 0
}

// role returns what a name means.
func (l *Layout) role(name string) *role {
	if r := l.roles[name]; r != nil {
		return r
	}
	key := lower(name)
	r := &role{name: name, val: "val/" + name, step: rank(StepNames[:], key), time: rank(timeNames[:], key)}
	switch {
	case r.step > 0 || r.time > 0:
	case key == "epoch" || key == "epochs":
		r.kind = epoch
	case rank(runNames[:], key) > 0:
		r.kind = run
	case rank(phaseNames[:], key) > 0:
		r.kind = phase
	case strings.HasPrefix(name, "config/") || key == "pid" || key == "seed" || key == "id" || key == "_runtime" || key == "total_steps" || key == "":
		r.kind = setting
	case strings.HasPrefix(key, "relative time"):
		r.kind = axis
	}
	l.roles[name] = r
	return r
}

// decide names the tracker by the cells of the first row or of the header.
func (l *Layout) decide(cells []Cell) {
	if l.known {
		return
	}
	l.known = true
	has := make(map[string]bool, len(cells))
	for i := range cells {
		has[lower(cells[i].Name)] = true
	}
	base := strings.ToLower(baseOf(l.file))
	wandb := has["_step"] && (has["_runtime"] || has["_timestamp"])
	ray := has["training_iteration"] && (has["time_total_s"] || has["trial_id"] || has["time_this_iter_s"])
	switch {
	case l.form == Lines && l.longRow(cells):
		l.Tracker = "jsonl"
		l.longFormat(cells)
	case l.form == Table && wandb:
		l.Tracker = "wandb-csv"
	case wandb:
		l.Tracker = "wandb-jsonl"
	case ray:
		l.Tracker = "ray"
	case l.form == Table && has["key"] && has["value"] && has["step"] && has["timestamp"]:
		l.Tracker = "mlflow-csv"
	case l.form == Table && base == "metrics.csv" && has["step"] && has["epoch"]:
		l.Tracker = "lightning"
	case l.form == Table && len(cells) > 0 && lower(cells[0].Name) == "epoch" && !has["step"]:
		l.Tracker = "keras"
		if has["train/box_loss"] || has["train/loss"] || has["metrics/map50(b)"] || has["metrics/accuracy_top1"] {
			l.Tracker = "ultralytics"
		}
	case l.form == Table && strings.HasSuffix(base, ".tsv"):
		l.Tracker = "tsv"
	case l.form == Table:
		l.Tracker = "csv"
	case has["wall time"] && has["step"] && has["value"] && len(cells) == len(tripleNames):
		l.Tracker = "tensorboard-json"
		l.oneSeries()
	case base == "scalars.json" || path.Base(path.Dir(l.file)) == "vis_data":
		l.Tracker = "mmengine"
	case strings.HasSuffix(base, ".log.json") || has["mode"] && has["iter"] && has["epoch"]:
		l.Tracker = "mmcv"
	default:
		l.Tracker = "jsonl"
	}
}

// Row says what the cells of the next row are. What it returns is valid until the next
// call.
func (l *Layout) Row(cells []Cell) *Reading {
	if !l.known {
		l.decide(cells)
	}
	r := &l.row
	*r = Reading{Step: NoStep, Closing: -1, Points: r.Points[:0]}
	best := marks{step: -1, time: -1, epoch: -1, series: -1}
	for i := range cells {
		l.mark(r, &best, cells, i)
	}
	l.steps = l.steps || r.Step >= 0
	name := ""
	if best.series >= 0 {
		name = string(cut(cells[best.series].Text, MaxName))
	}
	if r.Step < 0 && !l.steps && best.epoch >= 0 && (l.epochs || l.form != Table) && l.Tracker != "mmcv" {
		if n, ok := whole(cells[best.epoch].Value); ok {
			r.Step, r.Epochs = n, true
		}
	}
	if l.Tracker == "mmcv" {
		r.Step = l.iters.step(r.Step, cells, best)
	}
	for i := range cells {
		l.point(r, &best, cells, i, name)
	}
	return r
}

// marks are the cells of a row that are more than values.
type marks struct {
	step, time, epoch, series int // indices, -1 for none
	stepRank, timeRank        int
	run                       string
	eval                      bool
}

func (l *Layout) mark(r *Reading, m *marks, cells []Cell, i int) {
	c := &cells[i]
	role := l.role(c.Name)
	if role.step > m.stepRank {
		if n, total, ok := stepOf(c); ok {
			r.Step, m.step, m.stepRank = n, i, role.step
			if total > 0 {
				r.Total, r.TotalCell, l.Filtered = total, i, true
			}
		}
	}
	if role.time > 0 && len(c.Text) > 0 {
		if t, ok := timeOf(c); ok && (role.time > m.timeRank && (t.Zone != "" || r.Time.Zone == "") || r.Time.Zone == "" && t.Zone != "") {
			r.Time, r.TimeText, m.time, m.timeRank = t, c.Text, i, role.time
		}
	}
	switch role.kind {
	case series:
		if len(c.Text) > 0 && !c.Number {
			m.series = i
		}
	case run:
		if len(c.Text) > 0 && m.run == "" {
			m.run = strings.ToValidUTF8(string(cut(c.Text, MaxName)), "\uFFFD")
		}
	case phase:
		switch string(c.Text) {
		case "val", "valid", "validation", "eval", "test":
			m.eval = true
		}
	case epoch:
		if c.Number {
			m.epoch = i
		}
	case setting:
		if c.Name == "total_steps" && c.Number {
			if n, ok := whole(c.Value); ok && n > 0 {
				r.Total, r.TotalCell = n, i
			}
			l.Filtered = l.Filtered || l.Tracker == "jsonl" // LLaMA-Factory's trainer_log.jsonl
		}
	}
	if c.Name == "train_runtime" {
		r.Closing = i
	}
}

// point adds a cell that is a value. A counter or a time that is not finite is one too.
func (l *Layout) point(r *Reading, m *marks, cells []Cell, i int, name string) {
	c := &cells[i]
	if c.Name == "" {
		return
	}
	role := l.role(c.Name)
	if !c.Number {
		// Ray writes a number of numpy that is not finite as the string "null".
		if l.Tracker != "ray" || l.form == Table || !c.Quoted || string(c.Text) != "null" || role.kind != value {
			return
		}
		c.Value, c.Number = math.NaN(), true
	}
	finite := Finite(c.Value)
	if finite && (role.step > 0 || role.kind == setting || role.kind == axis || role.time > 0 && isTime(c) || r.Epochs && i == m.epoch) {
		return
	}
	if role.kind == setting && strings.HasPrefix(c.Name, "config/") || role.kind == run || role.kind == phase {
		return
	}
	p := Point{Cell: i, Name: role.name, Run: role.run, Step: r.Step}
	switch {
	case role.kind == longValue:
		if name == "" {
			return
		}
		p.Name = l.intern(name)
	case role.kind == series:
		return
	case m.eval:
		p.Name = role.val
	}
	switch {
	case p.Run != "":
	case l.run != "":
		p.Run = l.run
	default:
		p.Run = m.run
	}
	if at, ok := l.panel[p.Run]; ok && at < len(cells) {
		p.Step = NoStep
		if n, ok := whole(cells[at].Value); ok && cells[at].Number {
			p.Step = n
		}
	}
	r.Points = append(r.Points, p)
}

func isTime(c *Cell) bool { _, ok := timeOf(c); return ok }

// intern keeps one copy of a series' name.
func (l *Layout) intern(name string) string {
	key := "\x00" + name
	if r := l.roles[key]; r != nil {
		return r.name
	}
	if len(l.roles) < maxNames {
		l.roles[key] = &role{name: name}
	}
	return name
}

// stepOf reads a step: a whole number, or ms-swift's "12/100".
func stepOf(c *Cell) (n, total int64, ok bool) {
	if c.Number {
		n, ok = whole(c.Value)
		return n, 0, ok
	}
	a, b, found := bytes.Cut(c.Text, []byte("/"))
	if !found {
		return 0, 0, false
	}
	x, okX := Number(a)
	y, okY := Number(b)
	n, okN := whole(x)
	total, okT := whole(y)
	return n, total, okX && okY && okN && okT
}

// iterations count the steps of mmcv, whose iterations begin anew in each epoch.
type iterations struct {
	epoch, most int64 // the present epoch and its highest iteration so far
	length      int64 // of an epoch: the highest iteration that any had, 0 unknown
	through     bool  // iterations go on through epochs
}

// step returns the step of a row, NoStep while the length of an epoch is not known.
func (it *iterations) step(iter int64, cells []Cell, m marks) int64 {
	if m.epoch < 0 || iter < 0 {
		return iter
	}
	e, ok := whole(cells[m.epoch].Value)
	if !ok || e < 1 {
		return iter
	}
	if m.eval {
		if it.length = max(it.length, it.most); it.length > 0 && !it.through {
			return e * it.length // an evaluation counts its own batches
		}
		return NoStep
	}
	if e != it.epoch {
		it.through = it.through || it.most > 0 && iter > it.most
		if it.most > 0 {
			it.length = max(it.length, it.most)
		}
		it.epoch, it.most = e, 0
	}
	it.most = max(it.most, iter)
	switch {
	case it.through || e == 1:
		return iter
	case it.length > 0:
		return (e-1)*it.length + iter
	}
	return NoStep
}

// Panels reports whether the file is a panel export, whose columns are of several runs.
func (l *Layout) Panels() bool { return l.panels }

// Panel returns the runs of a panel export by name; none for other files.
func (l *Layout) Panel() []string {
	runs := map[string]bool{}
	for _, r := range l.roles {
		if r.run != "" {
			runs[r.run] = true
		}
	}
	return slices.Sorted(maps.Keys(runs))
}

// EpochLength returns how many iterations an mmcv epoch has by the rows so far, 0 where steps
// were not counted by it.
func (l *Layout) EpochLength() int64 {
	if l.Tracker != "mmcv" || l.iters.through || l.iters.epoch <= 1 {
		return 0
	}
	return l.iters.length
}

var checkpoint = lazyre.New(`^checkpoint-\d+$`)

// An Identity tells runs apart.
type Identity struct {
	ID, Name string
	Folder   string // slash path of the folder that is the run, or of the file where a file is one
}

// Identity returns the identity of a run of the file, "" for that of a file with one.
// The checkpoints of one training, and the folders that MMEngine and mmcv make for each
// start in one work folder, are one run.
func (l *Layout) Identity(run string) Identity {
	if run != "" {
		return Identity{ID: run, Name: run, Folder: l.file}
	}
	dir := path.Dir(l.file)
	switch l.Tracker {
	case "trainer_state":
		if checkpoint.MatchString(path.Base(dir)) {
			dir = path.Dir(dir)
		}
	case "mmengine":
		if path.Base(dir) == "vis_data" {
			dir = path.Dir(path.Dir(dir))
		}
	case "lightning", "ray", "mmcv":
	default:
		dir = l.file
	}
	name := path.Base(dir)
	if name == "." || name == "/" {
		name = ""
	}
	return Identity{Name: name, Folder: dir}
}
