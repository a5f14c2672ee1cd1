package history

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/inquest-dev/inquest/internal/format/rows"
)

// object appends a row of JSON with cells taken out or replaced and the mark added in the
// row's own manner of writing.
func object(dst []byte, p *rows.Piece, edits []edit, marks []mark, marker string) []byte {
	raw := p.Raw
	type cut struct {
		from, to int
		text     string
	}
	var cuts []cut
	for i := range edits {
		c := &edits[i].cell
		if edits[i].text != "" {
			cuts = append(cuts, cut{c.Key, c.To, edits[i].text})
			continue
		}
		from, to := c.From, c.To
		if next := skipSpace(raw, to); raw[next] == ',' {
			to = skipSpace(raw, next+1)
			cuts = append(cuts, cut{from, to, ""})
			continue
		}
		// The last pair of its object takes the comma before it along, over pairs that
		// are taken out as well.
		for {
			if n := len(cuts); n > 0 && cuts[n-1].to == from && cuts[n-1].text == "" {
				from = cuts[n-1].from
				cuts = cuts[:n-1]
				continue
			}
			break
		}
		at := from
		for at > 0 && space(raw[at-1]) {
			at--
		}
		if at > 0 && raw[at-1] == ',' {
			from = at - 1
		}
		cuts = append(cuts, cut{from, to, ""})
	}
	at := 0
	for _, c := range cuts {
		dst = append(dst, raw[at:c.from]...)
		dst = append(dst, c.text...)
		at = c.to
	}
	dst = append(dst, raw[at:]...)
	if len(marks) == 0 {
		return dst
	}
	return add(dst, raw, marks[0].value, marker)
}

// add puts the mark behind the last pair of an object, which ends dst.
func add(dst, raw []byte, v float64, marker string) []byte {
	end := len(dst) - 1 // of '}'
	last := end
	for last > 0 && space(dst[last-1]) {
		last--
	}
	tail := append([]byte(nil), dst[last:]...)
	dst = dst[:last]
	between := raw[1:skipSpace(raw, 1)] // as before the first key
	if dst[last-1] != '{' {
		dst = append(dst, ',')
		if len(between) == 0 && bytes.Contains(raw, []byte(", ")) {
			between = []byte{' '}
		}
	}
	dst = append(dst, between...)
	key, _ := json.Marshal(marker) // a string is always JSON
	if raw[min(skipSpace(raw, 1), len(raw)-1)] == '\'' {
		key = append(append([]byte{'\''}, bytes.ReplaceAll(key[1:len(key)-1], []byte{'\''}, []byte(`\'`))...), '\'')
	}
	dst = append(append(dst, key...), ':')
	if bytes.Contains(raw, []byte(`": `)) || bytes.Contains(raw, []byte(`': `)) {
		dst = append(dst, ' ')
	}
	dst = append(dst, number(v)...)
	if len(between) > 1 {
		dst = append(dst, ".0"...) // a number of TrainerState
	}
	return append(dst, tail...)
}

func space(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == 0 }

func skipSpace(b []byte, i int) int {
	for i < len(b)-1 && space(b[i]) {
		i++
	}
	return i
}

// loose counts the bare numbers of a row that are not finite and stay: in settings and
// lists.
func loose(p *rows.Piece, edits []edit) (n int64) {
	if !bytes.Contains(p.Raw, []byte("NaN")) && !bytes.Contains(p.Raw, []byte("Infinity")) {
		return 0
	}
	s := strict{w: io.Discard}
	s.Write(p.Raw)
	s.end()
	for i := range edits {
		if c := &edits[i].cell; !c.Quoted && !rows.Finite(c.Value) {
			s.n--
		}
	}
	return max(s.n, 0)
}

// strict makes JSON of what Python's json module writes: the bare tokens NaN, Infinity and
// -Infinity become null.
type strict struct {
	w              io.Writer
	n              int64 // tokens that were replaced
	quoted, escape bool
	token          []byte // a bare token that has begun
	out            []byte
}

func (s *strict) Write(b []byte) (int, error) {
	s.out = s.out[:0]
	for _, c := range b {
		switch {
		case s.escape:
			s.escape = false
		case s.quoted:
			s.escape, s.quoted = c == '\\', c != '"'
		case c == '"':
			s.flush()
			s.quoted = true
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' && len(s.token) == 0:
			if s.token = append(s.token, c); len(s.token) > 16 {
				s.flush()
			}
			continue
		default:
			s.flush()
		}
		s.out = append(s.out, c)
	}
	if _, err := s.w.Write(s.out); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (s *strict) flush() {
	switch string(s.token) {
	case "NaN", "Infinity", "-Infinity":
		s.n++
		s.out = append(s.out, "null"...)
	default:
		s.out = append(s.out, s.token...)
	}
	s.token = s.token[:0]
}

func (s *strict) end() error {
	s.out = s.out[:0]
	s.flush()
	_, err := s.w.Write(s.out)
	return err
}
