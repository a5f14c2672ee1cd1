package engine_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/incident"
)

// oomTail is the end of a run that ran out of memory.
const oomTail = `Traceback (most recent call last):
  File "/app/pretrain.py", line 61, in main
    loss = model(batch)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 47.50 GiB of which 1.25 GiB is free.
`

// texts are all strings of an incident.
func texts(t *testing.T, inc *incident.Incident) []string {
	t.Helper()
	var v any
	if err := json.Unmarshal(encode(t, inc), &v); err != nil {
		t.Fatal(err)
	}
	var out []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			out = append(out, v)
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for k, x := range v {
				out = append(out, k)
				walk(x)
			}
		}
	}
	walk(v)
	return out
}

// printable checks that no text of the incident can act on a terminal, and that
// none is long.
func printable(t *testing.T, inc *incident.Incident) {
	t.Helper()
	for _, s := range texts(t, inc) {
		if !utf8.ValidString(s) {
			t.Errorf("not UTF-8: %.100q", s)
		}
		if len(s) > 64<<10 {
			t.Errorf("a text of %d bytes: %.100q", len(s), s)
		}
		for _, r := range s {
			if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
				t.Errorf("control character %q in %.200q", r, s)
				break
			}
		}
	}
}

// states reports whether a limit of the incident, or the note of an artifact,
// says what was not read.
func states(inc *incident.Incident, word string) bool {
	for _, l := range inc.Limits {
		if strings.Contains(l.Text, word) {
			return true
		}
	}
	for _, a := range inc.Artifacts {
		if strings.Contains(a.Note, word) {
			return true
		}
	}
	return false
}

func TestOneLongLine(t *testing.T) {
	if testing.Short() {
		t.Skip("48 MiB")
	}
	text := "step 1 loss 2.5\n" + strings.Repeat("x", 48<<20) + " CUDA out of memory\n" + oomTail
	inc := log(t, text)
	printable(t, inc)
	if inc.FirstFault == nil || inc.FirstFault.Kind != "device_oom" {
		t.Errorf("first fault is %+v", inc.FirstFault)
	}
	if n := len(encode(t, inc)); n > 1<<20 {
		t.Errorf("the incident has %d bytes", n)
	}
}

func TestEscapesAndMarkup(t *testing.T) {
	for name, evil := range map[string]string{
		"colours":       "\x1b[31;1m%s\x1b[0m",
		"title":         "\x1b]0;rm -rf\x07%s",
		"clear":         "\x1b[2J\x1b[H%s\x1bc",
		"back space":    "%s\b\b\b\b\b\b",
		"right to left": "\u202e%s\u202c",
		"markup":        "<script>alert(1)</script>%s<img src=x onerror=alert(1)>",
		"invalid UTF-8": "\x80\xff\xfe%s\xc3",
		"zero bytes":    "a\x00b%s",
		"C1 controls":   "\u009b31m%s",
		"template":      "{oom.requested}%s{{.}}",
		"fields":        "%%s%%d%s",
	} {
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf(evil+"\n", "step 1 loss 2.5") + strings.Replace(oomTail, "loss = model(batch)", fmt.Sprintf(evil, "loss = model(batch)"), 1)
			text += fmt.Sprintf(evil+"\n", "RuntimeError: after it")
			inc := log(t, text)
			printable(t, inc)
			if inc.FirstFault == nil || inc.FirstFault.Kind != "device_oom" {
				t.Errorf("first fault is %+v", inc.FirstFault)
			}
		})
	}
}

func TestHostileNames(t *testing.T) {
	inc := diagnose(t, job(t, map[string]string{"rank_0\x1b[31m.log": oomTail, "rank_1\n<b>.log": "step 1 loss 2.5\n"}))
	printable(t, inc)
	if inc.FirstFault == nil {
		t.Error("no first fault")
	}
}

func TestNothingToRead(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"empty folder": {}, "empty file": {"a.log": ""}, "no log": {"a.bin": "\x00\x01\x02\x03", "b.py": "print(1)\n"}, "blank lines": {"a.log": "\n\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			inc, err := engine.Diagnose(context.Background(), options(t, job(t, files)))
			if err != nil {
				if err.Error() == "" {
					t.Error("an error without words")
				}
				return
			}
			if inc.FirstFault != nil || inc.Outcome != incident.Unclear {
				t.Errorf("outcome %s, first fault %+v", inc.Outcome, inc.FirstFault)
			}
		})
	}
	if _, err := engine.Diagnose(context.Background(), options(t, filepath.Join(t.TempDir(), "none.log"))); err == nil {
		t.Error("a path that does not exist gave no error")
	}
}

func TestBrokenArchives(t *testing.T) {
	var z bytes.Buffer
	w := zip.NewWriter(&z)
	f, err := w.Create("rank_0.log")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte(strings.Repeat("step 1 loss 2.5\n", 1000) + oomTail)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	whole := z.String()
	flipped := []byte(whole)
	flipped[40] ^= 0xff
	for name, data := range map[string]string{"whole.zip": whole, "cut.zip": whole[:len(whole)/2], "flipped.zip": string(flipped), "none.tar.gz": "no archive", "none.zst": "\x28\xb5\x2f\xfd\xff\xff"} {
		t.Run(name, func(t *testing.T) {
			dir := job(t, map[string]string{name: data, "train.log": "step 1 loss 2.5\nstep 2 loss 2.4\n"})
			inc := diagnose(t, dir)
			printable(t, inc)
			if name == "whole.zip" && (inc.FirstFault == nil || !strings.Contains(inc.FirstFault.Span.Artifact, "!")) {
				t.Errorf("first fault is %+v", inc.FirstFault)
			}
			if name != "whole.zip" && inc.FirstFault == nil && len(inc.Limits)+len(inc.PassedOver) == 0 {
				t.Error("what could not be read is not stated")
			}
		})
	}
}

// TestBomb: a small file that unpacks to very much is stopped, and the report
// says so.
func TestBomb(t *testing.T) {
	if testing.Short() {
		t.Skip("unpacks 64 MiB")
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(w, "step 1 loss 2.5")
	zeros := bytes.Repeat([]byte("a"), 1<<20)
	for range 80 {
		if _, err := w.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	inc := diagnose(t, job(t, map[string]string{"train.log.gz": b.String()}))
	if !states(inc, "times") && !states(inc, "limit") && !states(inc, "bytes") {
		t.Errorf("limits %+v, artifacts %+v", inc.Limits, inc.Artifacts)
	}
	if inc.Artifacts[0].Fate != "over limit" && inc.Artifacts[0].Fate != "partly read" {
		t.Errorf("fate is %q", inc.Artifacts[0].Fate)
	}
}

// TestFlood: the time that a diagnosis takes grows with the number of faults, not
// with its square.
func TestFlood(t *testing.T) {
	if testing.Short() {
		t.Skip("forty thousand faults")
	}
	var exceptions, kernel strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&exceptions, "Traceback (most recent call last):\n  File \"serve.py\", line %d, in f\n    g()\nValueError: request %d is malformed\n", i%900+1, i)
		fmt.Fprintf(&kernel, "[%d.%06d] NVRM: Xid (PCI:0000:41:00): 31, pid=%d, name=python, Ch 00000008, intr 10000000. MMU Fault\n", 1000+i, i, 2000+i)
	}
	inc := diagnose(t, job(t, map[string]string{"train.log": exceptions.String(), "dmesg.txt": kernel.String()}))
	if inc.FirstFault == nil || inc.FirstFault.Kind != "exception" || inc.FirstFault.Span.Line != 4 {
		t.Errorf("first fault is %+v", inc.FirstFault)
	}
	if n := len(encode(t, inc)); n > 1<<20 {
		t.Errorf("the incident has %d bytes", n)
	}
}

// TestFloodPairs: what is held against everything else of its kind stays within
// bounds (each of these took from ten seconds to minutes), and the verdict is that
// of a log without the flood.
func TestFloodPairs(t *testing.T) {
	if testing.Short() {
		t.Skip("tens of thousands of events")
	}
	repeat := func(n int, line func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(line(i))
		}
		return b.String()
	}
	for _, c := range []struct {
		name  string
		files map[string]string
		kind  string // of the first fault
		limit string // what the incident says of the bound, if anything
	}{
		{"memory reports beside many series", map[string]string{"train.log": repeat(20000, func(i int) string {
			s := fmt.Sprintf("[rank%d]: step %d loss: %.4f grad_norm: 1.5 lr: 1e-4\n", i%64, i/64, 5-float64(i)*1e-4)
			if i%8 == 0 {
				s += fmt.Sprintf("[rank%d]: | Allocated memory      |  %d MiB |  %d MiB |   9 GiB |   8 GiB |\n", i%64, 22000+i, 22000+i)
			}
			return s
		}) + oomTail}, "device_oom", ""},
		{"errors and signals of many ranks", map[string]string{"train.log": repeat(12000, func(i int) string {
			if i < 6000 {
				return fmt.Sprintf("[rank%d]: 2026-03-01 10:00:00 RuntimeError: CUDA error: an illegal memory access was encountered\n", i)
			}
			return fmt.Sprintf("[rank%d]: 2026-03-01 10:00:00,%03d received SIGTERM\n", i-6000, i%1000)
		})}, "cuda_fault", ""},
		{"undated records beside many launches", map[string]string{
			"train.log": repeat(4000, func(i int) string { return "+ torchrun --nproc_per_node 8 train.py --lr 1e-4\nstep 1 loss 2.5\n" }) + oomTail,
			"dmesg.txt": repeat(4000, func(i int) string {
				return fmt.Sprintf("[%d.000100] NVRM: Xid (PCI:0000:%02x:00): 31, pid=%d, name=python, Ch %08x\n", 1000+i*7200, i%250+1, 2000+i, i)
			}),
		}, "device_oom", "No time says to which of 4000 launches"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inc := diagnose(t, job(t, c.files))
			if inc.FirstFault == nil || inc.FirstFault.Kind != c.kind {
				t.Errorf("first fault is %+v, want %s", inc.FirstFault, c.kind)
			}
			if c.limit != "" && !states(inc, c.limit) {
				t.Errorf("no limit says %q", c.limit)
			}
		})
	}
}

// TestCancel: a diagnosis that is no longer wanted ends with the context's error.
func TestCancel(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := engine.Diagnose(ctx, options(t, job(t, map[string]string{"train.log": oomTail}))); err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Errorf("error is %v", err)
	}
}

func TestUnreadableFile(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("the superuser reads everything")
	}
	dir := job(t, map[string]string{"rank_0.log": oomTail, "rank_1.log": oomTail})
	if err := os.Chmod(filepath.Join(dir, "rank_1.log"), 0); err != nil {
		t.Fatal(err)
	}
	inc := diagnose(t, dir)
	if inc.FirstFault == nil || !states(inc, "rank_1.log") && !states(inc, "permission") {
		t.Errorf("first fault %+v, limits %+v", inc.FirstFault, inc.Limits)
	}
}

// TestSecrets: what looks like a credential is in no text of the incident, the
// command that verifies it and what a baseline states included.
func TestSecrets(t *testing.T) {
	const secret = "hf_aBcDeFgHiJkLmNoPqRsTuVwXyZ012345"
	text := "+ HF_TOKEN=" + secret + " torchrun train.py --hub_token " + secret + "\nstep 1 loss 2.5\n" + strings.Replace(oomTail, "model(batch)", "model(batch, '"+secret+"')", 1)
	dir := job(t, map[string]string{"train.log": text, "good/train.log": strings.Replace(text, "train.py", "other.py", 1)})
	o := options(t, filepath.Join(dir, "train.log"))
	o.Baseline = []string{filepath.Join(dir, "good")}
	inc, err := engine.Diagnose(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if inc.FirstFault == nil || inc.Baseline == nil {
		t.Errorf("first fault %+v, baseline %+v", inc.FirstFault, inc.Baseline)
	}
	for _, s := range texts(t, inc) {
		if strings.Contains(s, secret) {
			t.Errorf("the secret is in %q", s)
		}
	}
	// Where a quote ends, half a password is one too.
	const pass = "SuperSecretPasswordThatIsLongEnough12345"
	line := "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
	for _, at := range []int{360, 380, 395, 1570, 1590, 4060} {
		text := "step 1 loss 2.5\n" + line + strings.Repeat("x", at-len(line)) + " https://bob:" + pass + "@host\n"
		inc, err := engine.Diagnose(context.Background(), options(t, job(t, map[string]string{"train.log": text})))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range texts(t, inc) {
			if strings.Contains(s, pass[:6]) {
				t.Errorf("at %d: part of the password is in %q", at, s)
			}
		}
	}
}
