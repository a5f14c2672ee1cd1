package timeline_test

import (
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/timeline"
)

// source is a log of one rank (of none below 0) with one event.
func source(path, attempt string, localRank int, e evidence.Event) timeline.Source {
	a := evidence.Artifact{Path: path, Kind: "ranklog", Fate: "read", Owner: evidence.Owner{Attempt: attempt, Rank: evidence.None, LocalRank: localRank}}
	e.Span = evidence.Span{Artifact: path, Kind: "text", Line: 1, Length: 1}
	e.Step = evidence.None
	return timeline.Source{Artifact: a, Events: []evidence.Event{e}}
}

func failure(local int, text string) evidence.Event {
	w := evidence.Nobody()
	w.LocalRank = local
	return evidence.Event{Kind: evidence.Exception, Who: w, Text: text}
}

func TestConsoleOfTheOnlyNamedAttempt(t *testing.T) {
	tl := timeline.Build([]timeline.Source{
		source("console.log", "", evidence.None, failure(0, "[default0]:[rank0]: KeyError: 'y'")),
		source("logs/attempt_0/0/stderr.log", "0", 0, failure(evidence.None, "[rank0]: KeyError: 'y'")),
	})
	if len(tl.Attempts) != 1 {
		t.Fatalf("%d attempts; the console and the rank's file tell of one", len(tl.Attempts))
	}
	if !tl.Items[0].Quoted || tl.Items[1].Quoted {
		t.Errorf("quoted: console %v, own file %v; the console repeats", tl.Items[0].Quoted, tl.Items[1].Quoted)
	}
}

func TestConsoleBesideSeveralNamedAttempts(t *testing.T) {
	tl := timeline.Build([]timeline.Source{
		source("console.log", "", evidence.None, failure(0, "KeyError: 'y'")),
		source("logs/attempt_0/0/stderr.log", "0", 0, failure(evidence.None, "KeyError: 'y'")),
		source("logs/attempt_1/0/stderr.log", "1", 0, failure(evidence.None, "KeyError: 'y'")),
	})
	if len(tl.Attempts) != 3 {
		t.Errorf("%d attempts; to which of the two the console belongs is open", len(tl.Attempts))
	}
}

func TestOtherWordsAreNoRepeat(t *testing.T) {
	tl := timeline.Build([]timeline.Source{
		source("console.log", "", evidence.None, failure(1, "KeyError: 'y'")),
		source("logs/attempt_0/0/stderr.log", "0", 0, failure(evidence.None, "KeyError: 'y'")),
	})
	if tl.Items[0].Quoted {
		t.Error("the same words of another rank are its own")
	}
}

func TestLostWorkerByItsStack(t *testing.T) {
	for _, tt := range []struct {
		typ, function string
		want          evidence.Kind
	}{
		{"ConnectionResetError", "rebuild_storage_fd", evidence.WorkerExited},
		{"FileNotFoundError", "rebuild_storage_filename", evidence.WorkerExited},
		{"ConnectionResetError", "urlopen", evidence.Exception},
		{"KeyError", "rebuild_storage_fd", evidence.Exception},
	} {
		e := failure(evidence.None, tt.typ)
		e.Attrs = evidence.Attrs{"type": evidence.TextOf(tt.typ)}
		e.Stack = []evidence.Frame{{File: "train.py", Function: "<module>"}, {File: "reductions.py", Function: tt.function}, {File: "connection.py", Function: "_recv"}}
		if got := timeline.Build([]timeline.Source{source("train.log", "", evidence.None, e)}).Items[0].Kind; got != tt.want {
			t.Errorf("%s in %s is %s, want %s", tt.typ, tt.function, got, tt.want)
		}
	}
}
