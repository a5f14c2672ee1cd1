package ranklog

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

var levels = []struct {
	name string
	code byte
}{
	{"DEBUG", 'D'}, {"INFO", 'I'}, {"WARNING", 'W'}, {"WARN", 'W'}, {"ERROR", 'E'}, {"CRITICAL", 'F'}, {"FATAL", 'F'},
	{"debug", 'D'}, {"info", 'I'}, {"warning", 'W'}, {"error", 'E'},
}

// level reads a level word at the start of s.
func level(s string) (code byte, n int) {
	for _, l := range levels {
		if strings.HasPrefix(s, l.name) && (len(s) == len(l.name) || !nameByte(s[len(l.name)]) && !isDigit(s[len(l.name)])) {
			return l.code, len(l.name)
		}
	}
	return 0, 0
}

// peelLogger takes off one logger prefix and returns its
// length.
func peelLogger(s string, h *head) int {
	if len(s) < 4 {
		return 0
	}
	switch c := s[0]; {
	case c == '[':
		return peelBracketLogger(s, h)
	case isDigit(c):
		return peelTimeLogger(s, h)
	case c == '*' && strings.HasPrefix(s, "*** "):
		return 0
	case c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z':
		return peelWordLogger(s, h)
	}
	return 0
}

// setStamp keeps the outermost time that a program wrote: the first one with
// a date wins over one without.
func (h *head) setStamp(st evidence.Stamp) {
	if !h.stamp.Known() || h.stamp.NoDate && !st.NoDate || h.stamp.Clock != "wall" && st.Clock == "wall" {
		h.stamp = st
	}
}

func (h *head) setLevel(c byte) {
	if c != 0 {
		h.level = c
	}
}

// blank returns how many of s[i:] is blank, at most one.
func blank(s string, i int) int {
	if i < len(s) && s[i] == ' ' {
		return i + 1
	}
	return i
}

func peelBracketLogger(s string, h *head) int {
	end := strings.IndexByte(s[:min(len(s), 200)], ']')
	if end < 2 {
		return 0
	}
	in := s[1:end]
	after := end + 1
	// [E102 03:04:05.678 ProcessGroupNCCL.cpp:607] and [E ProcessGroupNCCL.cpp:737]
	if strings.IndexByte("EWIFD", in[0]) >= 0 && len(in) > 1 && (in[1] == ' ' || isDigit(in[1])) && strings.Contains(in, ".cpp:") {
		if st, n := glogStamp(in[1:]); n > 0 {
			h.setStamp(st)
		}
		h.setLevel(in[0])
		return blank(s, after)
	}
	if st, n := parseStamp(in); n > 0 {
		switch rest := in[n:]; {
		case rest == "":
			h.setStamp(st)
			return peelBracketTail(s, after, h)
		case rest[0] == ' ' || rest[0] == ',': // [2026-01-02 03:04:05 DP0 TP1] [01/02 03:04:05 d2.utils.events]:
			h.setStamp(st)
			if after < len(s) && s[after] == ':' {
				after++
			}
			return blank(s, after)
		}
		return 0
	}
	trimmed := strings.TrimLeft(in, " ")
	if st, ok := bootStamp(trimmed); ok && len(trimmed) >= 5 { // dmesg
		h.setStamp(st)
		return blank(s, after)
	}
	if len(trimmed) > 4 && trimmed[0] == '+' { // dmesg -H: seconds since the line before
		if _, ok := bootStamp(trimmed[1:]); ok {
			return blank(s, after)
		}
	}
	switch {
	case strings.HasPrefix(in, "NeMo ") && len(in) > 8: // [NeMo W 2026-01-02 03:04:05 module:123]
		if st, n := parseStamp(in[7:]); n > 0 {
			h.setStamp(st)
			h.setLevel(in[5])
			if i := strings.Index(in, " rank:"); i > 0 {
				if r, e := decimal(in, i+6); e > i+6 {
					h.setRank(r)
				}
			}
			return blank(s, after)
		}
	case in == "titan": // [titan] time - root - INFO - msg
		if after < len(s) && s[after] == ' ' {
			return after + 1
		}
	}
	if word, rest, ok := strings.Cut(in, " "); ok && len(word) < 24 { // [task 2026-01-02T03:04:05.678Z] of Taskcluster
		if st, n := parseStamp(rest); n == len(rest) && n > 0 && st.Zone != "" {
			h.setStamp(st)
			return blank(s, after)
		}
	}
	code, n := level(in)
	if n == 0 {
		return 0
	}
	switch rest := in[n:]; {
	case rest == "": // [INFO] msg
		h.setLevel(code)
		if after < len(s) && s[after] == ':' {
			after++
		}
		return blank(s, after)
	case rest[0] == '|' || rest[0] == ' ': // [INFO|trainer.py:2405] time >> msg ; [INFO|time] module:310 >> msg
		h.setLevel(code)
		if st, n := parseStamp(rest[1:]); n > 0 {
			h.setStamp(st)
		}
		at := blank(s, after)
		if st, n := parseStamp(s[at:]); n > 0 {
			h.setStamp(st)
			at += n
		}
		if i := strings.Index(s[at:min(len(s), at+120)], ">> "); i >= 0 {
			at += i + 3
		} else {
			at = blank(s, at)
		}
		return at
	}
	return 0
}

// peelBracketTail goes on behind "[time]": "[INFO] [file:line:fn] [PID:1] [RANK:3] msg"
// of DeepSpeed and Axolotl, "module: [WARNING] msg" of torch 2.1, "name INFO: msg".
func peelBracketTail(s string, at int, h *head) int {
	at = blank(s, at)
	code, n := byte(0), 0
	if at < len(s) && s[at] == '[' {
		code, n = level(s[at+1:])
		if n > 0 && at+1+n < len(s) && s[at+1+n] == ']' {
			h.setLevel(code)
			at = blank(s, at+n+2)
			for range 4 {
				if at >= len(s) || s[at] != '[' {
					break
				}
				end := strings.IndexByte(s[at:min(len(s), at+160)], ']')
				if end < 0 {
					break
				}
				in := s[at+1 : at+end]
				pid := strings.HasPrefix(in, "PID:")
				rank := strings.HasPrefix(in, "RANK:")
				switch {
				case pid:
					if v, e := decimal(in, 4); e > 4 {
						h.who.PID = v
					}
				case rank: // it is LOCAL_RANK
					if v, e := decimal(in, 5); e > 5 && h.who.Rank == evidence.None {
						h.who.LocalRank = v
					}
				case strings.Contains(in, " "), in == "", lastFold(in, "rank") >= 0:
					return at // [Rank 0] belongs to the message
				}
				at = blank(s, at+end+1)
			}
		}
		return at
	}
	// module: [WARNING] msg
	if i := strings.Index(s[at:min(len(s), at+120)], ": ["); i > 0 && !strings.Contains(s[at:at+i], " ") {
		if code, n = level(s[at+i+3:]); n > 0 && strings.HasPrefix(s[at+i+3+n:], "]") {
			h.setLevel(code)
			return blank(s, at+i+3+n+1)
		}
	}
	// name INFO: msg
	if i := strings.IndexByte(s[at:min(len(s), at+100)], ' '); i > 0 {
		if code, n = level(s[at+i+1:]); n > 0 && strings.HasPrefix(s[at+i+1+n:], ":") {
			h.setLevel(code)
			return blank(s, at+i+1+n+1)
		}
	}
	if code, n = level(s[at:]); n > 0 { // [time] ERROR msg
		h.setLevel(code)
		at += n
		if at < len(s) && s[at] == ':' {
			at++
		}
		return blank(s, at)
	}
	return at
}

// peelTimeLogger reads prefixes that begin with a time.
func peelTimeLogger(s string, h *head) int {
	st, at := parseStamp(s)
	if at == 0 || at < len(s) && strings.IndexByte(" :|\t-[", s[at]) < 0 {
		return 0
	}
	h.setStamp(st)
	rest := s[at:]
	switch {
	case strings.HasPrefix(rest, ": ") && len(rest) > 4 && strings.IndexByte("IWEF", rest[2]) >= 0 && rest[3] == ' ': // TF: ": W path.cc:497] "
		h.setLevel(rest[2])
		if i := strings.Index(rest[:min(len(rest), 160)], "] "); i > 0 && !strings.Contains(rest[4:i], " ") {
			return at + i + 2
		}
		return at + 4
	case strings.HasPrefix(rest, " | "), strings.HasPrefix(rest, " - "): // " - name - INFO - msg", " | INFO | name | msg"
		return at + peelFields(rest, rest[1:2], h)
	case strings.HasPrefix(rest, ": "):
		return at + 2
	}
	at = blank(s, at)
	if at < len(s) && s[at] == '\t' {
		at++
	}
	return at + peelLevelWord(s[at:], h)
}

// peelFields reads up to four fields between sep, one of which is a level:
// " - root - INFO - msg". Without a level among them only the time is taken.
func peelFields(s, sep string, h *head) int {
	d := " " + sep + " "
	at := len(d)
	for range 4 {
		i := strings.Index(s[at:min(len(s), at+120)], d)
		if i < 0 {
			return len(d)
		}
		field := strings.TrimSpace(s[at : at+i])
		at += i + len(d)
		if code, n := level(field); n > 0 && n == len(field) {
			h.setLevel(code)
			// fairseq: | INFO | train_inner | msg
			// accelerate: - INFO - __main__ - msg
			if j := strings.Index(s[at:min(len(s), at+80)], d); j > 0 && !strings.ContainsAny(s[at:at+j], " ()[]:=") {
				at += j + len(d)
			}
			return at
		}
	}
	return len(d)
}

// peelLevelWord reads "INFO msg", "INFO: msg", "ERROR [module] msg" behind a time.
func peelLevelWord(s string, h *head) int {
	code, n := level(s)
	open := 0
	if n == 0 && strings.HasPrefix(s, "[") {
		if code, n = level(s[1:]); n > 0 {
			if !strings.HasPrefix(s[1+n:], "]") {
				return 0
			}
			open, n = 1, n+2
		}
	}
	if n == 0 || n < len(s) && strings.IndexByte(" :\t", s[n]) < 0 {
		return 0
	}
	if strings.ToUpper(s[open:open+1]) != s[open:open+1] && !strings.HasPrefix(s[n:], ":") {
		return 0 // "error while …" is a sentence
	}
	h.setLevel(code)
	for n < len(s) && (s[n] == ':' || s[n] == ' ' || s[n] == '\t') {
		n++
	}
	return n
}

// peelWordLogger reads prefixes that begin with a letter: glog, vLLM, Python's
// default "LEVEL:name:msg", syslog.
func peelWordLogger(s string, h *head) int {
	if strings.IndexByte("IWEF", s[0]) >= 0 && isDigit(s[1]) { // W0102 03:04:05.678000 123456 file.py:757] msg
		st, n := glogStamp(s[1:])
		if n == 0 {
			return 0
		}
		end := strings.Index(s[:min(len(s), 240)], "] ")
		if end < 0 {
			if !strings.HasSuffix(s, "]") {
				return 0
			}
			end = len(s) - 2
		}
		h.setStamp(st)
		h.setLevel(s[0])
		if pid, e := decimal(s, blank(s, 1+n)); e > blank(s, 1+n) && e < len(s) && s[e] == ' ' && h.who.PID == evidence.None {
			h.who.PID = pid
		}
		return min(end+2, len(s))
	}
	if code, n := level(s); n > 0 && n < len(s) && s[0] < 'a' {
		switch {
		case s[n] == ' ': // INFO 01-02 03:04:05 [core.py:69] msg
			st, m := parseStamp(s[n+1:])
			if m == 0 {
				return 0
			}
			h.setStamp(st)
			h.setLevel(code)
			at := blank(s, n+1+m)
			if i := strings.Index(s[at:min(len(s), at+80)], "] "); i > 0 && !strings.Contains(s[at:at+i], " ") {
				at += i + 2
			}
			return at
		case s[n] == ':' && n+1 < len(s) && s[n+1] != ' ': // ERROR:torch.distributed.x:msg
			i := strings.IndexByte(s[n+1:min(len(s), n+160)], ':')
			if i <= 0 || strings.Contains(s[n+1:n+1+i], " ") {
				return 0
			}
			h.setLevel(code)
			return n + 1 + i + 1
		}
		return 0
	}
	st, n := parseStamp(s)
	if n == 0 || n >= len(s) || s[n] != ' ' {
		return 0
	}
	// syslog: "Jan  2 03:04:05 host kernel: msg", "… host prog[123]: msg"
	host, rest, ok := strings.Cut(s[n+1:], " ")
	i := strings.Index(rest[:min(len(rest), 64)], ": ")
	if !ok || i <= 0 || !hostName(host) || strings.Contains(rest[:i], " ") {
		h.setStamp(st)
		if ok && hostName(host) && strings.ContainsAny(host, "-0123456789") && s[3] == ' ' { // no colon, but syslog's order
			h.who.Host = host
		}
		return n + 1
	}
	h.setStamp(st)
	st.Host, h.who.Host = host, host
	h.stamp.Host = host
	if strings.HasPrefix(rest, "kernel: ") {
		return n + 1 + len(host) + 1 + i + 2
	}
	return n + 1 + len(host) + 1 // the program name stays: systemd-oomd[1]: …
}
