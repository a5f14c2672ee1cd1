package engine_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/incident"
)

// realLogs holds what is expected of logs of real runs, one a line, columns
// divided by blanks:
//
//	file outcome launches line kind rank order cause standing
//
// with "-" for what is none or not stated. docs/real-logs.md discusses each.
const realLogs = "testdata/reallogs.txt"

// TestRealLogs diagnoses the public logs that realLogs names, where they lie
// beside the module: without error, twice the same, and as the table says.
func TestRealLogs(t *testing.T) {
	if testing.Short() {
		t.Skip("reads eight megabytes of logs")
	}
	dir := outside(t, "data/logs")
	table, err := os.ReadFile(realLogs)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range strings.Split(string(table), "\n") {
		name, _, _ := strings.Cut(want, " ")
		if name == "" || name[0] == '#' {
			continue
		}
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, name)
			if _, err := os.Stat(file); err != nil {
				t.Skip("this log is not here")
			}
			inc := diagnose(t, file)
			if !bytes.Equal(encode(t, inc), encode(t, diagnose(t, file))) {
				t.Error("a second diagnosis differs")
			}
			if got := name + " " + verdictRow(inc); got != strings.Join(strings.Fields(want), " ") {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		})
	}
}

func verdictRow(inc *incident.Incident) string {
	line, kind, rank, cause, standing := "-", "-", "-", "-", "-"
	if f := inc.FirstFault; f != nil {
		kind = f.Kind
		if f.Span != nil {
			line = fmt.Sprint(f.Span.Line)
		}
		if f.Rank != nil {
			rank = fmt.Sprint(*f.Rank)
		}
	}
	if h := inc.Hypotheses; len(h) > 0 {
		cause, standing = h[0].Cause, h[0].Standing
	}
	return fmt.Sprintf("%s %d %s %s %s %s %s %s", inc.Outcome, len(inc.Attempts), line, kind, rank, inc.Order.Relation, cause, standing)
}
