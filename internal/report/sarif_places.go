package report

import (
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// sourceRoot is the base to which relative addresses refer: the folder of the checkout for the
// user's own source, the folder in which inquest was asked for what was read.
const sourceRoot = "SRCROOT"

// maxSnippet bounds a quoted line, in bytes.
const maxSnippet = 1000

// sarifPath is the address of a file: relative to the root where the path is, else of the scheme
// file. All bytes but letters, digits and -._~!/ are percent-encoded.
func sarifPath(name string) sarifArtifact {
	name = unquoted(name)
	a := sarifArtifact{}
	if i := strings.IndexByte(name, '!'); i > 0 {
		a.Description = &sarifText{Text: sarifEscape(limited("in the archive "+clean(name[:i]), maxSnippet))}
	}
	drive := len(name) > 2 && name[1] == ':' && (name[2] == '\\' || name[2] == '/') && (name[0]|0x20 >= 'a' && name[0]|0x20 <= 'z')
	if drive || strings.Contains(name, `\`) && !strings.Contains(name, "/") {
		name = strings.ReplaceAll(name, `\`, "/")
	}
	switch {
	case drive:
		a.URI = "file:///" + name[:1] + ":" + encoded(name[2:])
	case strings.HasPrefix(name, "//"): // a host's share, or a slash too many: either way no host of ours
		a.URI = "file:///" + encoded(strings.TrimLeft(name, "/"))
	case strings.HasPrefix(name, "/"):
		a.URI = "file://" + encoded(name)
	default:
		a.URI, a.URIBaseID = encoded(strings.TrimPrefix(name, "./")), sourceRoot
	}
	return a
}

// unquoted is the name of an artifact as it stands on the disk: what does not print is quoted in
// reports.
func unquoted(name string) string {
	q, err := strconv.QuotedPrefix(name)
	if err != nil || q[0] != '"' {
		return name
	}
	s, err := strconv.Unquote(q)
	if err != nil {
		return name
	}
	return s + name[len(q):]
}

func encoded(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~!/", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(hex[c>>4])
		b.WriteByte(hex[c&15])
	}
	return b.String()
}

// sarifEscape keeps text from being read as a link to another place or as the place of an
// argument (SARIF 2.1.0, 3.11.5 and 3.11.6); a backslash before a bracket stays one.
var sarifEscape = strings.NewReplacer(`\[`, `\\\[`, `\]`, `\\\]`, "[", `\[`, "]", `\]`, "{", "{{", "}", "}}").Replace

// limited is text of at most n bytes.
func limited(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n -= len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// sarifMessage is text that came from an incident, cleaned, bounded and taken literally.
func sarifMessage(s string) sarifText {
	return sarifText{Text: sarifEscape(limited(strings.TrimSpace(clean(s)), maxMessage))}
}

// placeOf is where a span stands, with the line itself.
func placeOf(sp *evidence.Span, message string) sarifLocation {
	var l sarifLocation
	if message != "" {
		m := sarifMessage(message)
		l.Message = &m
	}
	if sp == nil || sp.Artifact == "" {
		return l
	}
	if sp.Artifact == "-" { // there is no file of it
		l.Logical = []sarifLogical{{Name: "standard input", FullName: "standard input:" + strconv.FormatInt(sp.Line, 10), Kind: "resource"}}
		return l
	}
	l.Physical = &sarifPhysical{Artifact: sarifPath(sp.Artifact)}
	if sp.Line > 0 {
		l.Physical.Region = &sarifRegion{StartLine: sp.Line}
		if q := limited(oneLine(sp.Quote), maxSnippet); q != "" {
			l.Physical.Region.Snippet = &sarifText{Text: q}
		}
		l.Other = map[string]float64{"byteOffset": float64(sp.Offset)}
		return l
	}
	l.Logical = []sarifLogical{{Name: limited(oneLine(where(sp)), maxSnippet), Kind: "resource"}}
	return l
}

// frameOf is the user's own line to which a traceback leads.
func (s *sarif) frameOf(f *incident.Frame) sarifLocation {
	l := sarifLocation{Physical: &sarifPhysical{Artifact: sarifPath(s.underRoot(f.File))}}
	if f.Line > 0 {
		l.Physical.Region = &sarifRegion{StartLine: int64(f.Line)}
		if q := limited(oneLine(f.Source), maxSnippet); q != "" {
			l.Physical.Region.Snippet = &sarifText{Text: q}
		}
	}
	if f.Function != "" {
		l.Logical = []sarifLogical{{Name: limited(oneLine(f.Function), maxSnippet), Kind: "function"}}
	}
	return l
}

// underRoot is a source file relative to the folder from which the run was started, where the
// evidence shows that folder: the command names a script by a relative path, and a traceback
// leads through a file whose path ends so. Else the path stays as the traceback has it.
func (s *sarif) underRoot(file string) string {
	if s.root == "" {
		return file
	}
	return strings.TrimPrefix(path.Clean(file), s.root)
}

// rootOf looks for that folder, with a slash behind it; "" where nothing shows it.
func rootOf(inc *incident.Incident) string {
	var files []string
	seen := func(e *incident.Event) {
		if e != nil && e.Frame != nil && strings.HasPrefix(e.Frame.File, "/") {
			files = append(files, path.Clean(e.Frame.File))
		}
	}
	for i := range inc.Attempts {
		a := &inc.Attempts[i]
		seen(a.FirstFault)
		for j := range a.FirstFaultRivals {
			seen(&a.FirstFaultRivals[j])
		}
		for j := range a.Collateral {
			seen(&a.Collateral[j].Event)
		}
	}
	seen(inc.FirstFault)
	for i := range inc.Attempts {
		for _, w := range strings.Fields(inc.Attempts[i].Command) {
			w = strings.TrimPrefix(strings.Trim(w, `"'`), "./")
			if !strings.HasSuffix(w, ".py") || strings.HasPrefix(w, "/") || path.Clean(w) != w || strings.HasPrefix(w, "../") {
				continue
			}
			for _, f := range files {
				if root, ok := strings.CutSuffix(f, "/"+w); ok {
					return root + "/"
				}
			}
		}
	}
	return ""
}
