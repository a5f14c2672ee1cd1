package artifact

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
)

const report = "\n" + reportRule + `

Start of NVIDIA bug report log file.  Please include this file, along
with a detailed description of your problem.

nvidia-bug-report.sh Version: 12345678

Date: Wed Feb  3 04:05:06 UTC 2027
uname: Linux node-17 5.15.0-91-generic #101-Ubuntu SMP x86_64 GNU/Linux
command line flags:

` + reportRule + `

*** /etc/issue
*** ls: -rw-r--r-- 1 root root 26 2027-01-01 00:00:00 /etc/issue
Ubuntu 22.04 LTS

` + reportRule + `

/usr/bin/nvidia-smi --query


==============NVSMI LOG==============

Attached GPUs : 1
` + reportRule + `

/usr/bin/nvidia-smi --query

==============NVSMI LOG==============
` + reportRule + `

dmesg:

[ 10.5] NVRM: loading
[ 11.5] a line with ` + reportRule + ` in it

` + reportRule + `

/usr/bin/lsusb

Bus 001 Device 001
`

// sniffReport is sure of nvidia-smi -q, and takes every other text for a log.
func sniffReport(_ evidence.Artifact, head []byte) (string, int) {
	if strings.Contains(string(head), "=NVSMI LOG=") {
		return "smi", 90
	}
	return "log", 10
}

// members walks a file and returns what it holds, and what was passed over.
func members(t *testing.T, name string, data []byte, o Options) (out []string, passed int64) {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	o.Sniff = sniffReport
	r, err := look(context.Background(), []string{file}, o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i := range r.Files {
		f := &r.Files[i]
		rc, err := f.Open()
		if err != nil {
			out = append(out, fmt.Sprintf("%s: %v", f.Fate, err))
			continue
		}
		text, err := io.ReadAll(rc)
		rc.Close()
		_, base, _ := strings.Cut(f.Path, "!")
		first, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
		out = append(out, fmt.Sprintf("%s %s %s %q %v", base, f.Kind, f.Owner.Host, first, err))
	}
	for _, p := range r.PassedOver {
		if p.What == "section of an NVIDIA bug report" {
			passed = p.Count
		}
	}
	return out, passed
}

func TestBugReport(t *testing.T) {
	want := []string{
		`dmesg log node-17 "[ 10.5] NVRM: loading" <nil>`,
		`nvidia-smi --query smi node-17 "==============NVSMI LOG==============" <nil>`,
		`nvidia-smi --query#2 smi node-17 "==============NVSMI LOG==============" <nil>`,
	}
	windows := []byte(strings.ReplaceAll(report, "\n", "\r\n"))
	for i, data := range [][]byte{[]byte(report), compress(t, "gzip", []byte(report)), windows} {
		got, passed := members(t, "nvidia-bug-report.log", data, Options{})
		if i == 2 {
			for j := range got {
				got[j] = strings.ReplaceAll(got[j], `\r`, "")
			}
		}
		if !slices.Equal(got, want) || passed != 2 {
			t.Errorf("form %d: got %q and %d passed over, want %q and 2", i, got, passed, want)
		}
	}
}

// TestBugReportCut: of every beginning of a report the members before the cut are
// there, and none is empty.
func TestBugReportCut(t *testing.T) {
	for n := strings.Index(report, "_\n"); n < len(report); n += 7 {
		got, _ := members(t, "r.log", []byte(report[:n]), Options{})
		for _, m := range got {
			if strings.Contains(m, `""`) {
				t.Errorf("cut at %d: empty member in %q", n, got)
			}
		}
		if full := strings.Count(report[:n], "NVSMI LOG=============="); strings.Count(strings.Join(got, "\n"), "smi node-17") < full && full > 0 {
			t.Errorf("cut at %d: %q", n, got)
		}
	}
}

func TestBugReportLimit(t *testing.T) {
	got, _ := members(t, "r.log", compress(t, "gzip", []byte(report)), Options{MaxArchiveBytes: 400})
	if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, fateOverLimit) }) {
		t.Errorf("over the limit: %q", got)
	}
}

// FuzzBugReport: whatever the text is, its sections lie in it one after the other,
// and what is read of one is what stands there.
func FuzzBugReport(f *testing.F) {
	f.Add(report)
	f.Add(reportRule)
	f.Fuzz(func(t *testing.T, text string) {
		b := bufio.NewReader(strings.NewReader(text))
		off := int64(0)
		for n := 0; ; n++ {
			s := &reportSection{b: b, off: off}
			if err := s.title(); err != nil {
				t.Fatal(err)
			}
			start := s.off
			got, err := io.ReadAll(s)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) > 0 && string(got) != text[start:s.end] {
				t.Fatalf("section %d at %d reads %q", n, start, got)
			}
			if off = s.off; s.err != nil {
				break
			}
			if n > len(text) {
				t.Fatal("more sections than bytes")
			}
		}
		if off != int64(len(text)) {
			t.Fatalf("%d of %d bytes were read", off, len(text))
		}
	})
}
