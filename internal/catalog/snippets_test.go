package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// A snippet is the code of one step as a reader without a run sees it.
type snippet struct {
	Where string `json:"where"` // entry, stack, number of the step
	Stack string `json:"stack"`
	Lang  string `json:"lang"`
	Code  string `json:"code"`
	Runs  string `json:"runs"`
	Given string `json:"given"`
	Then  string `json:"then"`
}

func snippets(t *testing.T) []snippet {
	t.Helper()
	k, err := readYAML(os.DirFS(encyclopediaDir)) // what tests run is not in the compiled form
	if err != nil {
		t.Fatal(err)
	}
	var out []snippet
	for i := range k.entries {
		e := &k.entries[i].entry
		for _, f := range e.Fix {
			for j, s := range f.Steps {
				if s.Code != "" {
					out = append(out, snippet{fmt.Sprintf("%s, %s, step %d", e.ID, f.Stack, j+1), f.Stack, s.Lang, Plain(s.Code), s.Runs, s.Given, s.Then})
				}
			}
		}
	}
	return out
}

// of returns the snippets of one language.
func of(all []snippet, lang string) []snippet {
	var out []snippet
	for _, s := range all {
		if s.Lang == lang {
			out = append(out, s)
		}
	}
	return out
}

// TestSnippetsFilled: a reader without a run at hand copies no placeholder.
func TestSnippetsFilled(t *testing.T) {
	for _, s := range snippets(t) {
		if names := TemplateNames(s.Code); len(names) > 0 {
			t.Errorf("%s: %v without a fallback; without a run the code holds the names", s.Where, names)
		}
	}
}

// TestSnippetsPython compiles all Python in one process. With INQUEST_PYTHON, an
// interpreter that has torch, its names are looked up in what is installed there, and
// what says that it runs is run; scripts/snippets/check.sh sets it.
func TestSnippetsPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs python3")
	}
	list := of(snippets(t), "python")
	ran := 0
	for _, s := range list {
		if s.Runs != "" {
			ran++
		}
	}
	if ran < 40 {
		t.Errorf("%d snippets of %d run; most that need no device should", ran, len(list))
	}
	check(t, python, "compile", list)
	if python := os.Getenv("INQUEST_PYTHON"); python != "" {
		check(t, python, "resolve", list)
		check(t, python, "run", list)
	}
}

func check(t *testing.T, python, how string, list []snippet) {
	t.Helper()
	data, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "../../scripts/snippets/check.py", how)
	cmd.Stdin = bytes.NewReader(data)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 75 {
		t.Skipf("%s: %s", python, errs.String())
	}
	if err != nil {
		t.Errorf("%s: %v\n%s%s", how, err, out.String(), errs.String())
	}
	t.Logf("%s: %d snippets\n%s", how, len(list), errs.String())
}

// TestSnippetsShell asks a shell whether it could read each snippet; nothing is run. A
// snippet that begins with an option is the end of a command line.
func TestSnippetsShell(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("needs bash")
	}
	var all strings.Builder
	for i, s := range of(snippets(t), "shell") {
		code := s.Code
		if strings.HasPrefix(code, "-") {
			code = "command " + code
		}
		// Each in a function of its own, so that one process reads all and names the one that is wrong.
		fmt.Fprintf(&all, "snippet_%d() { # %s\n%s\n:\n}\n", i, s.Where, strings.TrimRight(code, "\n"))
	}
	cmd := exec.Command(bash, "--norc", "--noprofile", "-n")
	cmd.Stdin = strings.NewReader(all.String())
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		lines := strings.Split(all.String(), "\n")
		where := ""
		if m := regexp.MustCompile(`line (\d+)`).FindSubmatch(out); m != nil {
			var n int
			fmt.Sscan(string(m[1]), &n)
			for i := min(n, len(lines)) - 1; i >= 0; i-- {
				if _, name, ok := strings.Cut(lines[i], "() { # "); ok {
					where = name
					break
				}
			}
		}
		t.Errorf("%s: %v\n%s", where, err, out)
	}
}

// value is a word that stands for a number of the reader's.
var value = regexp.MustCompile(`([:,\[] *)[A-Z][A-Z0-9_]+\b`)

func TestSnippetsData(t *testing.T) {
	all := snippets(t)
	for _, s := range of(all, "json") {
		if !json.Valid(value.ReplaceAll([]byte(s.Code), []byte("${1}0"))) {
			t.Errorf("%s is not JSON: %s", s.Where, s.Code)
		}
	}
	for _, s := range of(all, "yaml") {
		var v any
		if err := yaml.Unmarshal([]byte(s.Code), &v); err != nil || v == nil {
			t.Errorf("%s is not YAML: %v\n%s", s.Where, err, s.Code)
		}
	}
}
