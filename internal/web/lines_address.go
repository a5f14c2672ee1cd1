package web

import (
	"net/url"
	"strconv"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// casePath is the path of a page of a case; part "" is its first page.
func casePath(id, part string) string {
	s := "/cases/" + url.PathEscape(id)
	if part != "" {
		s += "/" + part
	}
	return s
}

// linesPath is the address at which a line of an artifact stands in its context. Where the offset
// is known, it is what says which line that is.
func linesPath(id, artifact string, line, offset int64) string {
	v := url.Values{"artifact": {artifact}, "line": {strconv.FormatInt(line, 10)}}
	if offset >= 0 {
		v.Set("offset", strconv.FormatInt(offset, 10))
	}
	return casePath(id, "lines") + "?" + v.Encode() + "#marked"
}

// spanPath is linesPath for a place, "" for one that is not a line of text.
func spanPath(id string, sp *evidence.Span) string {
	if sp == nil || sp.Kind != "text" || sp.Line <= 0 || sp.Artifact == "" {
		return ""
	}
	return linesPath(id, sp.Artifact, sp.Line, sp.Offset)
}
