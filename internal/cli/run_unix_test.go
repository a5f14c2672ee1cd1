//go:build unix

package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/incident"
)

// The test binary is inquest, too: TestMain puts it into PATH under that name.

// wrapped is a command that runs argv below inquest run, with a store of its own. It has no
// terminal, whatever the tests have.
func wrapped(t *testing.T, store string, argv ...string) *exec.Cmd {
	c := exec.Command("inquest", append([]string{"run", "--store", store, "--sample", "0"}, argv...)...)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return c
}

// statusOf runs argv as a shell does and returns the status that the shell sees.
func statusOf(t *testing.T, dir string, argv ...string) string {
	t.Helper()
	c := exec.Command("sh", append([]string{"-c", `ulimit -c 0; "$@" 2>/dev/null; echo $?`, "sh"}, argv...)...)
	c.Dir = dir
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%q: %v", argv, err)
	}
	lines := strings.Fields(string(out))
	return lines[len(lines)-1]
}

// notCommands makes files that cannot be run, each in its way, and returns their folder.
func notCommands(t *testing.T) string {
	dir := t.TempDir()
	for name, f := range map[string]struct {
		text string
		mode os.FileMode
	}{
		"plain":  {"echo no\n", 0o644},
		"binary": {"\x7fELF\x00\x00no program\n", 0o755},
		"badint": {"#!/no/such/interpreter\n", 0o755},
		"script": {"exit 5\n", 0o755}, // no interpreter named: a shell runs it
		"empty":  {"", 0o755},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(f.text), f.mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The status is what the shell would have seen.
func TestRunStatus(t *testing.T) {
	dir, store := notCommands(t), t.TempDir()
	var commands [][]string
	for _, n := range []int{0, 1, 2, 77, 126, 127, 130, 255} {
		commands = append(commands, []string{"sh", "-c", fmt.Sprintf("exit %d", n)})
	}
	for _, s := range strings.Fields("HUP INT QUIT ABRT KILL SEGV PIPE TERM BUS USR1 ALRM") {
		commands = append(commands, []string{"sh", "-c", "kill -" + s + " $$"})
	}
	for _, name := range strings.Fields("./plain ./binary ./badint ./script ./empty ./folder ./absent absent-command ./plain/below /no/such/folder/command") {
		commands = append(commands, []string{name})
	}
	commands = append(commands, []string{"./" + strings.Repeat("long", 100)}, []string{""}, []string{"true", "--sample"}, []string{"false"})
	for _, argv := range commands {
		want := statusOf(t, dir, argv...)
		for _, flags := range [][]string{nil, {"--"}} {
			got := statusOf(t, dir, append(append([]string{"inquest", "run", "--no-diagnose", "--sample", "0", "--store", store}, flags...), argv...)...)
			if got != want {
				t.Errorf("%q: status %s, want %s", argv, got, want)
			}
		}
	}
}

// kept are the trials in a store, each with its records.
func kept(t *testing.T, store string) (folders []string) {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join(store, "trials", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return folders
}

// records are those of one kind of the trial in folder.
func records(t *testing.T, folder, kind string) (list []incident.Record) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, "record.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(line, "\t")
		var r incident.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if r.Kind == kind {
			list = append(list, r)
		}
	}
	return list
}

// A command that does not start leaves a log that says so, each time.
func TestRunFailedStarts(t *testing.T) {
	dir, store := notCommands(t), t.TempDir()
	names := strings.Fields("./plain ./binary ./badint ./folder ./absent absent-command ./plain/below")
	const starts = 20
	for n := range starts {
		name := names[n%len(names)]
		c := wrapped(t, store, name)
		c.Dir = dir
		var told bytes.Buffer
		c.Stderr = &told
		if err := c.Run(); err == nil {
			t.Errorf("%s: it succeeded", name)
		}
		if !strings.HasPrefix(told.String(), "inquest: "+name+" did not start: ") {
			t.Errorf("%s: told %q", name, told.String())
		}
	}
	folders := kept(t, store)
	if len(folders) != starts {
		t.Fatalf("%d trials, want %d", len(folders), starts)
	}
	for _, folder := range folders {
		log, err := os.ReadFile(filepath.Join(folder, "output.log"))
		if err != nil || !strings.Contains(string(log), " did not start: ") {
			t.Errorf("%s: log %q, %v", folder, log, err)
		}
		if e := records(t, folder, incident.RecordEnded); len(e) != 1 || e[0].Ended.Exit.Error == "" {
			t.Errorf("%s: ended %+v", folder, e)
		}
	}
}

// What this process is sent the command gets, and only its end ends this process.
func TestRunForwards(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGWINCH} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			c := wrapped(t, t.TempDir(), "--no-diagnose", "sh", "-c", fmt.Sprintf(`trap 'echo got; exit 9' %d; echo ready; while :; do sleep 0.02; done`, sig))
			out, err := c.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			head := make([]byte, len("ready\n"))
			if _, err := io.ReadFull(out, head); err != nil {
				t.Fatal(err)
			}
			c.Process.Signal(sig)
			rest, _ := io.ReadAll(out)
			c.Wait()
			if got := c.ProcessState.ExitCode(); got != 9 || string(rest) != "got\n" {
				t.Errorf("status %d, printed %q", got, rest)
			}
		})
	}
}

// A signal that was ignored before stays ignored, as nohup has it.
func TestRunIgnored(t *testing.T) {
	c := exec.Command("sh", "-c", `trap '' HUP; exec inquest run --no-diagnose --store "$1" sh -c 'kill -HUP $$; echo alive'`, "sh", t.TempDir())
	out, err := c.Output()
	if err != nil || string(out) != "alive\n" {
		t.Errorf("printed %q, %v", out, err)
	}
}

// Output passes byte for byte, standard error apart, and the log has both.
func TestRunOutput(t *testing.T) {
	dir, store := t.TempDir(), t.TempDir()
	random := rand.NewChaCha8([32]byte{7})
	write := func(name string, size int64) []byte {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		sum := sha256.New()
		if _, err := io.CopyN(io.MultiWriter(f, sum), random, size); err != nil {
			t.Fatal(err)
		}
		return sum.Sum(nil)
	}
	const first, second = 64 << 20, 3<<20 + 7
	wantOut, wantErr := write("out", first), write("err", second)
	sumOut, sumErr := sha256.New(), sha256.New()
	for _, script := range []string{"cat out", "cat err >&2"} {
		c := wrapped(t, store, "sh", "-c", script)
		c.Dir = dir
		c.Stdout, c.Stderr = sumOut, sumErr
		if err := c.Run(); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(sumOut.Sum(nil), wantOut) || !bytes.Equal(sumErr.Sum(nil), wantErr) {
		t.Error("the output changed")
	}
	for _, folder := range kept(t, store) {
		log, err := os.ReadFile(filepath.Join(folder, "output.log"))
		if err != nil {
			t.Fatal(err)
		}
		want := wantOut
		if len(log) == second {
			want = wantErr
		}
		if sum := sha256.Sum256(log); !bytes.Equal(sum[:], want) {
			t.Errorf("the log differs, %d bytes", len(log))
		}
	}
}

// Where both outputs go to one place their order is kept.
func TestRunOrder(t *testing.T) {
	script := `i=0; while [ $i -lt 300 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done`
	out, err := exec.Command("sh", "-c", script+" 2>&1").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	store := t.TempDir()
	got, err := wrapped(t, store, "sh", "-c", script).CombinedOutput()
	if err != nil || !bytes.Equal(got, out) {
		t.Errorf("the order changed, %v", err)
	}
	if log, err := os.ReadFile(filepath.Join(kept(t, store)[0], "output.log")); err != nil || !bytes.Equal(log, out) {
		t.Errorf("the order in the log changed, %v", err)
	}
}

func TestRunInput(t *testing.T) {
	c := wrapped(t, t.TempDir(), "cat")
	c.Stdin = strings.NewReader("one\ntwo")
	if out, err := c.Output(); err != nil || string(out) != "one\ntwo" {
		t.Errorf("printed %q, %v", out, err)
	}
}

// exitStatus is the status of an ended command as a shell has it.
func exitStatus(c *exec.Cmd) int {
	if w := c.ProcessState.Sys().(syscall.WaitStatus); w.Signaled() {
		return 128 + int(w.Signal())
	}
	return c.ProcessState.ExitCode()
}

// Where nobody reads, the command learns it from standard output and not from standard error.
func TestRunUnread(t *testing.T) {
	closed := func() *os.File {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		return w
	}
	for _, c := range []struct {
		name, script string
		out, err     func() *os.File
		want         int
	}{
		{"standard output", "while :; do echo x; done", closed, nil, 128 + int(syscall.SIGPIPE)},
		{"standard error", "i=0; while [ $i -lt 200 ]; do echo x >&2; i=$((i+1)); done; exit 7", nil, closed, 7},
	} {
		store := t.TempDir()
		cmd := wrapped(t, store, "sh", "-c", c.script)
		if c.out != nil {
			cmd.Stdout = c.out()
		}
		if c.err != nil {
			cmd.Stderr = c.err()
		}
		cmd.Run()
		if got := exitStatus(cmd); got != c.want {
			t.Errorf("%s closed: status %d, want %d", c.name, got, c.want)
		}
		if log, err := os.ReadFile(filepath.Join(kept(t, store)[0], "output.log")); err != nil || !strings.HasPrefix(string(log), "x\n") {
			t.Errorf("%s closed: log %.20q, %v", c.name, log, err)
		}
	}
}

// A full disk ends nothing, whoever writes to it.
func TestRunFull(t *testing.T) {
	script := `i=0; while [ $i -lt 40 ]; do printf %01000d 7; i=$((i+1)); done; exit 3`
	if full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0); err == nil {
		defer full.Close()
		store := t.TempDir()
		c := wrapped(t, store, "sh", "-c", script)
		c.Stdout, c.Stderr = full, full
		c.Run()
		if got := exitStatus(c); got != 3 {
			t.Errorf("output to a full disk: status %d", got)
		}
		if st, err := os.Stat(filepath.Join(kept(t, store)[0], "output.log")); err != nil || st.Size() != 40_000 {
			t.Errorf("output to a full disk: log of %v, %v", st.Size(), err)
		}
	}
	if full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0); err == nil {
		defer full.Close()
		c := wrapped(t, t.TempDir(), "echo", "x")
		var told bytes.Buffer
		c.Stdout, c.Stderr = full, &told
		c.Run()
		if !strings.Contains(told.String(), "2 bytes of what was printed did not reach standard output") {
			t.Errorf("what is lost is told: %q", told.String())
		}
	}
	// No file grows past 4 KiB or so: neither the log nor the record of the trial.
	c := exec.Command("sh", "-c", `ulimit -f 8; exec inquest run --sample 0 --store "$1" sh -c "$2"`, "sh", t.TempDir(), script)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var out, told bytes.Buffer
	c.Stdout, c.Stderr = &out, &told
	c.Run()
	if got := exitStatus(c); got != 3 || out.Len() != 40_000 {
		t.Errorf("log on a full disk: status %d, %d bytes printed; told %s", got, out.Len(), told.String())
	}
}

// A store that cannot be written is said in one line, and the output is kept elsewhere.
func TestRunWithoutStore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tmp := t.TempDir()
	c := wrapped(t, filepath.Join(file, "store"), "sh", "-c", "echo hello")
	c.Env = append(os.Environ(), "TMPDIR="+tmp)
	var out, told bytes.Buffer
	c.Stdout, c.Stderr = &out, &told
	if err := c.Run(); err != nil || out.String() != "hello\n" {
		t.Errorf("printed %q, %v", out.String(), err)
	}
	if strings.Count(told.String(), "\n") != 1 || !strings.Contains(told.String(), "could not be kept") {
		t.Errorf("told %q", told.String())
	}
	logs, _ := filepath.Glob(filepath.Join(tmp, "inquest-*.log"))
	if len(logs) != 1 {
		t.Fatalf("logs %q", logs)
	}
	if log, err := os.ReadFile(logs[0]); err != nil || string(log) != "hello\n" {
		t.Errorf("log %q, %v", log, err)
	}
	c = wrapped(t, filepath.Join(file, "store"), "sh", "-c", "exit 4")
	c.Env = append(os.Environ(), "TMPDIR=/no/such/folder")
	c.Run()
	if got := exitStatus(c); got != 4 {
		t.Errorf("nothing can be kept: status %d", got)
	}
}

// A process that outlives the command and holds its output does not hold this program.
func TestRunSurvivor(t *testing.T) {
	store := t.TempDir()
	c := wrapped(t, store, "sh", "-c", "sleep 60 & echo $!; exit 6")
	var out bytes.Buffer
	c.Stdout = &out
	done := make(chan error, 1)
	go func() { done <- c.Run() }()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("still waiting")
	}
	var pid int
	if _, err := fmt.Sscan(out.String(), &pid); err == nil {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	if got := exitStatus(c); got != 6 {
		t.Errorf("status %d", got)
	}
	e := records(t, kept(t, store)[0], incident.RecordEnded)
	if len(e) != 1 || !strings.Contains(strings.Join(e[0].Ended.Problems, "\n"), "holds standard output open") {
		t.Errorf("ended %+v", e)
	}
}

// A failure is diagnosed on standard error, and is one line where many ranks tell it.
func TestRunTold(t *testing.T) {
	script := `echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.10 GiB is free.' >&2; exit 1`
	store := t.TempDir()
	run := func(env ...string) (out, told string) {
		c := wrapped(t, store, "sh", "-c", script)
		c.Env = append(os.Environ(), env...)
		var o, e bytes.Buffer
		c.Stdout, c.Stderr = &o, &e
		var exit *exec.ExitError
		if err := c.Run(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
			t.Errorf("%v", err)
		}
		return o.String(), e.String()
	}
	out, told := run()
	if out != "" {
		t.Errorf("standard output %q", out)
	}
	for _, want := range []string{"inquest: sh ended with status 1 after ", "\nFirst  ", "  trial     t", "  log       " + store} {
		if !strings.Contains(told, want) {
			t.Errorf("told %s, without %q", told, want)
		}
	}
	term := filepath.Join(t.TempDir(), "termination")
	_, told = run("RANK=3", "WORLD_SIZE=8", "LOCAL_RANK=3", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29500", "TORCHELASTIC_RUN_ID=r", "TORCHELASTIC_RESTART_COUNT=0")
	own := strings.Split(strings.TrimSpace(told), "\n")[1:]
	if len(own) != 1 || !strings.HasPrefix(own[0], "inquest: rank 3: sh ended with status 1; ") {
		t.Errorf("a rank of several told %q", own)
	}
	c := wrapped(t, store, "--termination-log", term, "sh", "-c", script)
	c.Run()
	if text, err := os.ReadFile(term); err != nil || len(text) > 4096 || !strings.HasPrefix(string(text), "ended with status 1 (inquest trial ") || !strings.Contains(string(text), "\nFirst     ") {
		t.Errorf("termination message %q, %v", text, err)
	}
	c = wrapped(t, store, "--termination-log", term, "sh", "-c", `printf mine > "$0"; exit 1`, term)
	c.Run()
	if text, err := os.ReadFile(term); err != nil || string(text) != "mine" && !strings.HasPrefix(string(text), "mine") {
		t.Errorf("the command's own termination message became %q, %v", text, err)
	}
}
