package mcp

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestDocTable compares the table of tools in docs/mcp.md with what the server lists.
func TestDocTable(t *testing.T) {
	p := connect(t, transports["streams"](t, New(options(t))))
	list, err := p.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("<!-- tools -->\n| tool | what for | arguments | returns |\n| --- | --- | --- | --- |\n")
	for _, tool := range inOrder(list.Tools) {
		use, rest, _ := strings.Cut(tool.Description, "\n")
		_, returns, _ := strings.Cut(rest, "Returns: ")
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", tool.Name, use, arguments(tool), returns)
	}
	page, err := os.ReadFile("../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), "<!-- tools -->\n")
	_, after, closed := strings.Cut(rest, "<!-- /tools -->")
	if !ok || !closed {
		t.Fatal("docs/mcp.md has no table between <!-- tools --> and <!-- /tools -->")
	}
	compare(t, "../../docs/mcp.md", before+b.String()+"<!-- /tools -->"+after)
}

// inOrder sorts tools as they are used: the order of the session of the transcripts.
func inOrder(list []*mcp.Tool) []*mcp.Tool {
	place := map[string]int{}
	for i, x := range session {
		if _, ok := place[x.tool]; !ok {
			place[x.tool] = i
		}
	}
	slices.SortFunc(list, func(a, b *mcp.Tool) int { return place[a.Name] - place[b.Name] })
	return list
}

// arguments names the arguments of a tool, those that must be given in bold.
func arguments(tool *mcp.Tool) string {
	must, _ := at(tool.InputSchema, "required").([]any)
	fields, _ := at(tool.InputSchema, "properties").(map[string]any)
	var names []string
	for f := range fields {
		n := "`" + f + "`"
		if slices.Contains(must, any(f)) {
			n = "**" + n + "**"
		}
		names = append(names, n)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
