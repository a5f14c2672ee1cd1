package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	nethtml "golang.org/x/net/html"
)

// TestMarkdownIsInert renders the report of an incident full of markup as a host
// would, raw HTML allowed, and looks for anything that log text could have made.
func TestMarkdownIsInert(t *testing.T) {
	md := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe()))
	for _, s := range samples {
		for _, who := range readers {
			for _, full := range []bool{false, true} {
				source := render(t, "markdown", load(t, s.name), Options{For: who, Full: full})
				var b bytes.Buffer
				if err := md.Convert([]byte(source), &b); err != nil {
					t.Fatal(err)
				}
				doc, err := nethtml.Parse(&b)
				if err != nil {
					t.Fatal(err)
				}
				h1 := 0
				for n := range doc.Descendants() {
					switch {
					case n.Type == nethtml.CommentNode:
						t.Errorf("%s for %s: a comment %q", s.name, who, n.Data)
					case n.Type == nethtml.TextNode && !inCode(n):
						if i := strings.IndexAny(n.Data, "@<>`#$"); i >= 0 {
							t.Errorf("%s for %s: %q outside of code: %q", s.name, who, n.Data[i], n.Data)
						}
						if strings.Contains(n.Data, "://") || strings.Contains(n.Data, "www.") {
							t.Errorf("%s for %s: an address outside of code: %q", s.name, who, n.Data)
						}
					case n.Type == nethtml.ElementNode:
						switch n.Data {
						case "html", "head", "body", "h2", "p", "ul", "ol", "li", "strong", "code", "pre", "table", "thead", "tbody", "tr", "th", "td", "hr", "input":
						case "h1":
							h1++
						default:
							t.Errorf("%s for %s: element %s", s.name, who, n.Data)
						}
					}
				}
				if h1 != 1 {
					t.Errorf("%s for %s: %d headings of the first level", s.name, who, h1)
				}
			}
		}
	}
}

func inCode(n *nethtml.Node) bool {
	for p := n.Parent; p != nil; p = p.Parent {
		if p.Data == "code" {
			return true
		}
	}
	return false
}

func TestMarkdownText(t *testing.T) {
	for in, want := range map[string]string{
		"step 12, loss 0.5 (a.log:3)": "step 12, loss 0.5 (a.log:3)",
		"set max_length.":             "set `max_length`.",
		"call f_x(a) now":             "call `f_x(a)` now",
		"@all see #12 or GH-12":       "`@all` see `#12` or `GH-12`",
		"(https://x.example/a)":       "(`https://x.example/a`)",
		"- not a list":                "`-` not a list",
		"1. not a list":               "`1.` not a list",
		"3 - 2":                       "3 - 2",
		"a `b` c":                     "a `` `b` `` c",
		"commit deadbeefcafe":         "commit `deadbeefcafe`",
		"smile :tada: now":            "smile `:tada`: now",
		"<b>x</b>":                    "`<b>x</b>`",
		"two\nlines":                  "two lines",
		"print(out.grad_fn, out.requires_grad) after it": "`print(out.grad_fn, out.requires_grad)` after it",
		"a sum(p * q for p in x), then":                  "a `sum(p * q for p in x)`, then",
		"f(never closed, here":                           "f(never closed, here",
		"dmesg -T | grep -i -E 'oom-kill|killed process' on h1; sacct -j JOB --format=JobID,State": "`dmesg -T | grep -i -E 'oom-kill|killed process'` on h1; `sacct -j JOB --format=JobID,State`",
		"grep -i mem, then cat /sys/fs/cgroup/memory.peak (or not)":                                "`grep -i mem`, then `cat /sys/fs/cgroup/memory.peak` (or not)",
		"py-spy dump --pid PID of rank 2":                                                          "`py-spy dump --pid PID` of rank 2",
		"free memory and ps on h1":                                                                 "free memory and ps on h1",
		"print (a[\"b\"] != -100).sum() per rank":                                                  "print `(a[\"b\"] != -100).sum()` per rank",
		"is map_location='cpu' given?":                                                             "is `map_location='cpu'` given?",
		"(not a method) at all_here":                                                               "(not a method) at `all_here`",
		"with scontrol show job JOB | grep -i mem.":                                                "with `scontrol show job JOB | grep -i mem`.",
		"run python -X faulthandler --batch 8 --bf16 on it":                                        "run `python -X faulthandler --batch 8 --bf16` on it",
		"log it (ps -o pid,rss,cmd)":                                                               "log it (`ps -o pid,rss,cmd`)",
	} {
		if got := mdText(in); got != want {
			t.Errorf("mdText(%q) = %q, want %q", in, got, want)
		}
	}
}
