package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// sniff stands in for the readers: text with "log" in it is a rank log, maybe;
// two magics are certain.
func sniff(a evidence.Artifact, head []byte) (string, int) {
	switch {
	case bytes.HasPrefix(head, []byte("MAGIC\x00")):
		return "magic", 90
	case bytes.Contains(head, []byte("#strong")):
		return "ranklog", 60
	case bytes.Contains(head, []byte("log line")):
		return "ranklog", 10
	}
	return "", 0
}

// tree writes files under a new folder; a name that ends in / is a folder.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		write(t, dir, name, text)
	}
	return dir
}

func write(t testing.TB, dir, name, text string) {
	t.Helper()
	full := filepath.Join(dir, name)
	if strings.HasSuffix(name, "/") {
		if err := os.MkdirAll(full, 0o755); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func walk(t testing.TB, o Options, paths ...string) *Result {
	t.Helper()
	if o.Sniff == nil {
		o.Sniff = sniff
	}
	r, err := look(context.Background(), paths, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// show prints a result without dir, one line for each thing.
func show(r *Result, dir string) string {
	var b strings.Builder
	for _, f := range r.Files {
		fmt.Fprintf(&b, "file %s", f.Path)
		if f.Kind != "" {
			fmt.Fprintf(&b, " %s", f.Kind)
		}
		if f.Fate != "" {
			fmt.Fprintf(&b, " [%s]", f.Fate)
		}
		if f.Note != "" {
			fmt.Fprintf(&b, " (%s)", f.Note)
		}
		b.WriteByte('\n')
	}
	for _, p := range r.PassedOver {
		fmt.Fprintf(&b, "passed %s: %d, %d bytes\n", p.What, p.Count, p.Bytes)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "problem %s: %v\n", p.Path, p.Err)
	}
	return strings.ReplaceAll(b.String(), filepath.ToSlash(dir), "R")
}

func check(t *testing.T, got, want string) {
	t.Helper()
	want = strings.TrimLeft(strings.ReplaceAll(want, "\t", ""), "\n")
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func read(t testing.TB, f File) (string, error) {
	t.Helper()
	rc, err := f.Open()
	if err != nil {
		return "", err
	}
	defer rc.Close()
	b, err := io.ReadAll(rc)
	return string(b), err
}

func TestWalkFolder(t *testing.T) {
	dir := tree(t, map[string]string{
		"train.log":            "log line 1\n",
		"odd.name.xyz":         "log line of an unknown extension",
		"noext":                "a log line",
		"sub/deep/rank_3.log":  "log line",
		"sub/deep/rank_4.log":  "",
		"empty.txt":            "",
		"notes.md":             "log line in a document",
		"strong.py":            "#strong",
		"model.safetensors":    "log line",
		"blob":                 "\x00\x01\x02binary",
		"state.dat":            "MAGIC\x00\x00",
		"config.json":          "{}",
		"settings.yaml":        "name: log line",
		"attempt_0/1/err.json": "log line",
		"README":               "log line",
		".git/log":             "log line",
		"env/pyvenv.cfg":       "home = /usr",
		"env/lib/some.log":     "log line",
		"nothing/":             "",
		"__pycache__/x.pyc":    "x",
		"line\nend.log":        "log line",
		"bad\xffname.log":      "log line",
		"rtl\u202egol.log":     "log line",
		"with space é 名.log":   "log line",
		"checkpoint-7/opt.pt":  "xxxx",
		"checkpoint-7/opt2.pt": "xxxx",
	})
	r := walk(t, Options{}, dir)
	check(t, show(r, dir), `
	file "R/bad\xffname.log" ranklog
	file "R/line\nend.log" ranklog
	file "R/rtl\u202egol.log" ranklog
	file R/attempt_0/1/err.json ranklog
	file R/noext ranklog
	file R/odd.name.xyz ranklog
	file R/state.dat magic
	file R/sub/deep/rank_3.log ranklog
	file R/sub/deep/rank_4.log [read] (empty)
	file R/train.log ranklog
	file R/with space é 名.log ranklog
	passed .json, text not recognised: 1, 2 bytes
	passed .md: 1, 22 bytes
	passed .pt: 2, 8 bytes
	passed .py: 1, 7 bytes
	passed .safetensors: 1, 8 bytes
	passed .yaml, text not recognised: 1, 14 bytes
	passed Python environment: 1, 0 bytes
	passed empty file: 1, 0 bytes
	passed folder .git: 1, 0 bytes
	passed folder __pycache__: 1, 0 bytes
	passed no extension, binary: 1, 9 bytes
	passed readme: 1, 8 bytes
	`)
	f := r.Files[7]
	if text, err := read(t, f); err != nil || text != "log line" {
		t.Errorf("read: %q, %v", text, err)
	}
	at, closer, err := f.At()
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	b := make([]byte, 4)
	if _, err := at.ReadAt(b, 4); err != nil || string(b) != "line" {
		t.Errorf("at: %q, %v", b, err)
	}
	if f.Size != 8 || f.Owner.Rank != 3 || f.ModTime.IsZero() || string(f.Head) != "log line" {
		t.Errorf("file: %+v", f)
	}
}

func TestWalkNamed(t *testing.T) {
	dir := tree(t, map[string]string{
		"a.log":      "log line",
		"b.log":      "log line",
		"code.py":    "log line",
		"strong.py":  "#strong",
		"weights.pt": "\x00\x00",
		"none.txt":   "nothing",
		"empty.log":  "",
	})
	p := func(name string) string { return filepath.Join(dir, name) }
	for _, c := range []struct {
		name  string
		paths []string
		o     Options
		want  string
	}{
		{"files", []string{p("code.py"), p("strong.py"), p("weights.pt"), p("none.txt"), p("empty.log")}, Options{}, `
			file R/code.py [not recognised] (code, data or a document by its name)
			file R/empty.log [read] (empty)
			file R/none.txt [not recognised] (text that no reader knows)
			file R/strong.py ranklog
			file R/weights.pt [not recognised] (binary data that no reader knows)
			`},
		{"all", []string{dir}, Options{All: true}, `
			file R/a.log ranklog
			file R/b.log ranklog
			file R/none.txt
			passed .pt: 1, 2 bytes
			passed .py: 2, 15 bytes
			passed empty file: 1, 0 bytes
			`},
		{"twice", []string{p("a.log"), dir + "/./a.log", p("[ab].log"), p("a.log")}, Options{}, `
			file R/a.log ranklog
			file R/b.log ranklog
			`},
		{"folder and file in it", []string{dir, p("none.txt")}, Options{}, `
			file R/a.log ranklog
			file R/b.log ranklog
			file R/none.txt [not recognised] (text that no reader knows)
			passed .pt: 1, 2 bytes
			passed .py: 2, 15 bytes
			passed empty file: 1, 0 bytes
			`},
		{"one missing", []string{p("a.log"), p("missing.log"), p("*.none")}, Options{}, `
			file R/a.log ranklog
			problem R/*.none: nothing matches
			problem R/missing.log: no such file or directory
			`},
		{"limit", []string{dir}, Options{MaxFiles: 1}, `
			file R/a.log ranklog
			passed .pt: 1, 2 bytes
			passed .py: 2, 15 bytes
			passed .txt, text not recognised: 1, 7 bytes
			passed beyond the first 1 files: 1, 8 bytes
			passed empty file: 1, 0 bytes
			problem : over limit: more than 1 files to read; 1 were left out
			`},
	} {
		t.Run(c.name, func(t *testing.T) {
			check(t, show(walk(t, c.o, c.paths...), dir), c.want)
		})
	}
}

func TestWalkErrors(t *testing.T) {
	ctx := context.Background()
	if _, err := look(ctx, []string{"no/such/place", "no/*.log"}, Options{}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "no/such/place") || !strings.Contains(err.Error(), "no/*.log") {
		t.Errorf("missing: %v", err)
	}
	if _, err := look(ctx, nil, Options{}); err == nil {
		t.Error("no path: no error")
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := look(done, []string{t.TempDir()}, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	r := walk(t, Options{}, t.TempDir())
	if len(r.Files)+len(r.PassedOver)+len(r.Problems)+len(r.Jobs) != 0 {
		t.Errorf("empty folder: %+v", r)
	}
}

func TestWalkRelative(t *testing.T) {
	dir := tree(t, map[string]string{"job_5512/rank0.log": "log line"})
	t.Chdir(filepath.Join(dir, "job_5512"))
	for arg, want := range map[string]string{".": "rank0.log", "./rank0.log": "rank0.log", "../job_5512": "../job_5512/rank0.log"} {
		r := walk(t, Options{}, arg)
		if len(r.Files) != 1 || r.Files[0].Path != want || r.Files[0].Owner.Rank != 0 {
			t.Errorf("%s: %+v", arg, r.Files)
		}
	}
	if r := walk(t, Options{}, "."); r.Files[0].Owner.Job != "5512" {
		t.Errorf("job of the working folder: %+v", r.Files[0].Owner)
	}
}

func TestUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	dir := tree(t, map[string]string{"a.log": "log line", "b.log": "log line", "sub/c.log": "log line"})
	os.Chmod(filepath.Join(dir, "a.log"), 0)
	os.Chmod(filepath.Join(dir, "sub"), 0)
	defer os.Chmod(filepath.Join(dir, "sub"), 0o755)
	check(t, show(walk(t, Options{}, dir), dir), `
	file R/a.log [unreadable] (permission denied)
	file R/b.log ranklog
	problem R/a.log: permission denied
	problem R/sub: permission denied
	`)
}

func TestVanished(t *testing.T) {
	dir := tree(t, map[string]string{"a.log": "log line"})
	w := &walker{o: Options{Sniff: sniff}}
	l := &looker{walker: w, found: &found{}, head: make([]byte, headLen)}
	l.file(context.Background(), candidate{full: filepath.Join(dir, "gone.log"), path: "gone.log", place: "gone.log"})
	if len(l.files) != 1 || l.files[0].Fate != fateUnreadable || len(l.problems) != 1 {
		t.Errorf("%+v", l.found)
	}
}

func TestStdin(t *testing.T) {
	gz := compress(t, "gzip", []byte("log line\n"))
	for name, in := range map[string]io.Reader{
		"plain":      strings.NewReader("log line\n"),
		"compressed": bytes.NewReader(gz),
		"pipe":       io.MultiReader(strings.NewReader("log "), strings.NewReader("line\n")),
	} {
		r := walk(t, Options{Stdin: in}, "-", "-")
		if len(r.Files) != 1 || r.Files[0].Path != "-" || r.Files[0].Kind != "ranklog" {
			t.Fatalf("%s: %+v", name, r.Files)
		}
		for range 2 {
			if text, err := read(t, r.Files[0]); err != nil || text != "log line\n" {
				t.Errorf("%s: %q, %v", name, text, err)
			}
		}
	}
	dir := tree(t, map[string]string{"in": "log line\n"})
	f, err := os.Open(filepath.Join(dir, "in"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := walk(t, Options{Stdin: f}, "-")
	if r.spool.held != 0 || len(r.Files) != 1 || r.Files[0].Size != 9 || r.Files[0].At == nil {
		t.Errorf("a file as standard input: %+v", r.Files)
	}
	check(t, show(walk(t, Options{Stdin: strings.NewReader("")}, "-"), dir), `
	file - [read] (empty)
	`)
	check(t, show(walk(t, Options{}, "-"), dir), `
	problem -: standard input is not at hand
	`)
}

func TestOrderIsDeterministic(t *testing.T) {
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("d%d/rank_%d.log", i%7, i)] = "log line"
		files[fmt.Sprintf("d%d/x%d.bin", i%5, i)] = "\x00"
	}
	dir := tree(t, files)
	first := show(walk(t, Options{}, dir), dir)
	for range 3 {
		if again := show(walk(t, Options{}, dir), dir); again != first {
			t.Fatalf("differs:\n%s\n%s", first, again)
		}
	}
}

func TestDataSet(t *testing.T) {
	files := map[string]string{"slurm-1.out": "log line", "samples/strong.txt": "#strong", "samples/rank_0.txt": "log line", "notes": "log line"}
	for i := range manyAlike {
		files[fmt.Sprintf("samples/%d/%d.txt", i%10, i)] = "log line"
	}
	dir := tree(t, files)
	r := walk(t, Options{}, dir)
	check(t, show(r, dir), `
	file R/notes ranklog
	file R/samples/rank_0.txt ranklog
	file R/samples/strong.txt ranklog
	file R/slurm-1.out ranklog
	passed .txt files like a data set: 1000, 8000 bytes
	problem : over limit: 1000 .txt files look like a data set: no reader is sure of them and no name is a log's; name those to read one by one, or ask for all
	`)
	if r := walk(t, Options{All: true}, dir); len(r.Files) != manyAlike+4 {
		t.Errorf("all: %d files", len(r.Files))
	}
}

// BenchmarkForeignFolder walks 20 000 small files of a data set beside one log.
func BenchmarkForeignFolder(b *testing.B) {
	for _, ext := range []string{".jpg", ".txt"} {
		b.Run(ext, func(b *testing.B) {
			dir := tree(b, map[string]string{"slurm-1.out": "log line"})
			for i := range 20_000 {
				write(b, dir, fmt.Sprintf("data/%02d/%05d%s", i%100, i, ext), "a short text\n")
			}
			for b.Loop() {
				r := walk(b, Options{}, dir)
				if len(r.Files) != 1 {
					b.Fatal(r.Files)
				}
			}
		})
	}
}

func at(hour int) time.Time { return time.Date(2031, 5, 6, hour, 0, 0, 0, time.UTC) }

// look is Look and its Result at once.
func look(ctx context.Context, paths []string, o Options) (*Result, error) {
	s, err := Look(ctx, paths, o)
	if err != nil {
		return nil, err
	}
	return s.Result(o), nil
}
