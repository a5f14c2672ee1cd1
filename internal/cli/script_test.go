package cli

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){
		"inquest": func() { os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
		"trainer": trainer,
		"agent":   agent,
	})
}

// tests are those of this package, unless the binary stands for one of the commands.
type tests struct{ m *testing.M }

func (t tests) Run() int {
	heardSignals()
	return t.m.Run()
}

// TestScripts runs the command line as its users do. Beside testscript's own
// commands the scripts have:
//
//	status N CMD...      run CMD, which must exit with status N
//	json KEY VALUE       stdout is JSON, and VALUE stands at the dotted KEY
//	jsonlen KEY OP N     the list at KEY has N elements; OP is ==, >= or <=
//	width N              no line of stdout has more than N columns
//	plain                neither stream holds a control character
//	zip OUT FILE...      an archive of the files
//	gzip FILE...         FILE becomes FILE.gz
//	crlf FILE            lines end as on Windows
//	mkfifo FILE          a named pipe
func TestScripts(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("REPO", root)
			return nil
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "root":
				return os.Geteuid() == 0, nil
			case "fifo":
				return makeFIFO != nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status":  status,
			"json":    jsonValue,
			"jsonlen": jsonLength,
			"width":   widest,
			"plain":   plain,
			"zip":     zipFiles,
			"gzip":    gzipFiles,
			"crlf":    crlf,
			"mkfifo":  mkfifo,
			"binary":  binaryFile,
			"cut":     cutFile,
		},
	})
}

func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N CMD...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("run %s: %v", args[1], err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("status %d, want %d", got, want)
	}
}

// at returns the value at a dotted key of the JSON on stdout.
func at(ts *testscript.TestScript, key string) any {
	var v any
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	dec.UseNumber()
	ts.Check(dec.Decode(&v))
	for _, k := range strings.Split(key, ".") {
		switch x := v.(type) {
		case map[string]any:
			next, ok := x[k]
			if !ok {
				ts.Fatalf("no %q on the way to %s", k, key)
			}
			v = next
		case []any:
			i, err := strconv.Atoi(k)
			if err != nil || i < 0 || i >= len(x) {
				ts.Fatalf("no element %q on the way to %s", k, key)
			}
			v = x[i]
		default:
			ts.Fatalf("%q on the way to %s is %v", k, key, v)
		}
	}
	return v
}

func jsonValue(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: [!] json KEY VALUE")
	}
	v := at(ts, args[0])
	got := "null"
	if v != nil {
		got = fmt.Sprint(v)
	}
	if (got == args[1]) == neg {
		ts.Fatalf("%s is %s", args[0], got)
	}
}

func jsonLength(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: jsonlen KEY OP N")
	}
	list, ok := at(ts, args[0]).([]any)
	if !ok {
		ts.Fatalf("%s is no list", args[0])
	}
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	if holds := map[string]bool{"==": len(list) == n, ">=": len(list) >= n, "<=": len(list) <= n}; !holds[args[1]] {
		ts.Fatalf("%s has %d elements", args[0], len(list))
	}
}

func widest(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: width N")
	}
	limit, err := strconv.Atoi(args[0])
	ts.Check(err)
	for i, l := range strings.Split(ts.ReadFile("stdout"), "\n") {
		if n := utf8.RuneCountInString(l); n > limit {
			ts.Fatalf("line %d has %d columns: %q", i+1, n, l)
		}
	}
}

func plain(ts *testscript.TestScript, _ bool, _ []string) {
	for _, stream := range []string{"stdout", "stderr"} {
		text := ts.ReadFile(stream)
		if i := strings.IndexFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f || 0x80 <= r && r < 0xa0 }); i >= 0 {
			ts.Fatalf("%s holds a control character: %q", stream, text[max(0, i-20):min(len(text), i+20)])
		}
	}
}

func zipFiles(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: zip OUT FILE...")
	}
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for _, name := range args[1:] {
		w, err := z.Create(filepath.ToSlash(filepath.Base(name)))
		ts.Check(err)
		_, err = w.Write([]byte(ts.ReadFile(name)))
		ts.Check(err)
	}
	ts.Check(z.Close())
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), buf.Bytes(), 0o644))
}

func gzipFiles(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		var buf bytes.Buffer
		w := gzip.NewWriter(&buf)
		_, err := w.Write([]byte(ts.ReadFile(name)))
		ts.Check(err)
		ts.Check(w.Close())
		ts.Check(os.WriteFile(ts.MkAbs(name)+".gz", buf.Bytes(), 0o644))
	}
}

func crlf(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: crlf FILE")
	}
	text := strings.ReplaceAll(ts.ReadFile(args[0]), "\n", "\r\n")
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o644))
}

func mkfifo(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: mkfifo FILE")
	}
	ts.Check(makeFIFO(ts.MkAbs(args[0])))
}

// binaryFile: binary FILE. It writes bytes that are no text.
func binaryFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: binary FILE")
	}
	data := make([]byte, 3000)
	for i := range data {
		data[i] = byte(i*i*31 + i*7)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o644))
}

// cutFile: cut FILE. The second half of it goes.
func cutFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: cut FILE")
	}
	data := ts.ReadFile(args[0])
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(data[:len(data)/2]), 0o644))
}
