package engine_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/testkit/genjob"
)

// TestGeneratedJobs diagnoses jobs of many ranks whose truth is known: where the
// files show what came first, rank, file and line must be right; where they do not,
// the verdict must say so; and no wrong one may be certain. Seeds come from a hash;
// INQUEST_SEEDS is their number, INQUEST_SEED_TEXT what is hashed, INQUEST_RANKS the
// sizes of the jobs.
func TestGeneratedJobs(t *testing.T) {
	n, text, sizes := 200, "inquest genjob", []int{8, 8, 8, 8, 64}
	if v, err := strconv.Atoi(os.Getenv("INQUEST_SEEDS")); err == nil {
		n = v
	}
	if v := os.Getenv("INQUEST_SEED_TEXT"); v != "" {
		text = v
	}
	if v := os.Getenv("INQUEST_RANKS"); v != "" {
		sizes = nil
		for _, s := range strings.Split(v, ",") {
			r, err := strconv.Atoi(s)
			if err != nil {
				t.Fatalf("INQUEST_RANKS: %v", err)
			}
			sizes = append(sizes, r)
		}
	}
	decidable, why := 0, map[string]int{}
	for i := range n {
		seed := fmt.Sprint(text, i)
		j := genjob.New(seed, sizes...)
		if n == 200 && text == "inquest genjob" && i%67 == 66 && os.Getenv("INQUEST_RANKS") == "" {
			j = genjob.New(seed, 1024)
		}
		if j.Truth.Decidable {
			decidable++
		}
		why[fmt.Sprint(j.Truth.Decidable, ": ", j.Truth.Why)]++
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			dir := job(t, j.Files)
			if keep := os.Getenv("INQUEST_KEEP"); keep != "" {
				dir = keep + "/" + fmt.Sprint(i)
				writeJob(t, dir, j.Files)
			}
			if problem := judge(diagnose(t, dir), &j.Truth, dir); problem != "" {
				t.Errorf("seed %q: %d ranks, %s of rank %d then %q, decidable %v (%s): %s", seed, j.Truth.Ranks, j.Truth.Class, j.Truth.Rank, j.Truth.Second, j.Truth.Decidable, j.Truth.Why, problem)
			}
		})
	}
	t.Logf("%d of %d jobs are decidable", decidable, n)
	for _, w := range slices.Sorted(maps.Keys(why)) {
		t.Logf("%4d %s", why[w], w)
	}
}

// judge compares a verdict with the truth; "" if it is right.
func judge(inc *incident.Incident, truth *genjob.Truth, dir string) string {
	f := inc.FirstFault
	open := f == nil || inc.FirstFaultStanding == incident.Undecidable
	where := "nothing"
	if f != nil {
		where = fmt.Sprintf("%s of rank %d, %s, %s", f.Kind, rank(inc), inc.FirstFaultStanding, inc.FirstFaultBasis)
		if f.Span != nil {
			where += fmt.Sprintf(" at %s:%d", f.Span.Artifact, f.Span.Line)
		}
	}
	switch {
	case truth.Either && open:
		return ""
	case !truth.Decidable && truth.Either: // then it must be right
	case !truth.Decidable && open:
		return ""
	case !truth.Decidable:
		return "certain: " + where
	case open:
		return "left open: " + where
	}
	switch {
	case rank(inc) != truth.Rank:
		return "wrong rank: " + where
	case truth.Lines != nil && f.Span == nil:
		return "no line: " + where
	case truth.Lines != nil:
		if !slices.ContainsFunc(truth.Lines, func(p genjob.Place) bool {
			return f.Span.Line == int64(p.Line) && f.Span.Artifact == dir+"/"+p.File
		}) {
			return fmt.Sprintf("wrong line: %s, want %v", where, truth.Lines[:min(len(truth.Lines), 3)])
		}
	}
	return ""
}
