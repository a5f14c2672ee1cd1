package timeline

import "github.com/inquest-dev/inquest/internal/evidence"

// errorFile reports whether s is what a worker or its agent wrote to the file that
// TORCHELASTIC_ERROR_FILE names.
func errorFile(s *Source) bool { return s.Artifact.Kind == "elastic" }

// errorFiles marks what error files repeat: a worker's file tells once more how its
// log says that it failed, and the agent's file is a copy of a worker's. The file
// states when that was, which a traceback in a log does not: it lends its time to
// the line that has none.
func (t *Timeline) errorFiles() {
	type failure struct {
		kind                 evidence.Kind
		attempt, rank, local int
		host                 string
	}
	of := func(it *Item) failure {
		f := failure{kind: it.Kind, attempt: it.Attempt, rank: it.Who.Rank}
		if f.rank == evidence.None {
			f.local, f.host = it.Who.LocalRank, it.Who.Host
		}
		return f
	}
	type words struct{ text, written string }
	last := map[failure]*Item{} // in logs
	workers := map[words]bool{}
	var files []*Item
	for _, it := range t.Items {
		known := it.Who.Rank != evidence.None || it.Who.LocalRank != evidence.None
		switch {
		case it.Text == "":
		case errorFile(&t.Sources[it.Source]):
			files = append(files, it)
			if known {
				workers[words{it.Text, it.Stamp.Written}] = true
			}
		case known && it.Attempt >= 0 && !it.Quoted:
			last[of(it)] = it
		}
	}
	for _, it := range files {
		if it.Who.Rank == evidence.None && it.Who.LocalRank == evidence.None {
			it.Quoted = it.Quoted || workers[words{it.Text, it.Stamp.Written}]
			continue
		}
		f := of(it)
		if it.Attempt < 0 { // its folder names no attempt: it is overwritten by each
			f.attempt = len(t.Attempts) - 1
		}
		if x := last[f]; x != nil {
			it.Quoted = true
			if !x.Stamp.Known() {
				x.Stamp = it.Stamp
			}
		}
	}
}
