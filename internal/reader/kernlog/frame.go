package kernlog

import (
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// A shape is a way in which a record is framed.
type shape uint8

const (
	noShape     shape = iota
	bootSeconds       // [ 1234.567890] text
	bracketDate       // [Tue Mar  3 11:02:19 2026] text
	bracketHour       // [Mar 3 11:02] text, [  +0.000004] text
	isoDate           // 2026-03-03T11:02:19,123456+00:00 text
	kmsg              // 6,1234,5678,-;text
	syslog            // Mar  3 11:02:19 host ident[pid]: text
	journal           // a record of the journal with its fields
	fabric            // [Mar 03 2026 11:02:19] [INFO] [tid 1803] text
)

// kernelOnly reports whether nothing but a kernel log has that shape.
func (s shape) kernelOnly() bool {
	switch s {
	case bootSeconds, bracketHour, kmsg, fabric, journal:
		return true
	}
	return false
}

// A record is one message with what frames it.
type record struct {
	shape  shape
	stamp  evidence.Stamp
	other  evidence.Stamp // of the other clock, where the record has both
	boot   int            // ordinal of the boot in the file
	host   string
	ident  string // who wrote it: kernel, or a program
	pid    int    // of that program
	kernel bool
	text   string // the message
	line   string // the whole line
	device string // bus id that the framing states
	order  int64  // place in a crash dump
	span   evidence.Span
}

type verdict uint8

const (
	notFramed verdict = iota
	isRecord
	isContinuation
	isHeader
)

// A framer takes the frame off lines and keeps what later ones need.
type framer struct {
	shape    shape          // of the record before
	delta    evidence.Stamp // the last stamp of -H
	boots    int            // boots begun after the first
	highest  float64        // largest seconds since boot in this one
	command  string         // the command line before
	dump     int64          // of pstore: 1-based, from the header
	part     int64
	inPart   int64
	lastLine int64
}

var (
	facilityLevel = lazyre.New(`^(?:kern|user|mail|daemon|auth|syslog|lpr|news|uucp|cron|authpriv|ftp|local[0-7]) *:(?:emerg|alert|crit|err|warn|notice|info|debug) *: `)
	priority      = lazyre.New(`^<\d{1,3}>`)
	deltaMark     = lazyre.New(`^ <[ \d.+-]+>\]`)
	callerMark    = lazyre.New(`^\[ *[TC]\d+(?:@C\d+)?\] ?`)
	deltaFrame    = lazyre.New(`^\[ *\+(\d+\.\d{6})\] ?`)
	hourFrame     = lazyre.New(`^\[([A-Z][a-z]{2}) ?(\d{1,2}) (\d\d:\d\d)\] ?`)
	dateFrame     = lazyre.New(`^\[([A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})(?: <[ \d.+-]+>)?\] ?`)
	fabricFrame   = lazyre.New(`^\[([A-Z][a-z]{2} [ \d]\d \d{4} \d\d:\d\d:\d\d)\] \[([A-Z]+)\] \[tid \d+\] ?`)
	fullFrame     = lazyre.New(`^[A-Z][a-z]{2} (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?) ([A-Z]{3,5}) `)
	unixFrame     = lazyre.New(`^(\d{9,11}\.\d{3,6}) `)
	version5424   = lazyre.New(`^1 (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?)(Z|[+-]\d\d:\d\d) (\S+) (\S+) (\S+) (\S+) (?:-|\[.*?\]) ?`)
	dumpPart      = lazyre.New(`^(?:Panic|Oops|Emergency|Restart|Halt|Poweroff|Shutdown|Unknown)#(\d{1,6}) Part ?(\d{1,6})$`)
	separator     = lazyre.New(`^-- (?:Logs begin at|Journal begins at|Boot [0-9a-f]|Reboot --|No entries)`)
	shadowed      = lazyre.New(`^\s{2,}\S|^\t`)
)

// frame takes the frame off a clean line.
func (f *framer) frame(s string) (record, verdict) {
	r := record{pid: evidence.None}
	rest := s
	if s != "" && s[0] >= 'a' && s[0] <= 'z' && strings.Contains(s[:min(len(s), 10)], ":") {
		if m := facilityLevel.FindString(rest); m != "" {
			rest = rest[len(m):]
			r.kernel = strings.HasPrefix(m, "kern")
		}
	}
	prio := ""
	if strings.HasPrefix(rest, "<") {
		prio = priority.FindString(rest)
	}
	if prio != "" {
		rest = rest[len(prio):]
		n, _ := strconv.Atoi(prio[1 : len(prio)-1])
		r.kernel = n < 8
	}
	if rest == "" {
		return r, notFramed
	}
	switch c := rest[0]; {
	case c == '[':
		return f.bracket(r, rest)
	case c >= '0' && c <= '9':
		return f.numeric(r, rest, prio != "")
	case c >= 'A' && c <= 'Z':
		if len(rest) > 40 || !strings.Contains(rest, "#") {
		} else if m := dumpPart.FindStringSubmatch(rest); m != nil {
			f.dump, _ = strconv.ParseInt(m[1], 10, 64)
			f.part, _ = strconv.ParseInt(m[2], 10, 64)
			f.inPart, f.highest, f.shape = 0, 0, noShape
			return r, isHeader
		}
		return f.named(r, rest)
	case c == '-' && separator.MatchString(rest):
		if strings.HasPrefix(rest, "-- Boot") || strings.HasPrefix(rest, "-- Reboot") {
			f.boots++
			f.highest = 0
		}
		return r, isHeader
	case c == '{':
		return f.object(rest)
	}
	if f.follows(s) {
		return r, isContinuation
	}
	return r, notFramed
}

// follows reports whether an unframed line goes on with the record before it:
// fields of /dev/kmsg, the body of a fabric manager message, further lines of a
// message that the journal or dmesg indents.
func (f *framer) follows(s string) bool {
	switch f.shape {
	case noShape:
		return false
	case kmsg:
		return strings.HasPrefix(s, " ")
	case fabric:
		return true
	}
	return shadowed.MatchString(s)
}

func (f *framer) is(r record, sh shape, text string) (record, verdict) {
	f.shape, r.shape, r.boot = sh, sh, f.boots
	r.text = text
	if f.part > 0 {
		f.inPart++
		// The highest part of a dump is the oldest.
		r.order = f.dump*1e12 + (1e6-f.part)*1e5 + min(f.inPart, 99_999)
	}
	return r, isRecord
}

func (f *framer) bracket(r record, s string) (record, verdict) {
	if written, rest, ok := bootFrame(s); ok {
		r.stamp = f.bootStamp(written)
		r.kernel = true
		if w, n := writer(rest); n > 0 && (w.kernel || w.pid != evidence.None) { // journalctl -o short-monotonic
			r.host, r.ident, r.kernel, r.pid = w.host, w.ident, w.kernel, w.pid
			rest = rest[n:]
		}
		return f.is(r, bootSeconds, rest)
	}
	if m := dateFrame.FindStringSubmatch(s); m != nil {
		t, err := time.Parse("Mon Jan _2 15:04:05 2006", m[1])
		if err != nil {
			return r, notFramed
		}
		// dmesg works the date out from the clock of now: a second is what it prints.
		r.stamp = evidence.Stamp{Time: t, Written: m[1], Error: time.Second, Clock: "wall"}
		r.kernel = true
		return f.is(r, bracketDate, s[len(m[0]):])
	}
	if m := fabricFrame.FindStringSubmatch(s); m != nil {
		t, err := time.Parse("Jan _2 2006 15:04:05", m[1])
		if err != nil {
			return r, notFramed
		}
		r.stamp = evidence.Stamp{Time: t, Written: m[1], Error: time.Second / 2, Clock: "wall"}
		r.ident = "nv-fabricmanager"
		return f.is(r, fabric, s[len(m[0]):])
	}
	if m := hourFrame.FindStringSubmatch(s); m != nil {
		t, err := time.Parse("Jan 2 15:04", m[1]+" "+m[2]+" "+m[3])
		if err != nil {
			return r, notFramed
		}
		// The minute is written once; the record lies somewhere in it.
		f.delta = evidence.Stamp{Time: t.Add(30 * time.Second), Written: s[1 : len(strings.TrimRight(m[0], " "))-1], Error: 30 * time.Second, NoYear: true, Clock: "wall"}
		r.stamp, r.kernel = f.delta, true
		return f.is(r, bracketHour, s[len(m[0]):])
	}
	if m := deltaFrame.FindStringSubmatch(s); m != nil {
		if sec, err := strconv.ParseFloat(m[1], 64); err == nil && f.delta.Known() && sec < 1e9 {
			f.delta.Time = f.delta.Time.Add(time.Duration(sec * float64(time.Second)))
			f.delta.Written = "+" + m[1]
		}
		r.stamp, r.kernel = f.delta, true
		return f.is(r, bracketHour, s[len(m[0]):])
	}
	return r, notFramed
}

// bootStamp is the stamp of seconds since boot. A value far below those before
// begins another boot.
func (f *framer) bootStamp(written string) evidence.Stamp {
	sec, err := strconv.ParseFloat(written, 64)
	if err != nil || sec > 9e9 {
		return evidence.Stamp{}
	}
	if sec+60 < f.highest && f.part == 0 {
		f.boots++
		f.highest = sec
	}
	f.highest = max(f.highest, sec)
	return evidence.Stamp{Time: time.Unix(0, 0).UTC().Add(time.Duration(sec*1e6).Round(1) * time.Microsecond), Written: written, Error: time.Microsecond, Clock: "boot"}
}

func (f *framer) numeric(r record, s string, prio bool) (record, verdict) {
	if n, written, text, ok := kmsgFrame(s); ok {
		us, err := strconv.ParseInt(written, 10, 64)
		if err != nil || us > 9e15 {
			return r, notFramed
		}
		r.stamp = f.bootStamp(strconv.FormatFloat(float64(us)/1e6, 'f', 6, 64))
		r.stamp.Written = written
		r.kernel = n>>3 == 0
		return f.is(r, kmsg, unescape(text))
	}
	if m := version5424.FindStringSubmatch(s); prio && m != nil {
		st, ok := isoStamp(m[1], m[2])
		if !ok {
			return r, notFramed
		}
		r.stamp, r.host, r.ident, r.pid = st, dash(m[3]), dash(m[4]), number(m[5])
		r.kernel = r.ident == "kernel"
		return f.is(r, syslog, f.inner(&r, strings.TrimPrefix(s[len(m[0]):], "\ufeff")))
	}
	var st evidence.Stamp
	rest := ""
	if written, zone, n := isoFrame(s); n > 0 {
		var ok bool
		if st, ok = isoStamp(written, zone); !ok {
			return r, notFramed
		}
		rest = s[n:]
	} else if m := unixFrame.FindStringSubmatch(s); m != nil {
		sec, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return r, notFramed
		}
		st = evidence.Stamp{Time: time.Unix(0, 0).UTC().Add(time.Duration(sec*1e6) * time.Microsecond), Written: m[1], Zone: "Z", Error: time.Microsecond, Clock: "wall"}
		rest = s[len(m[0]):]
	} else {
		return r, notFramed
	}
	r.stamp = st
	if w, n := writer(rest); n > 0 {
		r.host, r.ident, r.pid, r.kernel = w.host, w.ident, w.pid, w.kernel
		return f.is(r, syslog, f.inner(&r, rest[n:]))
	}
	if !strings.Contains(st.Written, ",") { // dmesg --time-format iso has a comma; other programs' logs have not
		return r, notFramed
	}
	r.kernel = true
	return f.is(r, isoDate, rest)
}

func (f *framer) named(r record, s string) (record, verdict) {
	if len(s) < 20 || s[3] != ' ' || s[8] != '-' {
	} else if m := fullFrame.FindStringSubmatch(s); m != nil { // journalctl -o short-full
		st, ok := isoStamp(m[1], "")
		if !ok {
			return r, notFramed
		}
		if m[2] == "UTC" || m[2] == "GMT" {
			st.Zone = "UTC"
		}
		return f.written(r, st, s[len(m[0]):])
	}
	if len(s) >= 16 && s[3] == ' ' && s[6] == ' ' && s[9] == ':' {
		clock, rest, _ := strings.Cut(s[7:], " ")
		written := s[:7] + clock
		t, err := time.Parse("Jan _2 15:04:05", written)
		if err != nil {
			return r, notFramed
		}
		return f.written(r, evidence.Stamp{Time: t, Written: written, NoYear: true, Error: resolution(written), Clock: "wall"}, rest)
	}
	if f.follows(s) {
		return r, isContinuation
	}
	return r, notFramed
}

// written finishes a line of syslog: host, writer and text follow its time.
func (f *framer) written(r record, st evidence.Stamp, rest string) (record, verdict) {
	w, n := writer(rest)
	if n == 0 {
		return r, notFramed
	}
	r.stamp = st
	r.host, r.ident, r.pid, r.kernel = w.host, w.ident, w.pid, w.kernel
	return f.is(r, syslog, f.inner(&r, rest[n:]))
}

// inner takes seconds since boot off the text of a kernel record in a syslog file.
func (f *framer) inner(r *record, s string) string {
	if !r.kernel {
		return s
	}
	if written, rest, ok := bootFrame(s); ok {
		r.other = f.bootStamp(written)
		r.boot = f.boots
		return rest
	}
	return s
}

// isoStamp reads an ISO 8601 time whose zone, if any, stands apart.
func isoStamp(written, zone string) (evidence.Stamp, bool) {
	s := strings.Replace(strings.Replace(written, " ", "T", 1), ",", ".", 1)
	t, err := time.Parse("2006-01-02T15:04:05", s)
	if err != nil {
		return evidence.Stamp{}, false
	}
	st := evidence.Stamp{Time: t, Written: written + zone, Zone: zone, Error: resolution(written), Clock: "wall"}
	if len(zone) >= 5 {
		z := strings.Replace(zone, ":", "", 1)
		if len(z) != 5 { // "+0:00" is no zone
			return evidence.Stamp{}, false
		}
		h, e1 := strconv.Atoi(z[1:3])
		m, e2 := strconv.Atoi(z[3:5])
		if e1 != nil || e2 != nil || h > 14 || m > 59 {
			return evidence.Stamp{}, false
		}
		off := time.Duration(h)*time.Hour + time.Duration(m)*time.Minute
		if zone[0] == '-' {
			off = -off
		}
		st.Time = st.Time.Add(-off)
	}
	return st, true
}

// resolution is half the last digit that a time is written with.
func resolution(written string) time.Duration {
	i := strings.LastIndexAny(written, ".,")
	if i < 0 {
		return time.Second / 2
	}
	d := time.Second / 2
	for range len(written) - i - 1 {
		d /= 10
	}
	return max(d, 1)
}

// wrote is who wrote a record of syslog or the journal.
type wrote struct {
	host, ident string
	pid         int
	kernel      bool
}

// writer takes "host ident[pid]: " off s and returns how long it is, 0 if s does not
// begin so.
func writer(s string) (wrote, int) {
	host := strings.IndexByte(s[:min(len(s), 254)], ' ')
	if host < 1 || s[host-1] == ':' || s[host-1] == ']' {
		return wrote{}, 0
	}
	for _, c := range []byte(s[:host]) {
		if !nameByte(c) {
			return wrote{}, 0
		}
	}
	rest := s[host+1:]
	w := wrote{host: s[:host], pid: evidence.None}
	end := strings.IndexAny(rest[:min(len(rest), 80)], " :[")
	if end < 1 {
		return wrote{}, 0
	}
	w.ident = rest[:end]
	if rest[end] == '[' {
		n := digits(rest[end+1:])
		if n == 0 || n > 10 || !strings.HasPrefix(rest[end+1+n:], "]:") {
			return wrote{}, 0
		}
		w.pid = number(rest[end+1 : end+1+n])
		end += n + 2
	}
	if rest[end] != ':' {
		return wrote{}, 0
	}
	end++
	if end < len(rest) {
		if rest[end] != ' ' {
			return wrote{}, 0
		}
		end++
	}
	w.kernel = w.ident == "kernel"
	return w, host + 1 + end
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.' || c == ':'
}

// isoFrame takes "2026-03-03T11:02:19.123456+00:00 " off s: what is written of the
// time, the zone, and the length.
func isoFrame(s string) (written, zone string, n int) {
	if len(s) < 20 || s[4] != '-' || s[7] != '-' || s[10] != 'T' && s[10] != ' ' || s[13] != ':' || s[16] != ':' {
		return "", "", 0
	}
	end := 19
	if s[end] == '.' || s[end] == ',' {
		f := digits(s[end+1:])
		if f == 0 || f > 9 {
			return "", "", 0
		}
		end += 1 + f
	}
	at := end
	switch {
	case end < len(s) && s[end] == 'Z':
		at++
	case end < len(s) && (s[end] == '+' || s[end] == '-'):
		at++
		at += digits(s[at:])
		if at < len(s) && s[at] == ':' {
			at++
			at += digits(s[at:])
		}
		if at-end != 5 && at-end != 6 {
			return "", "", 0
		}
	}
	if at >= len(s) || s[at] != ' ' {
		return "", "", 0
	}
	return s[:end], s[end:at], at + 1
}

func dash(s string) string {
	if s == "-" {
		return ""
	}
	return s
}

// number reads a process id, evidence.None where there is none.
func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 1<<31 {
		return evidence.None
	}
	return n
}

// unescape undoes the "\x0a" of /dev/kmsg.
func unescape(s string) string {
	if !strings.Contains(s, `\x`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) && s[i+1] == 'x' {
			if n, err := strconv.ParseUint(s[i+2:i+4], 16, 8); err == nil {
				if n >= ' ' && n < 0x7f {
					b.WriteByte(byte(n))
				} else {
					b.WriteByte(' ')
				}
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// digits returns how many digits s begins with.
func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// bootFrame takes "[   12.345678] " off s, with the time to the record before (-d)
// and the caller ([T1], [C3], [T1@C3]) where they are printed.
func bootFrame(s string) (written, rest string, ok bool) {
	if s == "" || s[0] != '[' {
		return "", "", false
	}
	at := 1
	for at < len(s) && s[at] == ' ' {
		at++
	}
	whole := digits(s[at:])
	if whole == 0 || at+whole+8 > len(s) || s[at+whole] != '.' || digits(s[at+whole+1:]) != 6 {
		return "", "", false
	}
	end := at + whole + 7
	written, rest = s[at:end], s[end:]
	if rest[0] == ']' {
		rest = rest[1:]
	} else if m := deltaMark.FindString(rest); m != "" {
		rest = rest[len(m):]
	} else {
		return "", "", false
	}
	if m := ""; strings.HasPrefix(rest, "[") || strings.HasPrefix(rest, " [") {
		if m = callerMark.FindString(strings.TrimPrefix(rest, " ")); m != "" {
			return written, strings.TrimPrefix(rest, " ")[len(m):], true
		}
	}
	return written, strings.TrimPrefix(rest, " "), true
}

// kmsgFrame takes "prio,seq,usec,flags;" off s.
func kmsgFrame(s string) (prio int, usec, text string, ok bool) {
	n := digits(s)
	if n == 0 || n > 6 || n >= len(s) || s[n] != ',' {
		return 0, "", "", false
	}
	prio, _ = strconv.Atoi(s[:n])
	rest := s[n+1:]
	if n = digits(rest); n == 0 || n >= len(rest) || rest[n] != ',' {
		return 0, "", "", false
	}
	rest = rest[n+1:]
	if n = digits(rest); n == 0 || n >= len(rest) || rest[n] != ',' {
		return 0, "", "", false
	}
	usec, rest = rest[:n], rest[n+1:]
	_, text, ok = strings.Cut(rest, ";")
	return prio, usec, text, ok
}
