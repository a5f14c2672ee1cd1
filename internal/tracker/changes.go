package tracker

import (
	"fmt"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
)

// maxChanges bounds the settings named of two runs that differ.
const maxChanges = 8

// changed notes of each run which settings differ from those of the run before it: the next
// older one of the same tracker and project with settings of its own. runs are the newest
// first.
func changed(runs []incident.TrackedRun) {
	for i := range runs {
		r := &runs[i]
		if len(r.Settings) == 0 || r.Newest == nil {
			continue
		}
		for j := i + 1; j < len(runs); j++ {
			old := &runs[j]
			if old.Tracker != r.Tracker || old.Project != r.Project || old.Newest == nil || len(old.Settings) == 0 {
				continue
			}
			if diffs := differ(old.Settings, r.Settings); len(diffs) > 0 {
				r.Notes = union(r.Notes, []string{fmt.Sprintf("Settings that differ from the run before it, %s: %s.", called(old), strings.Join(diffs, "; "))}, maxNotes)
			}
			break
		}
	}
}

// called is a run by its name, id or folder.
func called(r *incident.TrackedRun) string {
	for _, s := range []string{r.Name, r.ID, r.Folder} {
		if s != "" {
			return brief(s)
		}
	}
	return "without a name"
}

// differ lists the settings that both have with other values, in the order of the newer.
func differ(old, now []incident.RunSetting) []string {
	was := make(map[string]string, len(old))
	for _, s := range old {
		was[s.Name] = s.Value
	}
	var out []string
	more := 0
	for _, s := range now {
		v, ok := was[s.Name]
		if !ok || v == s.Value || incidental(s.Name) {
			continue
		}
		if len(out) < maxChanges {
			out = append(out, fmt.Sprintf("%s was %s, is %s", s.Name, brief(v), brief(s.Value)))
		} else {
			more++
		}
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return out
}

// incidental reports whether a setting differs from run to run by nature: names, places, times.
func incidental(name string) bool {
	name = strings.ToLower(name[strings.LastIndexAny(name, "./")+1:])
	switch name {
	case "run_name", "name", "id", "pid", "host", "hostname", "started_at", "created", "_created", "timestamp":
		return true
	}
	return strings.HasSuffix(name, "_dir") || strings.HasSuffix(name, "_path") || strings.HasSuffix(name, "_id")
}
