package nvsmi

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/format/textline"
)

// An xmlLog is nvidia-smi -q -x. It is read as it comes, tag by tag; a document
// may stand on one line or on many. Only the five entities that XML itself defines
// are resolved, document types and processing instructions are passed over, so
// nothing outside the text is ever named by it. What is kept between lines is the
// names of the open elements and one value, both bounded.
//
//	<?xml version="1.0" ?>
//	<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
//	<nvidia_smi_log>
//	    <gpu id="00000000:01:00.0">
//	        <fb_memory_usage> <used>1 MiB</used>
type xmlLog struct {
	tree   tree
	path   []string
	deeper int // elements open below maxDepth
	text   strings.Builder
	until  string // ends what is passed over, "" if nothing is
	done   bool
	seen   bool // the root was opened
}

func smiXML(_ textline.Line, text string, out Out) Table {
	if !strings.HasPrefix(text, "<") {
		return nil
	}
	for _, start := range [...]string{"<nvidia_smi_log>", "<!DOCTYPE nvidia_smi_log", "<?xml version="} {
		if strings.HasPrefix(text, start) {
			return &xmlLog{tree: newTree(out)}
		}
	}
	return nil
}

func (t *xmlLog) Line(l textline.Line) Class {
	if t.done {
		return Foreign
	}
	rest := l.Text
	if strings.TrimSpace(rest) == "" {
		return Blank
	}
	if !t.seen && t.until == "" && !strings.HasPrefix(strings.TrimSpace(rest), "<") {
		return Foreign
	}
	class := Note
	for rest != "" {
		if t.until != "" {
			_, after, ok := strings.Cut(rest, t.until)
			if !ok {
				return class
			}
			rest, t.until = after, ""
			continue
		}
		text, after, ok := strings.Cut(rest, "<")
		t.value(text)
		if !ok {
			return class
		}
		rest = after
		switch {
		case strings.HasPrefix(rest, "!--"):
			t.until = "-->"
		case strings.HasPrefix(rest, "!") || strings.HasPrefix(rest, "?"):
			t.until = ">"
		default:
			tag, after, ok := strings.Cut(rest, ">")
			if !ok {
				t.until = ">"
				return class
			}
			rest = after
			switch c := t.tag(tag, l); c {
			case Note:
			case Foreign:
				return Foreign
			default:
				class = c
			}
		}
	}
	return class
}

func (t *xmlLog) value(text string) {
	if n := maxValue - t.text.Len(); n > 0 {
		t.text.WriteString(text[:min(n, len(text))])
	}
}

// tag takes what stands between < and >.
func (t *xmlLog) tag(tag string, l textline.Line) Class {
	if name, ok := strings.CutPrefix(tag, "/"); ok {
		return t.close(strings.TrimSpace(name), l)
	}
	name, attrs, _ := strings.Cut(strings.TrimSuffix(tag, "/"), " ")
	t.text.Reset()
	switch {
	case name == "nvidia_smi_log":
		t.seen = true
		return Header
	case !t.seen: // another document
		t.done = true
		return Foreign
	case strings.HasSuffix(tag, "/"):
		return Field // empty
	case len(t.path) >= maxDepth:
		t.deeper++
		return Header
	}
	if name == "gpu" && len(t.path) == 0 {
		bus := attribute(attrs, "id")
		if !IsBus(bus) {
			bus = ""
		}
		t.tree.device(bus, l)
	}
	t.path = append(t.path, name)
	return Header
}

func (t *xmlLog) close(name string, l textline.Line) Class {
	value := strings.TrimSpace(unescape.Replace(t.text.String()))
	t.text.Reset()
	if t.deeper > 0 {
		t.deeper--
		return Header
	}
	if name == "nvidia_smi_log" {
		t.done = true
		return Header
	}
	if len(t.path) == 0 || t.path[len(t.path)-1] != name {
		return Note // damaged: what it closes was never opened
	}
	path := t.path
	if path[0] == "gpu" {
		path = path[1:]
	}
	class := Header
	if value != "" && len(path) > 0 {
		t.tree.field(path, value, l)
		class = Field
	}
	t.path = t.path[:len(t.path)-1]
	return class
}

func (t *xmlLog) End() { t.tree.flush() }

var unescape = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&apos;", "'", "&amp;", "&")

// attribute returns the value of an attribute, "" if it is not there.
func attribute(attrs, name string) string {
	_, rest, ok := strings.Cut(attrs, name+"=")
	if !ok || len(rest) < 2 || rest[0] != '"' && rest[0] != '\'' {
		return ""
	}
	v, _, _ := strings.Cut(rest[1:], rest[:1])
	return v
}
