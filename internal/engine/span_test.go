package engine_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// spans lists every span of an incident, wherever it stands.
func spans(t *testing.T, inc *incident.Incident) []evidence.Span {
	t.Helper()
	var v any
	if err := json.Unmarshal(encode(t, inc), &v); err != nil {
		t.Fatal(err)
	}
	var out []evidence.Span
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			_, a := v["artifact"]
			_, q := v["quote"]
			if a && q {
				b, err := json.Marshal(v)
				if err != nil {
					t.Fatal(err)
				}
				var sp evidence.Span
				if err := json.Unmarshal(b, &sp); err != nil {
					t.Fatal(err)
				}
				out = append(out, sp)
				return
			}
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(v)
	return out
}

var colours = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// squash keeps letters and digits: quotes are cleaned of what does not print.
func squash(s string) string {
	s = colours.ReplaceAllString(s, "")
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, s)
}

// TestSpans: what a span quotes stands at that line and offset of its artifact.
func TestSpans(t *testing.T) {
	inputs, _ := filepath.Glob(filepath.Join(root, "examples", "*"))
	cases, _ := filepath.Glob(filepath.Join(root, "..", "shared", "cases", "*", "*", "input"))
	for _, f := range faults {
		inputs = append(inputs, job(t, base(f).files()))
	}
	for _, in := range append(inputs, cases...) {
		if st, err := os.Stat(in); err != nil || !st.IsDir() {
			continue
		}
		files := map[string][]byte{}
		checked := 0
		for _, sp := range spans(t, diagnose(t, in)) {
			if sp.Kind != "text" || sp.Length == 0 {
				continue
			}
			data, ok := files[sp.Artifact]
			if !ok {
				data, _ = os.ReadFile(sp.Artifact)
				if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
					data = nil
				}
				files[sp.Artifact] = data
			}
			if data == nil {
				continue
			}
			checked++
			if problem := misplaced(sp, data); problem != "" {
				t.Errorf("%s: %s:%d: %s", in, filepath.Base(sp.Artifact), sp.Line, problem)
			}
		}
		if checked == 0 && len(files) > 0 {
			t.Logf("%s: nothing could be compared", in)
		}
	}
}

func misplaced(sp evidence.Span, data []byte) string {
	if sp.Offset < 0 || sp.Offset+sp.Length > int64(len(data)) {
		return fmt.Sprintf("%d bytes at %d of %d", sp.Length, sp.Offset, len(data))
	}
	if line := int64(bytes.Count(data[:sp.Offset], []byte("\n"))) + 1; line != sp.Line {
		return fmt.Sprintf("offset %d is in line %d", sp.Offset, line)
	}
	have, want := squash(string(data[sp.Offset:sp.Offset+sp.Length])), squash(strings.TrimSuffix(sp.Quote, "…"))
	if want == "" || strings.Contains(sp.Quote, "[masked]") {
		return ""
	}
	if !strings.Contains(have, want) {
		return fmt.Sprintf("quotes %.80q, where %.80q stands", sp.Quote, data[sp.Offset:sp.Offset+sp.Length])
	}
	return ""
}
