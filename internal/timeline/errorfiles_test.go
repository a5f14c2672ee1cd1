package timeline

import (
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// source makes an artifact with one event.
func source(path, kind, attempt string, local int, e evidence.Event) Source {
	e.Who = evidence.Nobody()
	e.Step = evidence.None
	e.Span = evidence.Span{Artifact: path, Kind: "text", Line: 1, Length: 1}
	return Source{Artifact: evidence.Artifact{Path: path, Kind: kind, Fate: "read", Owner: evidence.Owner{Attempt: attempt, Rank: evidence.None, LocalRank: local}}, Events: []evidence.Event{e}}
}

// TestErrorFiles: an error file is of the attempt of its folder, tells once more
// what the log of its rank says, and lends it its time.
func TestErrorFiles(t *testing.T) {
	at := evidence.Stamp{Time: time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC), Written: "1777622400", Zone: "Z", Clock: "wall"}
	told := evidence.Event{Kind: evidence.Exception, Text: "KeyError: 'a'"}
	dated := told
	dated.Stamp = at
	other := evidence.Event{Kind: evidence.DeviceOOM, Text: "out of memory", Stamp: at}
	tl := Build([]Source{
		source("attempt_0/0/stderr.log", "ranklog", "attempt_0", 0, told),
		source("attempt_1/0/error.json", "elastic", "attempt_1", 0, dated),
		source("attempt_1/0/stderr.log", "ranklog", "attempt_1", 0, told),
		source("attempt_1/1/error.json", "elastic", "attempt_1", 1, other),
		source("attempt_1/error.json", "elastic", "attempt_1", evidence.None, dated),
	})
	if len(tl.Attempts) != 2 {
		t.Fatalf("%d attempts", len(tl.Attempts))
	}
	want := []struct {
		attempt      int
		quoted, time bool
	}{{0, false, false}, {1, true, true}, {1, false, true}, {1, false, true}, {1, true, true}}
	for i, it := range tl.Items {
		if it.Attempt != want[i].attempt || it.Quoted != want[i].quoted || it.Stamp.Known() != want[i].time {
			t.Errorf("%s: attempt %d, quoted %v, dated %v; want %+v", it.Span.Artifact, it.Attempt, it.Quoted, it.Stamp.Known(), want[i])
		}
	}
}

// TestEarlier: what a scheduler keeps of an earlier start is not listed with the
// last attempt, and with none where there is one.
func TestEarlier(t *testing.T) {
	record := source("sacct.txt", "slurm", "", evidence.None, evidence.Event{Kind: evidence.NodeFailure, Text: "NODE_FAIL"})
	record.Events[0].Who.Attempt = evidence.Earlier
	fault := evidence.Event{Kind: evidence.Exception, Text: "KeyError: 'a'"}
	two := Build([]Source{record, source("attempt_0/a.log", "ranklog", "attempt_0", evidence.None, fault), source("attempt_1/a.log", "ranklog", "attempt_1", evidence.None, fault)})
	if n, m := len(two.Attempts[0].Items), len(two.Attempts[1].Items); n != 2 || m != 1 {
		t.Errorf("%d and %d items", n, m)
	}
	one := Build([]Source{record, source("a.log", "ranklog", "", evidence.None, fault)})
	if n := len(one.Attempts[0].Items); n != 1 {
		t.Errorf("%d items", n)
	}
}
