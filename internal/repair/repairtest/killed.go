package repairtest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/repair"
)

// What a process that is started to be killed finds in its environment.
const (
	sourceVar = "INQUEST_REPAIRTEST_SOURCE"
	outVar    = "INQUEST_REPAIRTEST_OUT"
	limitVar  = "INQUEST_REPAIRTEST_LIMIT" // bytes that a file may have, "" for no limit
)

// moments are when a process is killed: how long after it has said a word. It says begin when it
// begins, and json and markdown when the copy is complete but for these files.
var moments = []struct {
	word  string
	after time.Duration
}{
	{"begin", 0}, {"begin", time.Millisecond}, {"begin", 3 * time.Millisecond}, {"begin", 9 * time.Millisecond}, {"begin", 27 * time.Millisecond},
	{"json", 0}, {"markdown", 0}, {"markdown", 5 * time.Millisecond}, {"markdown", 7 * time.Millisecond}, {"", 0},
}

// killed repairs in a process of its own, which is the test again: first to its end, then
// killed at several moments, then with a limit on the size of files, as on a full disk.
func killed(t *testing.T, r reader.Reader, f repair.Format, at string) {
	if source := os.Getenv(sourceVar); source != "" {
		os.Exit(child(r, f, source))
	}
	if testing.Short() {
		t.Skip("starts processes")
	}
	before := State(t, at)
	whole := filepath.Join(t.TempDir(), "copy")
	if err := process(t, at, whole, "", "", 0); err != nil {
		t.Fatalf("a repair in a process of its own: %v", err)
	}
	for _, m := range moments {
		to := t.TempDir()
		err := process(t, at, filepath.Join(to, "copy"), "", m.word, m.after)
		complete(t, to, whole, err == nil)
	}
	for _, limit := range []string{"0", "100"} {
		to := t.TempDir()
		err := process(t, at, filepath.Join(to, "copy"), limit, "", 0)
		if err == nil {
			if canLimit {
				t.Errorf("files may have %s bytes, and the repair came to its end", limit)
			}
			continue
		}
		if left, _ := os.ReadDir(to); len(left) > 0 {
			t.Errorf("on a full disk: %v is left", left)
		}
	}
	Unchanged(t, at, before)
}

// complete checks that a copy is there as a whole, or not at all.
func complete(t *testing.T, to, whole string, ended bool) {
	t.Helper()
	entries, err := os.ReadDir(to)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		switch {
		case e.Name() == "copy":
			same(t, whole, filepath.Join(to, "copy"))
		case !strings.HasPrefix(e.Name(), "copy.partial-"):
			t.Errorf("a killed repair left %s", e.Name())
		case ended:
			t.Errorf("a repair that came to its end left %s", e.Name())
		}
	}
}

// process runs the test again in a process that repairs, and kills it a while after it has
// said a word; "" lets it end. The error is that of a repair that did not come to its
// end.
func process(t *testing.T, source, out, limit, word string, after time.Duration) error {
	t.Helper()
	var run []string
	for _, part := range strings.Split(t.Name(), "/") {
		run = append(run, "^"+regexp.QuoteMeta(part)+"$")
	}
	cmd := exec.Command(os.Args[0], "-test.run="+strings.Join(run, "/"), "-test.count=1")
	cmd.Env = append(os.Environ(), sourceVar+"="+source, outVar+"="+out, limitVar+"="+limit,
		"TMPDIR="+t.TempDir()) // where a killed process leaves what it had aside
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for sc := bufio.NewScanner(said); sc.Scan(); {
		if line := strings.TrimSpace(sc.Text()); line == word {
			time.Sleep(after)
			cmd.Process.Kill()
		}
		text.WriteString(sc.Text() + "\n")
	}
	if !strings.Contains(text.String(), "begin\n") {
		t.Fatalf("the process did not begin: %s", text.String())
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, text.String())
	}
	return nil
}

// child repairs as the environment says, and returns the status of the process. It takes
// its time where the copy is complete and has no name yet.
func child(r reader.Reader, f repair.Format, source string) int {
	if n, err := strconv.ParseUint(os.Getenv(limitVar), 10, 64); err == nil {
		limitFiles(n)
	}
	fmt.Println("begin")
	_, err := Repair(context.Background(), r, f, source, os.Getenv(outVar), func(o *engine.RepairOptions) {
		o.Write = func(w io.Writer, format string, res *incident.Repair) error {
			fmt.Println(format)
			time.Sleep(5 * time.Millisecond)
			res.Output, res.Undo = "", ""
			return Write(w, format, res)
		}
	})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}
