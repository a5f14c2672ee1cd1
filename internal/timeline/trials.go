package timeline

import (
	"path"
	"slices"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// trialRecord reports whether s is what inquest recorded of a command that it ran.
func trialRecord(s *Source) bool { return s.Artifact.Kind == "trialrecord" }

// trialLogs maps the source of each record of a trial to that of the log in its folder: what one
// process printed, and how that process ended. Where the folder holds several logs of runs, or
// none, the record stands for itself.
func (t *Timeline) trialLogs() map[int]int {
	logs, twice := map[string]int{}, map[string]bool{}
	any := false
	for i := range t.Sources {
		s := &t.Sources[i]
		if trialRecord(s) {
			any = true
			continue
		}
		if evidence.Beside(s.Artifact.Kind) || t.tracked[i] || !runlike(s) {
			continue
		}
		dir := path.Dir(s.Artifact.Path)
		_, old := logs[dir]
		logs[dir], twice[dir] = i, twice[dir] || old
	}
	if !any {
		return nil
	}
	of := map[int]int{}
	for i := range t.Sources {
		if dir := path.Dir(t.Sources[i].Artifact.Path); trialRecord(&t.Sources[i]) && !twice[dir] {
			if log, ok := logs[dir]; ok {
				of[i] = log
			}
		}
	}
	return of
}

// trialOwners gives the log of a trial the rank and host that its record states, where neither its
// own name nor any line of it states another: a launcher's output is of many ranks, whatever number
// the launcher itself has among others.
func trialOwners(sources []Source) []Source {
	if !slices.ContainsFunc(sources, func(s Source) bool { return trialRecord(&s) }) {
		return sources
	}
	sources = slices.Clone(sources)
	for i := range sources {
		own := sources[i].Artifact.Owner
		if !trialRecord(&sources[i]) || own.Rank == evidence.None {
			continue
		}
		for j := range sources {
			s := &sources[j]
			o := &s.Artifact.Owner
			if trialRecord(s) || evidence.Beside(s.Artifact.Kind) || path.Dir(s.Artifact.Path) != path.Dir(sources[i].Artifact.Path) || o.Rank != evidence.None {
				continue
			}
			if slices.ContainsFunc(s.Events, func(e evidence.Event) bool { return e.Who.Rank != evidence.None && e.Who.Rank != own.Rank }) {
				continue
			}
			o.Rank, o.Basis = own.Rank, "the record of its trial"
			if o.LocalRank == evidence.None {
				o.LocalRank = own.LocalRank
			}
			if o.Host == "" {
				o.Host = own.Host
			}
		}
	}
	return sources
}
