package engine

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/artifact"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/evidencefile"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/redact"
)

// What is kept of a line while it is read: more than is shown, so that half of a secret is not.
const (
	lineHead   = 6 << 10 // of its begin
	lineTail   = 6 << 10 // of its end
	lineMiddle = 6 << 10 // around the byte that was asked for
	lineToken  = 2 << 10 // what goes at a cut where the words are too long to go whole
	lineLeft   = 256     // what must be left where a word goes whole
)

// blanks end words.
const blanks = " \t,;"

// A rawLine is what is kept of a line while it is read, without its end.
type rawLine struct {
	n, offset int64
	size      int64
	head      []byte
	tail      []byte // the last bytes behind head
	middle    []byte // around the byte want
	want      int64  // -1 for none
	open      bool   // its end was not read
}

// add takes more bytes of the line.
func (l *rawLine) add(b []byte) {
	if l.want >= 0 {
		from := max(l.want-lineMiddle/3, 0)
		lo, hi := max(from-l.size, 0), min(from+lineMiddle-l.size, int64(len(b)))
		if lo < hi {
			l.middle = append(l.middle, b[lo:hi]...)
		}
	}
	l.size += int64(len(b))
	if k := min(lineHead-len(l.head), len(b)); k > 0 {
		l.head = append(l.head, b[:k]...)
		b = b[k:]
	}
	if len(b) >= lineTail {
		l.tail = append(l.tail[:0], b[len(b)-lineTail:]...)
	} else if len(b) > 0 {
		if over := len(l.tail) + len(b) - lineTail; over > 0 {
			l.tail = l.tail[:copy(l.tail, l.tail[over:])]
		}
		l.tail = append(l.tail, b...)
	}
}

// text is what a person sees of the line, as of a quote: the last frame of a progress bar, else
// the begin, or what is around the byte that was asked for. cut is how many bytes it leaves out.
func (l *rawLine) text() (text string, cut int64, frame bool) {
	whole := l.size == int64(len(l.head)+len(l.tail)) // head and tail meet
	b := l.head
	if whole {
		b = slices.Concat(l.head, l.tail)
	}
	end := b
	if !whole {
		end = l.tail
	}
	end = bytes.TrimRight(end, "\r")
	if i := bytes.LastIndexByte(end, '\r'); i >= 0 && !l.open {
		text, shown := clip(end[i+1:], false, false)
		return text, l.size - shown, true
	}
	switch {
	case len(l.middle) > 0:
		text, shown := clip(l.middle, true, true)
		return text, l.size - shown, false
	case whole:
		b = end
		if text, shown := clip(b, false, false); shown < int64(len(b)) {
			return text, l.size - shown, false
		} else {
			return text, 0, false
		}
	}
	text, shown := clip(b, false, true)
	return text, l.size - shown, false
}

// clip makes at most maxLineText bytes of b fit to be shown, and says how many bytes of b that
// are, about where something was taken out. Where b begins or ends in the middle of its line, the
// word that is cut there goes: it may be half of a secret.
func clip(b []byte, cutBefore, cutBehind bool) (string, int64) {
	const most = 4 * maxLineText
	s := cleanTo(b, most)
	all := len(s)
	if cutBefore {
		if i := strings.IndexAny(s, blanks); i >= 0 && i < len(s)-lineLeft {
			s = s[i+1:]
		} else {
			s = strings.ToValidUTF8(s[min(len(s), lineToken):], "")
		}
		s = "…" + s
	}
	if cutBehind {
		if i := strings.LastIndexAny(s, blanks); i >= lineLeft {
			s = s[:i]
		} else {
			s = strings.ToValidUTF8(s[:max(len(s)-lineToken, 0)], "")
		}
	}
	if len(s) > maxLineText {
		s = strings.ToValidUTF8(s[:maxLineText], "")
		cutBehind = true
	}
	shown := int64(len(b))
	if len(s) < all || cutBefore || cutBehind {
		shown = min(shown, int64(len(strings.TrimPrefix(s, "…"))))
	}
	if cutBehind {
		s += "…"
	}
	return s, shown
}

// show puts down the lines of the window: from the one that was asked for outwards, as far as the
// bounds allow.
func (w *window) show() {
	lines := w.masked()
	at := slices.IndexFunc(lines, func(l incident.Line) bool { return l.N == w.Line })
	if at < 0 {
		w.out.Before = w.total > 0
		if w.ended {
			switch w.total {
			case 0:
				w.limit("%s is empty", w.out.Artifact)
			case 1:
				w.limit("%s has one line; there is no line %d", w.out.Artifact, w.Line)
			default:
				w.limit("%s has %d lines; there is no line %d", w.out.Artifact, w.total, w.Line)
			}
		}
		return
	}
	lo := max(at-w.Before, 0)
	hi := min(at+1+w.After, len(lines))
	from, to, left := at, at+1, maxLinesText-len(lines[at].Text)
	for from > lo || to < hi {
		grown := false
		if to < hi && len(lines[to].Text) <= left {
			left -= len(lines[to].Text)
			to, grown = to+1, true
		}
		if from > lo && len(lines[from-1].Text) <= left {
			left -= len(lines[from-1].Text)
			from, grown = from-1, true
		}
		if !grown {
			w.limit("a window shows at most %s; lines farther from line %d are left out", evidence.Bytes(maxLinesText), w.Line)
			break
		}
	}
	lines[at].Marked = true
	w.out.Lines = append(w.out.Lines, lines[from:to]...)
	w.out.First = w.out.Lines[0].N
	w.out.Before = w.out.First > 1
	w.out.After = to < len(lines) || !w.ended
}

// masked makes the lines fit to be shown. What stands between the first and the last line of a
// private key is masked, also where the window begins within.
func (w *window) masked() []incident.Line {
	out := make([]incident.Line, 0, len(w.lines))
	inKey, frames, cuts := false, false, 0
	for i := range w.lines {
		l := &w.lines[i]
		text, cut, frame := l.text()
		frames = frames || frame
		if cut > 0 && !frame {
			cuts++
		}
		begins, ends := keyBegins(l.head), keyEnds(l.head)
		if inKey && !ends {
			text = redact.Mask
		}
		inKey = (inKey || begins) && !ends
		out = append(out, incident.Line{N: l.n, Offset: l.offset, Text: text, Cut: cut})
	}
	if frames {
		w.limit("of lines that their writer wrote over, as progress bars are, the last state is shown")
	}
	if cuts > 0 {
		w.limit("lines longer than %s are cut", evidence.Bytes(maxLineText))
	}
	return out
}

func keyBegins(b []byte) bool { return keyLine(b, "-----BEGIN ") }
func keyEnds(b []byte) bool   { return keyLine(b, "-----END ") }

// keyLine reports whether b is the first or last line of a private key.
func keyLine(b []byte, what string) bool {
	i := bytes.LastIndex(b, []byte(what))
	return i >= 0 && bytes.Contains(b[i:], []byte("PRIVATE KEY"))
}

// kept shows what evidence files among the paths keep of the artifact; false where none has it.
func (w *window) kept(ctx context.Context, o Options) (bool, error) {
	look := o.look()
	look.Anchor, look.Probe, look.All = nil, nil, false
	look.Sniff = func(a evidence.Artifact, head []byte) (string, int) {
		if kind, sure := o.look().Sniff(a, head); kind == evidenceKind {
			return kind, sure
		}
		return "", int(reader.No)
	}
	seen, err := artifact.Look(ctx, o.Paths, look)
	if err != nil {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		return false, nil
	}
	defer seen.Close()
	if _, err := unpack(ctx, seen); err != nil {
		return false, err
	}
	for i := range seen.Files {
		h, ok := seen.Files[i].Held.(*held)
		if !ok || seen.Files[i].Path != w.Artifact {
			continue
		}
		a, err := h.record()
		if err != nil {
			return false, errors.Join(ErrNoLines, err)
		}
		w.keptLines(a)
		return true, nil
	}
	return false, nil
}

// keptLines shows what is kept of an artifact's lines.
func (w *window) keptLines(a *evidencefile.Artifact) {
	w.out.Kind = a.Kind
	w.limit("only what a scan kept of %s is at hand: lines around what can be part of a failure", w.out.Artifact)
	text, at := map[int64]string{}, map[int64]int64{}
	if spots := a.Spans(); len(spots) == len(a.Quotes) {
		for i, s := range spots {
			if s.Line > 0 && s.Column <= 1 && a.Quotes[i] != "" {
				text[s.Line], at[s.Line] = a.Quotes[i], s.Offset
			}
			if w.Line == 0 && s.Offset <= w.Offset && w.Offset < s.Offset+s.Length {
				w.Line = s.Line
			}
		}
	}
	if spots := a.Places(); len(spots) == len(a.Around) {
		for i, l := range a.Around {
			for k, t := range l.Texts {
				if n := l.First + int64(k); l.First > 0 {
					text[n] = t
					if n == spots[i].Line {
						at[n] = spots[i].Offset
					}
				}
			}
		}
	}
	var lines []incident.Line
	for n := max(w.Line-int64(w.Before), 1); n <= w.Line+int64(w.After); n++ {
		t, ok := text[n]
		if !ok {
			continue
		}
		off, known := at[n]
		if !known {
			off = -1
		}
		lines = append(lines, incident.Line{N: n, Offset: off, Text: redact.Text(visible(t)), Marked: n == w.Line})
	}
	if len(lines) == 0 {
		w.out.Before, w.out.After = w.Line > 1, true
		return
	}
	w.out.Lines = append(w.out.Lines, lines...)
	w.out.First = lines[0].N
	w.out.Before, w.out.After = w.out.First > 1, true
}
