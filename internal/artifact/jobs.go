package artifact

import (
	"path"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// group sorts r.Files into jobs and both into their order.
//
//  1. A file whose name states a job belongs to it.
//  2. A file that states none belongs to the one job that files in its folder,
//     or else in the nearest folder above, state. If they state several, it is
//     listed with each of them as shared.
//  3. A folder that looks like one run of several (run_1 and run_2, two time
//     stamps) is a job of its own, unless the files in it state one.
//  4. What is left belongs to the only job stated anywhere, or else to one job
//     without an id: it was named together.
func group(r *Result) {
	g := grouping{
		files:  r.Files,
		stated: make(map[string][]string),
		jobs:   make(map[string]*Job),
	}
	g.read()
	own := make([][]string, len(r.Files)) // keys of jobs
	for i := range r.Files {
		own[i] = g.assign(i)
	}
	for i, keys := range own {
		if len(keys) > 1 {
			for _, k := range keys {
				g.jobs[k].Shared = append(g.jobs[k].Shared, i)
			}
			continue
		}
		j := g.jobs[keys[0]]
		j.Files = append(j.Files, i)
		if mod := r.Files[i].ModTime; mod.After(j.Newest) {
			j.Newest = mod
		}
	}
	for _, j := range g.jobs {
		if len(j.Files) > 0 {
			r.Jobs = append(r.Jobs, *j)
		}
	}
	sortJobs(r.Jobs)
	reorder(r)
}

// A grouping is one call of group.
type grouping struct {
	files  []File
	stated map[string][]string // folder -> ids that files directly in it state
	below  map[string]string   // folder -> the only id that files somewhere below it state; "" if several
	splits map[string]bool     // folders that are one run of several
	jobs   map[string]*Job     // by key: "id " or "run " and name
	only   string              // the only id stated anywhere, "" if none or several
}

// read collects the stated ids and the run folders.
func (g *grouping) read() {
	runs := make(map[string]map[string]bool) // folder -> its run folders
	for i := range g.files {
		f := &g.files[i]
		dir := path.Dir(f.Place)
		if id := f.Owner.Job; id != "" {
			g.job("id "+id, id, f.Owner.Basis)
			if !slices.Contains(g.stated[dir], id) {
				g.stated[dir] = append(g.stated[dir], id)
			}
		}
		for ; dir != "." && dir != "/"; dir = path.Dir(dir) {
			parent := path.Dir(dir)
			if isRun(path.Base(dir)) {
				if runs[parent] == nil {
					runs[parent] = make(map[string]bool)
				}
				runs[parent][dir] = true
			}
		}
	}
	if len(g.jobs) == 1 {
		for _, j := range g.jobs {
			g.only = j.ID
		}
	}
	g.below = make(map[string]string)
	for dir, ids := range g.stated {
		id := ids[0]
		if len(ids) > 1 {
			id = ""
		}
		for ; ; dir = path.Dir(dir) {
			if old, ok := g.below[dir]; ok && old != id {
				id = "" // so for the folders above it
			}
			g.below[dir] = id
			if dir == "." || dir == "/" {
				break
			}
		}
	}
	g.splits = make(map[string]bool)
	for parent, dirs := range runs {
		if len(dirs) < 2 || trackerFolder(parent) && !g.allUnder(parent) {
			continue
		}
		for d := range dirs {
			g.splits[d] = true
		}
	}
}

// assign returns the keys of the jobs that file i belongs to, and completes its
// owner where that is one.
func (g *grouping) assign(i int) []string {
	f := &g.files[i]
	if id := f.Owner.Job; id != "" {
		return []string{"id " + id}
	}
	dir := path.Dir(f.Place)
	for ; ; dir = path.Dir(dir) {
		if ids := g.stated[dir]; len(ids) == 1 {
			return g.own(f, ids[0], "beside the files of job "+ids[0])
		} else if len(ids) > 1 {
			keys := make([]string, len(ids))
			for k, id := range ids {
				keys[k] = "id " + id
			}
			return keys
		}
		if g.splits[dir] {
			if id := g.below[dir]; id != "" {
				return g.own(f, id, "in one folder with the files of job "+id)
			}
			return []string{g.job("run "+dir, dir, "run folder "+printable(path.Base(dir)))}
		}
		if dir == "." || dir == "/" {
			break
		}
	}
	if g.only != "" {
		return g.own(f, g.only, "named together with the files of job "+g.only)
	}
	return []string{g.job("", "", "named together")}
}

func (g *grouping) own(f *File, id, basis string) []string {
	f.Owner.Job = id
	if f.Owner.Basis != "" {
		basis = f.Owner.Basis + ", " + basis
	}
	f.Owner.Basis = basis
	return []string{"id " + id}
}

func (g *grouping) job(key, id, basis string) string {
	if g.jobs[key] == nil {
		g.jobs[key] = &Job{ID: printable(id), Basis: basis}
	}
	return key
}

// allUnder reports whether every file lies below dir.
func (g *grouping) allUnder(dir string) bool {
	for i := range g.files {
		if !strings.HasPrefix(g.files[i].Place, dir+"/") {
			return false
		}
	}
	return true
}

// runName matches folders that hold one run: run_1, run-20260102_030405-ab12,
// exp3, version_0, and time stamps. dateName finds the time in one.
var (
	runName  = lazyre.New(`(?i)^(?:offline-)?(?:run|exp|experiment|trial|version|launch|session)[-_.]?\d`)
	dateName = lazyre.New(`((?:19|20)\d\d)[-_.]?(\d\d)[-_.]?(\d\d)(?:[-_.T ]*(\d\d)[-_.:]?(\d\d)[-_.:]?(\d\d))?`)
	timeName = lazyre.New(`^\d\d[-_.:]\d\d[-_.:]\d\d$`)
)

func isRun(name string) bool {
	return runName.MatchString(name) || dateName.MatchString(name) || timeName.MatchString(name)
}

// trackerFolder reports whether the run folders in dir are a tracker's: they
// lie beside the log of the job that they belong to. The name of a run may stand between
// (lightning_logs/lora/version_0).
func trackerFolder(dir string) bool {
	for range 2 {
		switch strings.ToLower(path.Base(dir)) {
		case "wandb", "tb", "tensorboard", "runs", "lightning_logs", "vis_data", "mlruns", "swanlog":
			return true
		}
		dir = path.Dir(dir)
	}
	return false
}

// sortJobs puts the newest first. Modification times decide only where ids and
// names do not: copies and unpacked archives all carry the time of copying.
func sortJobs(jobs []Job) {
	ids, dated := true, true
	when := make(map[string]time.Time)
	for _, j := range jobs {
		ids = ids && digits(firstNumber(j.ID))
		t, ok := nameTime(j.ID)
		dated = dated && ok
		when[j.ID] = t
	}
	newer := func(a, b Job) int {
		switch {
		case ids:
			return evidence.Natural(a.ID, b.ID)
		case dated:
			return when[a.ID].Compare(when[b.ID])
		}
		return a.Newest.Truncate(time.Second).Compare(b.Newest.Truncate(time.Second))
	}
	sort.Slice(jobs, func(i, j int) bool {
		if c := newer(jobs[i], jobs[j]); c != 0 {
			return c > 0
		}
		if c := evidence.Natural(jobs[i].ID, jobs[j].ID); c != 0 {
			return c > 0
		}
		return jobs[i].ID > jobs[j].ID
	})
}

// firstNumber returns the job's number of an id like 1234_7.
func firstNumber(id string) string {
	n, _, _ := strings.Cut(id, "_")
	return n
}

// nameTime reads the time in a run folder's path: a date in one name, and a
// time of day there or in the next.
func nameTime(dir string) (time.Time, bool) {
	base, parent := path.Base(dir), path.Base(path.Dir(dir))
	if timeName.MatchString(base) {
		base = parent + "_" + base
	}
	m := dateName.FindStringSubmatch(base)
	if m == nil {
		return time.Time{}, false
	}
	clock := m[4] + m[5] + m[6]
	if clock == "" {
		clock = "000000"
	}
	t, err := time.Parse("20060102150405", m[1]+m[2]+m[3]+clock)
	return t, err == nil
}

// reorder sorts the files by the newest job they are listed with, then by path,
// and renumbers the jobs' lists.
func reorder(r *Result) {
	rank := make([]int, len(r.Files))
	for i := len(r.Jobs) - 1; i >= 0; i-- {
		for _, list := range [][]int{r.Jobs[i].Files, r.Jobs[i].Shared} {
			for _, f := range list {
				rank[f] = i
			}
		}
	}
	order := make([]int, len(r.Files))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool { return rank[order[i]] < rank[order[j]] }) // files are in path order already
	at := make([]int, len(order))
	sorted := make([]File, len(order))
	for to, from := range order {
		at[from], sorted[to] = to, r.Files[from]
	}
	r.Files = sorted
	for i := range r.Jobs {
		for _, list := range [][]int{r.Jobs[i].Files, r.Jobs[i].Shared} {
			for k, f := range list {
				list[k] = at[f]
			}
			sort.Ints(list)
		}
	}
}
