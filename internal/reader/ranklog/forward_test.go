package ranklog_test

import (
	"context"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader/ranklog"
	"github.com/inquest-dev/inquest/internal/reader/readertest"
)

// TestForwardStack reads where anomaly mode says that the operation was called.
func TestForwardStack(t *testing.T) {
	anomaly := evidence.Plan{Wordings: []evidence.Wording{{ID: "t/anomaly", Kind: evidence.NonfiniteNamed, Literal: "returned nan values in its", Exception: true,
		Attrs: evidence.Attrs{"what": evidence.TextOf("anomaly-mode")}}}}
	const start = "seed 7\nepoch 0\nepoch 1\n"
	const warning = `graph.py:829: UserWarning: Error detected in AcosBackward0. Traceback of forward call that caused the error:
  File "/home/ana/pose/fit.py", line 140, in <module>
    main()
  File "/home/ana/pose/geometry.py", line 58, in angle
    return torch.acos((a * b).sum(-1))
 (Triggered internally at /pytorch/torch/csrc/autograd/python_anomaly_mode.cpp:122.)
  return Variable._execution_engine.run_backward(  # Calls into the C++ engine
`
	const failure = `Traceback (most recent call last):
  File "/home/ana/pose/fit.py", line 151, in <module>
    loss.backward()
RuntimeError: Function 'AcosBackward0' returned nan values in its 0th output.
`
	for _, tt := range []struct{ name, text, function, source string }{
		{"warning above", warning + failure, "angle", "return torch.acos((a * b).sum(-1))"},
		{"no warning", failure, "<module>", "loss.backward()"},
		{"another stack long before", warning + strings.Repeat("resumed\n", 30) + failure, "<module>", "loss.backward()"},
		{"warning of another rank", strings.TrimSuffix("[rank1]: "+strings.ReplaceAll(warning, "\n", "\n[rank1]: "), "[rank1]: ") + failure, "<module>", "loss.backward()"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := readertest.Read(context.Background(), ranklog.New(anomaly), nil, "job.log", []byte(start+tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if len(c.Events) != 1 || len(c.Events[0].Stack) == 0 {
				t.Fatalf("%s", brief(c))
			}
			last := c.Events[0].Stack[len(c.Events[0].Stack)-1]
			if last.Function != tt.function || last.Source != tt.source {
				t.Errorf("innermost frame %+v, want %s: %s", last, tt.function, tt.source)
			}
		})
	}
}
