package kernlog

import (
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// A pair is one instant on both clocks of a host.
type pair struct {
	seconds time.Duration // since boot
	wall    evidence.Stamp
	err     time.Duration
	boot    int
}

// clocks collect what ties seconds since boot to a date. Where nothing does, the
// stamps stay on the clock of the boot.
type clocks struct {
	pairs []pair
	texts map[string]time.Duration // of records of the boot clock, to find them again with a date

	date   evidence.Stamp // of a date line not yet paired
	up     time.Duration  // of an uptime line not yet paired
	upErr  time.Duration
	upSeen bool
}

const (
	maxPairs = 64
	maxTexts = 4096
	// drift bounds how far the clock of the boot runs from the corrected one, per
	// unit of time: crystals are good to 100 ppm.
	drift = 0.0002
)

var (
	// setClock is what the kernel says when it takes the date from the board's clock
	// (drivers/rtc/class.c): before 5.0 with a blank, since with T.
	setClock  = lazyre.New(`setting system clock to (\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d) UTC`)
	bootTime  = lazyre.New(`^btime (\d{9,11})$`)
	upSince   = lazyre.New(`^(?:\s*system boot\s+)?(\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?)\s*$`)
	whoBoot   = lazyre.New(`^\s*system boot\s+\d{4}`)
	upLine    = lazyre.New(`^\s*(\d\d):(\d\d)(?::(\d\d))? up +(?:(\d+) days?, +)?(?:(\d+):(\d\d)|(\d+) min),`)
	procUp    = lazyre.New(`^(\d{1,10}\.\d\d) \d{1,12}\.\d\d$`)
	dateLine  = lazyre.New(`^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?:([A-Z]{3,5}|[+-]\d\d) )?\d{4}$`)
	date2     = lazyre.New(`^[A-Z][a-z]{2} +\d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d (?:AM|PM) [A-Z]{3,5}$`)
	isoLine   = lazyre.New(`^(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?)(Z|[+-]\d\d:?\d\d)?$`)
	shellLine = lazyre.New(`^(?:\S+@\S+[$#] |[$#] |\+ )(.+)$`)
)

func (c *clocks) add(p pair) {
	if len(c.pairs) < maxPairs {
		c.pairs = append(c.pairs, p)
	}
}

func sinceBoot(s evidence.Stamp) time.Duration { return s.Time.Sub(time.Unix(0, 0).UTC()) }

// note learns from a record: both clocks in one, the date that the kernel took at
// boot, or the text of one with seconds that comes again with a date.
func (c *clocks) note(r *record) {
	if r.other.Clock == "boot" && r.stamp.Clock == "wall" && r.stamp.Known() {
		// syslog takes the record some time after the kernel wrote it.
		c.add(pair{sinceBoot(r.other), r.stamp, r.stamp.Error + time.Second, r.boot})
		return
	}
	if !r.stamp.Known() {
		return
	}
	if r.stamp.Clock == "boot" {
		if !strings.Contains(r.text, "setting system clock to ") {
		} else if m := setClock.FindStringSubmatch(r.text); m != nil {
			if st, ok := isoStamp(m[1]+"T"+m[2], "Z"); ok {
				c.add(pair{sinceBoot(r.stamp), st, time.Second, r.boot})
			}
		}
		if len(r.text) >= 30 {
			if c.texts == nil {
				c.texts = map[string]time.Duration{}
			}
			if _, again := c.texts[r.text]; again {
				c.texts[r.text] = -1 // it stands several times: no proof
			} else if len(c.texts) < maxTexts {
				c.texts[r.text] = sinceBoot(r.stamp)
			}
		}
		return
	}
	if r.shape == bracketDate || r.shape == isoDate {
		if at, ok := c.texts[r.text]; ok && at >= 0 {
			c.add(pair{at, r.stamp, r.stamp.Error + time.Second, r.boot})
		}
	}
}

// header reads a line beside the records: a command, the date, how long the machine
// is up, when it booted. It reports whether it knew the line.
func (c *clocks) header(text string, f *framer) bool {
	if !plausible(text) {
		return false
	}
	if m := shellLine.FindStringSubmatch(text); m != nil {
		f.command = m[1]
		return true
	}
	if m := bootTime.FindStringSubmatch(strings.TrimSpace(text)); m != nil {
		n, err := strconv.ParseInt(m[1], 10, 64)
		if err == nil {
			c.add(pair{0, evidence.Stamp{Time: time.Unix(n, 0).UTC(), Written: m[1], Zone: "Z", Clock: "wall"}, time.Second, f.boots})
		}
		return true
	}
	if m := upSince.FindStringSubmatch(text); m != nil && (whoBoot.MatchString(text) || strings.Contains(f.command, "uptime -s")) {
		written, err := m[1], time.Second
		if len(written) == 16 {
			written, err = written+":30", 30*time.Second
		}
		if st, ok := isoStamp(written, ""); ok {
			c.add(pair{0, st, err + time.Second, f.boots})
		}
		return true
	}
	if m := upLine.FindStringSubmatch(text); m != nil {
		days, h, min, only := whole(m[4]), whole(m[5]), whole(m[6]), whole(m[7])
		c.up = time.Duration(days*24+h)*time.Hour + time.Duration(min+only)*time.Minute + 30*time.Second
		c.upErr, c.upSeen = 30*time.Second, true
		c.join(f)
		return true
	}
	if m := procUp.FindStringSubmatch(text); m != nil && (strings.Contains(f.command, "uptime") || c.date.Known()) {
		sec, _ := strconv.ParseFloat(m[1], 64)
		c.up, c.upErr, c.upSeen = time.Duration(sec*100)*10*time.Millisecond, 10*time.Millisecond, true
		c.join(f)
		return true
	}
	if st, ok := dateOf(text); ok {
		c.date = st
		c.join(f)
		return true
	}
	return false
}

// plausible reports whether text can be one of the lines that header knows.
func plausible(text string) bool {
	if len(text) > 1024 || text == "" {
		return false
	}
	switch c := text[0]; {
	case c == '$' || c == '#' || c == '+' || c == ' ' || c >= '0' && c <= '9' || strings.HasPrefix(text, "btime "):
		return true
	case c >= 'A' && c <= 'Z':
		return len(text) < 48 || strings.Contains(text, "@")
	}
	return strings.Contains(text, "@")
}

// join makes a pair of a date and an uptime that stand together.
func (c *clocks) join(f *framer) {
	if c.upSeen && c.date.Known() {
		c.add(pair{c.up, c.date, c.date.Error + c.upErr + 2*time.Second, f.boots})
		c.upSeen, c.date = false, evidence.Stamp{}
	}
}

func whole(s string) int {
	n, _ := strconv.Atoi(s)
	return min(n, 1<<20)
}

// dateOf reads the line that date prints, in its own forms and with -Is.
func dateOf(text string) (evidence.Stamp, bool) {
	text = strings.TrimSpace(text)
	if m := dateLine.FindStringSubmatch(text); m != nil {
		layout := "Mon Jan _2 15:04:05 2006"
		plain := text
		if m[1] != "" {
			plain = strings.Replace(text, m[1]+" ", "", 1)
		}
		t, err := time.Parse(layout, plain)
		st := evidence.Stamp{Time: t, Written: text, Error: time.Second / 2, Clock: "wall"}
		if m[1] == "UTC" || m[1] == "GMT" {
			st.Zone = "UTC"
		}
		return st, err == nil
	}
	if date2.MatchString(text) {
		at := strings.LastIndexByte(text, ' ')
		t, err := time.Parse("Mon _2 Jan 2006 03:04:05 PM", strings.Join(strings.Fields(text[:at]), " "))
		st := evidence.Stamp{Time: t, Written: text, Error: time.Second / 2, Clock: "wall"}
		if z := text[at+1:]; z == "UTC" || z == "GMT" {
			st.Zone = "UTC"
		}
		return st, err == nil
	}
	if m := isoLine.FindStringSubmatch(text); m != nil {
		return isoStamp(m[1], m[2])
	}
	return evidence.Stamp{}, false
}

// tie puts a stamp on the clock of the boot onto the date, by the nearest pair of
// the same boot, with an error that grows with the distance.
func (c *clocks) tie(s *evidence.Stamp, boot int) {
	if !s.Known() || s.Clock != "boot" {
		return
	}
	at := sinceBoot(*s)
	best, least := -1, time.Duration(0)
	for i, p := range c.pairs {
		if p.boot != boot {
			continue
		}
		if e := p.err + time.Duration(drift*float64((at-p.seconds).Abs())); best < 0 || e < least {
			best, least = i, e
		}
	}
	if best < 0 {
		return
	}
	p := c.pairs[best]
	s.Time = p.wall.Time.Add(at - p.seconds)
	s.Zone, s.NoYear, s.Clock = p.wall.Zone, p.wall.NoYear, "wall"
	s.Error += least
}
