package engine

import (
	"path"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/timeline"
)

// nameHosts gives artifacts whose host nothing states to the host whose name their
// folder or file name is: people put what a machine printed into a folder named
// after it. Only names that the evidence itself, or the person, uses for a host count.
func nameHosts(sources []timeline.Source, named ...string) {
	hosts := map[string]bool{}
	for _, h := range named {
		hosts[h] = h != ""
	}
	for i := range sources {
		for j := range sources[i].Events {
			if h := sources[i].Events[j].Who.Host; h != "" {
				hosts[h] = true
			}
		}
		if h := sources[i].Artifact.Owner.Host; h != "" {
			hosts[h] = true
		}
	}
	for i := range sources {
		o := &sources[i].Artifact.Owner
		if o.Host != "" {
			continue
		}
		if h := hostInPath(sources[i].Artifact.Path, hosts); h != "" {
			o.Host = h
			if o.Basis != "" {
				o.Basis += "; "
			}
			o.Basis += "path names the host"
		}
	}
}

// hostInPath is the one host whose name is a folder of the path, or begins the
// file name before a dot, dash or underscore; "" where there is none or several.
func hostInPath(p string, hosts map[string]bool) string {
	found := ""
	note := func(h string) bool {
		if !hosts[h] || h == found {
			return true
		}
		if found != "" {
			return false
		}
		found = h
		return true
	}
	parts := strings.FieldsFunc(p, func(r rune) bool { return r == '/' || r == '\\' || r == '!' })
	for _, part := range parts {
		if !note(part) {
			return ""
		}
	}
	base := path.Base(strings.ReplaceAll(p, "\\", "/"))
	for i := range len(base) {
		if strings.IndexByte("._-", base[i]) >= 0 && !note(base[:i]) {
			return ""
		}
	}
	return found
}

// hostOf is the host of an event: its own words, else that of its artifact.
func hostOf(src *timeline.Source, e *evidence.Event) string {
	if e.Who.Host != "" {
		return e.Who.Host
	}
	return src.Artifact.Owner.Host
}
