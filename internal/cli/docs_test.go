package cli

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader/all"
)

var update = flag.Bool("update", false, "rewrite docs/cli.md and the session in README.md")

// TestCLIDoc compares docs/cli.md with the command table.
func TestCLIDoc(t *testing.T) {
	compare(t, "../../docs/cli.md", cliDoc())
}

// TestReadmeSession runs the command of the README's terminal session, and of the
// page about memory, and compares what they print.
func TestReadmeSession(t *testing.T) {
	t.Chdir("../..")
	t.Setenv("COLUMNS", "")
	t.Setenv("LC_ALL", "C.UTF-8")
	for _, page := range []string{"README.md", "docs/memory.md", "docs/trackers.md"} {
		text := readFile(t, page)
		session := regexp.MustCompile("(?s)```console\n\\$ inquest ([^\n]+)\n(.*?)```\n").FindStringSubmatchIndex(text)
		if session == nil {
			t.Fatalf("%s has no session that begins with $ inquest", page)
		}
		var out, errs bytes.Buffer
		if status := Main(strings.Fields(text[session[2]:session[3]]), nil, &out, &errs); status != 0 || errs.Len() > 0 {
			t.Fatalf("%s: status %d: %s", page, status, errs.String())
		}
		compare(t, page, text[:session[4]]+out.String()+text[session[5]:])
	}
}

// TestReadmeReaders compares the README's table with the list of readers.
func TestReadmeReaders(t *testing.T) {
	text := readFile(t, "../../README.md")
	_, table, ok := strings.Cut(text, "<!-- readers -->\n")
	table, _, closed := strings.Cut(table, "<!-- /readers -->")
	if !ok || !closed {
		t.Fatal("README.md has no table between <!-- readers --> and <!-- /readers -->")
	}
	var got, want []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+)` \\|").FindAllStringSubmatch(table, -1) {
		got = append(got, m[1])
	}
	for _, r := range all.Readers(evidence.Plan{}) {
		want = append(want, r.Name())
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("README.md has rows for %v, the readers are %v", got, want)
	}
}

// TestDocLinks checks that what the pages link to within the tree exists.
func TestDocLinks(t *testing.T) {
	t.Chdir("../..")
	pages := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "examples/README.md"}
	docs, err := os.ReadDir("docs")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range docs {
		if strings.HasSuffix(d.Name(), ".md") {
			pages = append(pages, "docs/"+d.Name())
		}
	}
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	for _, page := range pages {
		dir := ""
		if i := strings.LastIndexByte(page, '/'); i >= 0 {
			dir = page[:i+1]
		}
		for _, m := range link.FindAllStringSubmatch(readFile(t, page), -1) {
			if _, err := os.Stat(dir + m[1]); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, m[1])
			}
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// compare fails where the file differs from want, or rewrites it.
func compare(t *testing.T, name, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got := readFile(t, name)
	if got == want {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Fatalf("%s:%d is not current: run go test ./internal/cli -run 'TestCLIDoc|TestReadmeSession' -update\n got %s\nwant %s", name, i+1, g[i], w[i])
		}
	}
	t.Fatalf("%s is not current: %d lines, want %d", name, len(g), len(w))
}

// cliDoc renders the command table as a page.
func cliDoc() string {
	a := &app{in: strings.NewReader(""), out: &bytes.Buffer{}, err: &bytes.Buffer{}}
	root := a.root()
	root.InitDefaultHelpFlag()
	var b strings.Builder
	fmt.Fprintf(&b, `# Commands

Generated from the command table; `+"`go test ./internal/cli -run TestCLIDoc -update`"+` writes it.

%s

Results go to standard output, progress, warnings and hints to standard error. With `+"`--format json`"+` errors are
JSON too. Colours appear on a terminal only, and not where NO_COLOR is set.

| status | means |
| --- | --- |
| 0 | the question was answered |
| 1 | it could not be answered: the input is missing, unreadable, or holds nothing that inquest reads |
| 2 | wrong usage |
| 3 | a fault was found, and `+"`--fail-on fault`"+` asked for this status; not verified; a regression |
| 4 | inconclusive: what was tried shows neither yes nor no |
| 130 | interrupted |

`+"`inquest run`"+` returns the status of the command that it runs: its own, 128 and the signal's number where a signal ended
it, 126 where it could not be executed, 127 where it was not found.
`, root.Long)
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if !c.IsAvailableCommand() && c != root || c.Name() == "help" {
			return
		}
		if c != root {
			describeCommand(&b, c)
		} else {
			section(&b, "inquest", root.UseLine(), "", root.Example, root.PersistentFlags())
		}
		if c.Name() == "completion" {
			return
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	return b.String()
}

func describeCommand(b *strings.Builder, c *cobra.Command) {
	text := c.Short + "."
	if c.Long != "" {
		text = c.Long
	}
	use := c.UseLine()
	if c.HasAvailableSubCommands() {
		use = c.CommandPath() + " COMMAND"
		if c.Name() == "completion" {
			use = c.CommandPath() + " bash|zsh|fish|powershell"
		}
	}
	section(b, c.CommandPath(), use, text, c.Example, c.LocalNonPersistentFlags())
}

func section(b *strings.Builder, title, use, text, example string, flags *pflag.FlagSet) {
	fmt.Fprintf(b, "\n## %s\n\n", title)
	if text != "" {
		fmt.Fprintf(b, "%s\n\n", text)
	}
	fmt.Fprintf(b, "```\n%s\n```\n", use)
	if example != "" {
		fmt.Fprintf(b, "\nExamples:\n\n```shell\n%s\n```\n", strings.ReplaceAll(strings.TrimPrefix(example, "  "), "\n  ", "\n"))
	}
	head := "\n| flag | default | |\n| --- | --- | --- |\n"
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Hidden {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		value := ""
		if f.DefValue != "" && f.DefValue != "[]" && f.DefValue != "false" {
			value = "`" + f.DefValue + "`"
		}
		fmt.Fprintf(b, "%s| %s | %s | %s |\n", head, name, value, strings.ReplaceAll(f.Usage, "|", "\\|"))
		head = ""
	})
}
