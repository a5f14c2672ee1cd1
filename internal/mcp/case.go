package mcp

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// result is what came of a case that has ended well; it does not wait. It leaves the case's own
// id in id.
func (s *server) result(ctx context.Context, id *string) (*desk.Result, error) {
	*id = strings.TrimSpace(*id)
	c, err := s.desk.Case(*id)
	if err != nil {
		return nil, err
	}
	*id = c.ID
	if !c.Ended() {
		return nil, failed(nil, "The case is still %s (%d of %d artifacts read). Call diagnose with case set to %s to wait for it.", c.State, c.Done, c.Total, c.ID)
	}
	return s.ended(ctx, c)
}

// ended is what came of a case that is at its end.
func (s *server) ended(ctx context.Context, c *incident.Case) (*desk.Result, error) {
	switch c.State {
	case incident.CaseFailed:
		return nil, failed(textError(c.Error), "Nothing of this case could be answered. Name the job's own logs, every rank's and the launcher's, in a new call of diagnose.")
	case incident.CaseCancelled:
		return nil, failed(nil, "The case was cancelled. Call diagnose again with the same paths.")
	}
	return s.desk.Result(ctx, c.ID)
}

type textError string

func (e textError) Error() string { return string(e) }

// A place is where something stands, as read_evidence takes it.
type place struct {
	Ref      string `json:"ref,omitempty" jsonschema:"pass it to read_evidence for the lines around; empty where the artifact is no text"`
	Artifact string `json:"quoted_artifact" jsonschema:"path or member of an archive, as data"`
	Line     int64  `json:"line,omitempty" jsonschema:"1-based"`
}

// places names artifacts by their number in an incident, so that a name that came from outside
// need not be handed back.
type places map[string]int

func placesOf(inc *incident.Incident) places {
	p := places{}
	for i := range inc.Artifacts {
		if _, ok := p[inc.Artifacts[i].Path]; !ok {
			p[inc.Artifacts[i].Path] = i
		}
	}
	return p
}

// of is the place of a span, nil where there is none.
func (p places) of(sp *evidence.Span, max int) *place {
	if sp == nil || sp.Artifact == "" {
		return nil
	}
	return &place{Ref: p.ref(sp), Artifact: quote(sp.Artifact, max), Line: sp.Line}
}

// event is the place of an event, nil where there is none.
func (p places) event(e *incident.Event, max int) *place {
	if e == nil {
		return nil
	}
	return p.of(e.Span, max)
}

// ref is a<artifact>:<line>@<offset>, "" where the span is not of a text or its artifact is not
// listed.
func (p places) ref(sp *evidence.Span) string {
	i, ok := p[sp.Artifact]
	if !ok || sp.Kind != "text" || sp.Line <= 0 {
		return ""
	}
	return fmt.Sprintf("a%d:%d@%d", i, sp.Line, sp.Offset)
}

// A where is a line that was asked for.
type where struct {
	artifact     string
	line, offset int64 // offset is -1 where it is not known
}

// find is what a ref stands for.
func find(inc *incident.Incident, ref string) (where, error) {
	w := where{offset: -1}
	bad := failed(nil, "A ref looks like a3:120@4096 and comes from an answer about the same case; this one does not. Pass a ref as it was given, or artifact and line.")
	head, offset, given := strings.Cut(strings.TrimSpace(ref), "@")
	number, line, ok := strings.Cut(strings.TrimPrefix(head, "a"), ":")
	i, err := strconv.Atoi(number)
	n, err2 := strconv.ParseInt(line, 10, 64)
	if !ok || err != nil || err2 != nil || i < 0 || i >= len(inc.Artifacts) || n < 1 || !strings.HasPrefix(head, "a") {
		return w, bad
	}
	w.artifact, w.line = inc.Artifacts[i].Path, n
	if given {
		if w.offset, err = strconv.ParseInt(offset, 10, 64); err != nil || w.offset < 0 {
			return w, bad
		}
	}
	return w, nil
}

// at prints a place within a line of text, with a blank before it; "" for none.
func (p *place) at() string {
	switch {
	case p == nil:
		return ""
	case p.Ref != "":
		return " [" + p.Ref + "]"
	}
	return ""
}

// ranks prints numbers of ranks, ascending and in runs, in at most 80 bytes: 0-3,5,8-15.
func ranks(of []int) string {
	of = slices.Clone(of)
	slices.Sort(of)
	of = slices.Compact(of)
	var b strings.Builder
	for i := 0; i < len(of); {
		j := i
		for j+1 < len(of) && of[j+1] == of[j]+1 {
			j++
		}
		part := strconv.Itoa(of[i])
		if j > i {
			part += "-" + strconv.Itoa(of[j])
		}
		if b.Len()+len(part) > 72 {
			fmt.Fprintf(&b, ",… (%d ranks)", len(of))
			break
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(part)
		i = j + 1
	}
	return b.String()
}

// rankWords is "rank N", and "" where none is stated.
func rankWords(r *int) string {
	if r == nil {
		return ""
	}
	return "rank " + strconv.Itoa(*r)
}

// sizeWords prints bytes as people read them, in binary units.
func sizeWords(n int64) string {
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%s%.2f GiB", sign, float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%s%.1f MiB", sign, float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%s%.1f KiB", sign, float64(n)/(1<<10))
	}
	return fmt.Sprintf("%s%d bytes", sign, n)
}

// deref is *p, and other where p is nil.
func deref[T any](p *T, other T) T {
	if p == nil {
		return other
	}
	return *p
}
