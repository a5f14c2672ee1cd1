package desk

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/inquest-dev/inquest/internal/incident"
)

// Bounds of the name of a file. The whole stays below what systems take as a path, with the
// desk's own folder before it.
const (
	maxName     = 1024 // bytes
	maxElement  = 255  // bytes
	maxElements = 64
)

// CheckName reports why a name is not one under which a file of a case is taken: with ErrName,
// and what is wrong. A name is relative, with slashes, and the same rules hold on every system,
// so that what one machine took another takes as well.
func CheckName(name string) error {
	if wrong := wrongWith(name); wrong != "" {
		return fmt.Errorf("%q: %w: %s", shortened(name), ErrName, wrong)
	}
	return nil
}

// shortened is a name for an error.
func shortened(name string) string {
	const most = 120
	if len(name) > most {
		return name[:most] + "…"
	}
	return name
}

// wrongWith says what is wrong with a name; "" is nothing.
func wrongWith(name string) string {
	switch {
	case name == "":
		return "it is empty"
	case len(name) > maxName:
		return fmt.Sprintf("it has %d bytes; at most %d are taken", len(name), maxName)
	case !utf8.ValidString(name):
		return "it is not UTF-8"
	case strings.HasPrefix(name, "/"):
		return "it is absolute; names are relative"
	case len(name) > 1 && name[1] == ':' && letter(name[0]):
		return "it names a drive; names are relative"
	case strings.Contains(name, `\`):
		return "it has a backslash; folders are separated by slashes"
	}
	for _, r := range name {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == utf8.RuneError || r == '\u2028' || r == '\u2029' {
			return fmt.Sprintf("it has the character %U", r)
		}
	}
	elements := strings.Split(name, "/")
	if len(elements) > maxElements {
		return fmt.Sprintf("it lies %d folders deep; at most %d are taken", len(elements)-1, maxElements-1)
	}
	for _, e := range elements {
		switch {
		case e == "":
			return "a folder in it has no name"
		case e == "." || e == "..":
			return "it has the element " + e
		case len(e) > maxElement:
			return fmt.Sprintf("an element of it has %d bytes; at most %d are taken", len(e), maxElement)
		case strings.HasSuffix(e, ".") || strings.HasSuffix(e, " "):
			return fmt.Sprintf("an element of it ends with %q, which Windows drops", e[len(e)-1:])
		case device(e):
			return fmt.Sprintf("%s is a device of Windows", e)
		}
	}
	if runtime.GOOS == "windows" && strings.ContainsAny(name, `<>:"|?*`) {
		return `it has one of the characters <>:"|?* that Windows does not take`
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return "it does not stay in its folder"
	}
	return ""
}

func letter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }

// device reports whether Windows takes an element for one of its devices, which it does with
// any extension and with blanks before that.
func device(element string) bool {
	base, _, _ := strings.Cut(element, ".")
	base, _, _ = strings.Cut(base, ":")
	base = strings.ToUpper(strings.TrimRight(base, " "))
	switch base {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$":
		return true
	}
	for _, p := range []string{"COM", "LPT"} {
		switch rest, ok := strings.CutPrefix(base, p); {
		case !ok:
		case len(rest) == 1 && '0' <= rest[0] && rest[0] <= '9', rest == "¹", rest == "²", rest == "³":
			return true
		}
	}
	return false
}

// An element is a file or a folder of a case, as its name is spelled.
type element struct {
	name   string
	folder bool
}

// folded is a name as file systems that do not tell capitals apart see it.
func folded(name string) string { return strings.ToLower(strings.ToUpper(name)) }

// clash reports what stands in the way of a file of the name in a case: the name of a file or
// folder that some system would take for the same, or for a folder of it; "" is nothing.
func (c *held) clash(name string) string {
	for i, r := range name {
		if r != '/' {
			continue
		}
		if e, ok := c.taken[folded(name[:i])]; ok && (!e.folder || e.name != name[:i]) {
			return e.name
		}
	}
	if e, ok := c.taken[folded(name)]; ok {
		return e.name
	}
	return ""
}

// add puts a file and its folders down.
func (c *held) add(name string) {
	c.sorted = c.sorted && (len(c.files) == 0 || c.files[len(c.files)-1].Name < name)
	c.called = ""
	c.at[name] = len(c.files)
	c.files = append(c.files, incident.CaseFile{Name: name})
	for i, r := range name {
		if r == '/' {
			c.taken[folded(name[:i])] = element{name[:i], true}
		}
	}
	c.taken[folded(name)] = element{name, false}
}

// lose takes a file out of the case's; its folders stay.
func (c *held) lose(i int) {
	c.called = ""
	name := c.files[i].Name
	delete(c.at, name)
	delete(c.taken, folded(name))
	c.files = slices.Delete(c.files, i, i+1)
	for ; i < len(c.files); i++ {
		c.at[c.files[i].Name] = i
	}
}
