package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/inquest-dev/inquest/internal/incident"
)

// verificationSamples are results of each kind, and one whose every text is hostile.
func verificationSamples() map[string]*incident.Trials {
	ended := "2026-12-01T10:00:02.5Z"
	step, limit, value := int64(12), int64(1<<30), 0.5
	sample := func(by, verdict, text string) *incident.Trials {
		x := text + " "
		trial := incident.Trial{Schema: incident.TrialSchema, ID: "t1" + text, By: by, Command: []string{"python", x + "train.py"}, Template: []string{"python"}, Values: map[string]string{}, Set: map[string]string{},
			Begun: "2026-12-01T10:00:00Z", Ended: &ended, Exit: &incident.Exit{Signal: text}, Samples: []incident.Sample{}, Problems: []string{},
			Measures: []incident.Measure{{Name: incident.Resident, Peak: 1 << 28, Limit: &limit, LimitBy: "cgroup", Basis: "samples"}}, Verdict: &incident.TrialVerdict{Result: incident.Passed, Text: x + "It ended."}}
		v := &incident.Verification{Verdict: verdict, Says: x + "2 of 2 runs passed.", Runs: 2, Passed: 2,
			Request: incident.VerificationRequest{Command: []string{"python", x + "train.py"}, Dir: "/w", Runs: 2, Metrics: []string{}, Evaluate: []string{}, Nearby: [][]string{{"a"}}, AllowWrites: []string{}},
			Failure: &incident.FailurePoint{Step: &step, Class: "host_memory", Says: x + "it failed at step 12"},
			Missing: []incident.VerificationMissing{{Check: incident.CheckPast, Fact: x + "the step", How: x + "print it"}},
			Memory:  []incident.MemoryTrend{{Trial: "t1", Name: incident.Resident, Per: "step", Points: 30, Shape: incident.ShapeGrows, Slope: 10, Limit: &limit, FitsTo: &value, Says: x + "memory grows"}},
			Curves:  []incident.VerifiedCurve{{Trial: "t1", Name: "loss", Count: 3, Last: &value, Trust: "raw"}},
			Checkpoints: []incident.Checkpoint{{Path: x + "model.pt", Format: incident.FormatTorchZip, Files: []incident.CheckpointFile{{Path: x}}, Tensors: 2, State: incident.No, Says: x + "broken",
				Nonfinite: []incident.NonfiniteTensor{{File: x, Name: x + "w", DType: "F32", Shape: []int64{2}, Elements: 2, NaN: 1, Role: incident.RoleWeight, Refuses: true}}, MoreNonfinite: 1,
				Problems: []string{x + "p"}, Unchecked: []string{x + "u"}, Notes: []string{x + "n"}}},
			Original: &incident.Comparison{Schema: incident.ComparisonSchema, A: trial, B: trial, Changes: []incident.Change{{Of: "command", Name: x, From: x, To: x, Text: x + "one → two", Parts: []incident.ChangePart{}}}, Expected: []incident.Change{}, Unknown: []string{}, Says: x + "one thing changed"}}
		for i, name := range []string{incident.CheckEnded, incident.CheckClean, incident.CheckPast, incident.CheckPeak, incident.CheckSlope, incident.CheckFinite, incident.CheckReference, incident.CheckMetric, incident.CheckCheckpoint, incident.CheckEvaluate, incident.CheckThroughput, incident.CheckNearby, incident.CheckEnough} {
			v.Checks = append(v.Checks, incident.VerificationCheck{Name: name, Of: text, State: []string{incident.Yes, incident.No, incident.Unknown}[i%3], Deciding: i%2 == 0, Says: x + "a sentence about " + name + ".",
				Figures: []incident.Figure{{Name: "slope", Value: &value, Unit: "bytes/step", Text: x + "10 bytes"}}, Trials: []string{"t1"}})
		}
		return &incident.Trials{Schema: incident.TrialsSchema, Tool: incident.Tool{Name: "inquest", Version: "1"}, ID: "v1", By: by, Template: v.Request.Command, Trials: []incident.Trial{trial, trial}, Verification: v, Limits: []string{x + "a limit"}, Stopped: text}
	}
	out := map[string]*incident.Trials{
		"verified": sample(incident.ByVerify, incident.Verified, ""), "refused": sample(incident.ByVerify, incident.NotVerified, ""), "open": sample(incident.ByVerify, incident.Inconclusive, ""),
		"recheck": sample(incident.ByRecheck, incident.NotVerified, ""), "hostile": sample(incident.ByVerify, incident.NotVerified, "\x1b[31m<script>alert(1)</script> | `x` @a \u202e\x00"),
	}
	alone := sample(incident.ByVerify, incident.NotVerified, "")
	alone.Template, alone.Trials, alone.Verification.Request.Command, alone.Verification.Original, alone.Verification.Failure = []string{}, []incident.Trial{}, []string{}, nil, nil
	alone.Verification.Memory, alone.Verification.Curves, alone.Verification.Runs, alone.Verification.Passed = []incident.MemoryTrend{}, []incident.VerifiedCurve{}, 0, 0
	out["checkpoint"] = alone
	return out
}

func verificationReport(t testing.TB, s *incident.Trials, format string, o Options) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	if err := WriteVerification(&b, format, s, o); err != nil {
		t.Fatal(err)
	}
	return &b
}

func TestVerificationReports(t *testing.T) {
	for name, s := range verificationSamples() {
		for _, width := range []int{40, 100, 200} {
			for _, full := range []bool{false, true} {
				text := verificationReport(t, s, "text", Options{Width: width, Full: full}).String()
				where := fmt.Sprintf("%s, width %d, full %v", name, width, full)
				lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
				if !full && len(lines) > 40 {
					t.Errorf("%s: %d lines", where, len(lines))
				}
				for _, l := range lines {
					if utf8.RuneCountInString(l) > width {
						t.Errorf("%s: %q is wider", where, l)
					}
				}
				if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
					t.Errorf("%s: a control character is left", where)
				}
				if !strings.HasPrefix(lines[0], "Result "+map[string]string{incident.Verified: "verified", incident.NotVerified: "NOT verified", incident.Inconclusive: "inconclusive"}[s.Verification.Verdict]) {
					t.Errorf("%s: begins with %q", where, lines[0])
				}
				if !Began([]byte(text)) {
					t.Errorf("%s: is not known as a report", where)
				}
			}
		}
		if page := verificationReport(t, s, "html", Options{}).String(); strings.Contains(page, "<script") || !Began([]byte(page)) {
			t.Errorf("%s: the page has a script, or is not known as a report", name)
		} else {
			checkMarkup(t, page, nil)
		}
		if md := verificationReport(t, s, "markdown", Options{}).String(); strings.Contains(md, "\x1b") || !strings.HasPrefix(md, "# ") || !Began([]byte(md)) {
			t.Errorf("%s: markdown begins with %.80q", name, md)
		}
	}
}
