package ranklog

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// clean removes from raw what a terminal would not show: CSI and OSC escape
// sequences, other escapes, backspaces with what they erase, NULs and trailing
// blanks. Invalid UTF-8 becomes U+FFFD.
func clean(raw []byte) string {
	if plain(raw) {
		for n := len(raw); n > 0 && (raw[n-1] == ' ' || raw[n-1] == '\t'); n-- {
			raw = raw[:n-1]
		}
		return string(raw)
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		switch c := raw[i]; {
		case c == 0x1b:
			i += escapeLen(raw[i:])
		case c == '\b':
			if n := len(out); n > 0 {
				_, size := utf8.DecodeLastRune(out)
				out = out[:n-size]
			}
			i++
		case c == '\t' || c >= ' ' && c < 0x7f:
			out = append(out, c)
			i++
		case c < utf8.RuneSelf: // other control characters
			i++
		default:
			r, n := utf8.DecodeRune(raw[i:])
			if r != '\ufeff' && (r < 0x80 || r > 0x9f) {
				out = utf8.AppendRune(out, r)
			}
			i += n
		}
	}
	return strings.TrimRight(string(out), " \t")
}

// plain reports whether raw is ASCII without control characters but tabs.
func plain(raw []byte) bool {
	const low, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(raw); i += 8 {
		x := word(raw, i)
		if (x|(x-' '*low))&high != 0 && !plainBytes(raw[i:i+8]) { // a byte over 0x7f or, perhaps, below the blank
			return false
		}
	}
	return plainBytes(raw[i:])
}

func plainBytes(raw []byte) bool {
	for _, c := range raw {
		if c >= utf8.RuneSelf || c < ' ' && c != '\t' {
			return false
		}
	}
	return true
}

// escapeLen returns the length of the escape sequence at the start of b, whose
// first byte is ESC: ECMA-48 CSI, OSC up to BEL or ST, and two-byte escapes. An
// unfinished sequence runs to the end.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return len(b)
	}
	switch b[1] {
	case '[':
		for i := 2; i < len(b); i++ {
			switch c := b[i]; {
			case c >= 0x40 && c <= 0x7e:
				return i + 1
			case c < 0x20 || c > 0x3f: // not a sequence after all
				return i
			}
		}
		return len(b)
	case ']':
		for i := 2; i < len(b); i++ {
			if b[i] == 0x07 {
				return i + 1
			}
			if b[i] == 0x1b {
				if i+1 < len(b) && b[i+1] == '\\' {
					return i + 2
				}
				return i
			}
		}
		return len(b)
	case '(', ')', '*', '+', '#', '%':
		return min(3, len(b))
	}
	if b[1] < utf8.RuneSelf {
		return 2
	}
	return 1
}

// A frame is one piece of a line between bare carriage returns.
type frame struct{ start, end int }

// frames splits a line on carriage returns; empty pieces are dropped, but a
// line without text is one empty frame. dst is reused.
func frames(dst []frame, line []byte) []frame {
	dst = dst[:0]
	for start := 0; ; {
		i := bytes.IndexByte(line[start:], '\r')
		if i < 0 {
			if start < len(line) || len(dst) == 0 {
				dst = append(dst, frame{start, len(line)})
			}
			return dst
		}
		if i > 0 {
			dst = append(dst, frame{start, start + i})
		}
		start += i + 1
	}
}

// afterBar returns the offset in s of what is glued behind a progress bar with
// no separator ("… 1.23s/it]Traceback …"), or 0.
func afterBar(s string) int {
	if !strings.Contains(s, "it") {
		return 0
	}
	cut := 0
	for from := 0; ; {
		i := strings.IndexByte(s[from:], ']')
		if i < 0 {
			break
		}
		i += from
		open := strings.LastIndexByte(s[:i], '[')
		if open >= 0 {
			in := s[open:i]
			if strings.Contains(in, "it/s") || strings.Contains(in, "s/it") || strings.Contains(in, "?it") {
				cut = i + 1
			}
		}
		from = i + 1
	}
	for cut < len(s) && cut > 0 && s[cut] == ' ' {
		cut++
	}
	if cut == len(s) {
		return 0
	}
	return cut
}

// isBar reports whether s is a progress bar or a piece of one.
func isBar(s string) bool {
	return strings.Contains(s, "%|") || strings.Contains(s, "it/s") || strings.Contains(s, "s/it") || strings.Contains(s, "?it/s")
}

// unescape undoes what JSON, Python's repr and HTML do to a message that they
// quote, as far as the patterns of messages care.
func unescape(s string) string {
	if !strings.ContainsAny(s, `\&`) {
		return s
	}
	return unescaper.Replace(s)
}

var unescaper = strings.NewReplacer(`\u003e`, ">", `\u003c`, "<", `\u0026`, "&", `\u0027`, "'", `\n`, " ", `\t`, " ", `\r`, " ", `\"`, `"`, `\'`, "'",
	"&gt;", ">", "&lt;", "<", "&amp;", "&", "&quot;", `"`, "&#39;", "'")
