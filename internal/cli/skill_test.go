package cli

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/inquest-dev/inquest/internal/mcp"
)

const skillDir = "../../skills/inquest"

// Bounds of a skill.
const (
	skillName          = 64
	skillDescription   = 1024
	skillCompatibility = 500
	skillLines         = 500
	skillTokens        = 5000
)

// TestSkill lints the skill: its frontmatter, its size, its links; and every command, flag, tool,
// argument of a tool and entry that it or a page beside it names is there.
func TestSkill(t *testing.T) {
	text := readFile(t, skillDir+"/SKILL.md")
	head, body, ok := strings.Cut(strings.TrimPrefix(text, "---\n"), "\n---\n")
	if !ok {
		t.Fatal("SKILL.md has no frontmatter")
	}
	var front struct {
		Name          string            `yaml:"name"`
		Description   string            `yaml:"description"`
		License       string            `yaml:"license"`
		Compatibility string            `yaml:"compatibility"`
		Metadata      map[string]string `yaml:"metadata"`
		Allowed       string            `yaml:"allowed-tools"`
	}
	if err := yaml.UnmarshalWithOptions([]byte(head), &front, yaml.Strict()); err != nil {
		t.Fatalf("frontmatter: %v", err)
	}
	switch {
	case front.Name != filepath.Base(skillDir) || len(front.Name) > skillName || !regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString(front.Name):
		t.Errorf("name %q", front.Name)
	case len(front.Description) == 0 || len(front.Description) > skillDescription || !strings.Contains(front.Description, "Use it when"):
		t.Errorf("the description has %d characters, or does not say when", len(front.Description))
	case len(front.Compatibility) == 0 || len(front.Compatibility) > skillCompatibility:
		t.Errorf("compatibility has %d characters", len(front.Compatibility))
	case strings.Contains(front.Allowed, "Bash"):
		// Commands of inquest start others (run, verify) and write files (-o): each is the user's to allow.
		t.Errorf("allowed-tools: %s", front.Allowed)
	}
	// A token is four characters of English; three are held to be on the safe side.
	if n, size := strings.Count(body, "\n"), len([]rune(body))/3; n > skillLines || size > skillTokens {
		t.Errorf("the body has %d lines and some %d tokens", n, size)
	}
	for _, rest := range []string{"When not to use it", "verbatim error first", "Order before cause", "One change", "Verify the original action", "open verdict"} {
		if !strings.Contains(body, rest) {
			t.Errorf("nothing about %q", rest)
		}
	}
	pages, err := filepath.Glob(skillDir + "/references/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal("no references")
	}
	known := namesOf(t)
	known.check(t, "SKILL.md", body)
	for _, p := range pages {
		rel, _ := filepath.Rel(skillDir, p)
		if !strings.Contains(body, "]("+filepath.ToSlash(rel)+")") {
			t.Errorf("SKILL.md does not lead to %s", rel)
		}
		known.check(t, rel, readFile(t, p))
	}
	for _, m := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(body, -1) {
		if _, err := os.Stat(filepath.Join(skillDir, m[1])); err != nil {
			t.Errorf("SKILL.md leads to %s, which does not exist", m[1])
		}
	}
}

// skillNames is what a skill can name.
type skillNames struct {
	root    *cobra.Command
	tools   map[string]map[string]bool // with their arguments
	args    map[string]bool            // of any tool
	entries []string
	fields  map[string]bool // of answers
}

func namesOf(t *testing.T) *skillNames {
	t.Helper()
	a := &app{}
	c, err := a.catalogue()
	if err != nil {
		t.Fatal(err)
	}
	n := &skillNames{root: a.root(), tools: map[string]map[string]bool{}, args: map[string]bool{}, fields: map[string]bool{}}
	for _, e := range c.Entries() {
		n.entries = append(n.entries, e.ID)
	}
	here, there := sdk.NewInMemoryTransports()
	ctx := context.Background()
	ss, err := mcp.New(mcp.Options{Catalog: c}).Connect(ctx, there, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	s, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, here, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	list, err := s.ListTools(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		n.tools[tool.Name] = map[string]bool{}
		for arg := range tool.InputSchema.(map[string]any)["properties"].(map[string]any) {
			n.tools[tool.Name][arg], n.args[arg] = true, true
		}
		fieldsOf(tool.OutputSchema, n.fields)
	}
	return n
}

// fieldsOf adds the names of all fields of a schema.
func fieldsOf(schema any, to map[string]bool) {
	switch s := schema.(type) {
	case map[string]any:
		for k, v := range s {
			if p, ok := v.(map[string]any); ok && k == "properties" {
				for name := range p {
					to[name] = true
				}
			}
			fieldsOf(v, to)
		}
	case []any:
		for _, v := range s {
			fieldsOf(v, to)
		}
	}
}

var (
	codeSpan    = regexp.MustCompile("`([^`\n]+)`")
	codeBlock   = regexp.MustCompile("(?s)```shell\n(.*?)```")
	hyphenated  = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)+$`)
	underscored = regexp.MustCompile(`^[a-z]+(_[a-z]+)+$`)
	flagWord    = regexp.MustCompile(`^--?[a-z][a-z-]*$`)
)

// words of the verdict and of its machinery that look like names of tools.
var verdictWords = []string{"oom_first", "nan_first", "ruled_out", "known_by", "device_memory", "host_memory", "shared_memory"}

// check checks the names in a page: command lines in blocks and in spans, and words in spans.
func (n *skillNames) check(t *testing.T, page, text string) {
	t.Helper()
	commands := 0
	for _, m := range codeBlock.FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(m[1]) {
			if i := strings.Index(line, "inquest "); i >= 0 {
				commands++
				n.command(t, page, line[i:])
			}
		}
	}
	text = codeBlock.ReplaceAllString(text, "")
	last := ""
	for _, m := range codeSpan.FindAllStringSubmatch(text, -1) {
		switch w := m[1]; {
		case strings.HasPrefix(w, "inquest "):
			commands++
			n.command(t, page, w)
			last = w
		case flagWord.MatchString(strings.Fields(w)[0]) && last != "":
			n.command(t, page, last+" "+w) // of the command before it
		case slices.Contains(verdictWords, w), n.args[w], n.fields[w]:
		case hyphenated.MatchString(w):
			if !slices.Contains(n.entries, w) && w != "skills-ref" {
				t.Errorf("%s: there is no entry %s", page, w)
			}
		case underscored.MatchString(w):
			if n.tools[w] == nil {
				t.Errorf("%s: there is no tool, argument or field %s", page, w)
			}
		}
	}
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		if m := codeSpan.FindStringSubmatch(cells[2]); m != nil && n.tools[m[1]] != nil {
			for _, arg := range codeSpan.FindAllStringSubmatch(cells[3], -1) {
				if !n.tools[m[1]][arg[1]] {
					t.Errorf("%s: %s takes no %s", page, m[1], arg[1])
				}
			}
		}
	}
	if page == "references/mcp-tools.md" {
		for tool := range n.tools {
			if !strings.Contains(text, "`"+tool+"`") {
				t.Errorf("%s does not name %s", page, tool)
			}
		}
	}
}

// command checks that a command line begins with a command, that its flags are flags of it, and
// that an entry that it explains is there.
func (n *skillNames) command(t *testing.T, page, line string) {
	t.Helper()
	line, _, _ = strings.Cut(line, " -- ")
	line, _, _ = strings.Cut(line, " (")
	words := strings.Fields(strings.ReplaceAll(line, "...", ""))[1:]
	cmd, rest, err := n.root.Find(words)
	if err != nil || cmd == n.root {
		t.Errorf("%s: there is no command in %q", page, line)
		return
	}
	if cmd.HasSubCommands() && cmd.Args != nil && len(rest) > 0 && cmd.Args(cmd, rest[:1]) != nil {
		t.Errorf("%s: %s has no %q", page, cmd.CommandPath(), rest[0])
	}
	for _, w := range rest {
		w, _, _ = strings.Cut(w, "=")
		if !flagWord.MatchString(w) {
			continue
		}
		name := strings.TrimLeft(w, "-")
		if f := cmd.Flags(); f.Lookup(name) == nil && cmd.InheritedFlags().Lookup(name) == nil && (len(name) != 1 || f.ShorthandLookup(name) == nil) {
			t.Errorf("%s: %s has no flag %s", page, cmd.CommandPath(), w)
		}
	}
	if cmd.Name() == "explain" && len(rest) == 1 && hyphenated.MatchString(rest[0]) && !slices.Contains(n.entries, rest[0]) {
		t.Errorf("%s: there is no entry %s", page, rest[0])
	}
}

// TestSkillLintSees makes sure that the lint finds what it looks for.
func TestSkillLintSees(t *testing.T) {
	n := namesOf(t)
	for _, text := range []string{
		"`inquest dignose logs`", "`inquest diagnose --nonesuch logs`", "`inquest tracker sho RUN`", "`no-such-entry`", "`no_such_tool`",
		"| a | `diagnose` | `nonesuch` |", "```shell\ninquest explain no-such-entry\n```",
	} {
		sub := &testing.T{}
		done := make(chan struct{})
		go func() { // a failing T of its own, which ends its goroutine only
			defer close(done)
			n.check(sub, "page", text+"\n")
		}()
		<-done
		if !sub.Failed() {
			t.Errorf("%s passes", text)
		}
	}
}
