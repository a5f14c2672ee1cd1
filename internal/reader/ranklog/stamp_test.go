package ranklog

import (
	"strings"
	"testing"
	"time"
)

func TestParseStamp(t *testing.T) {
	for _, c := range []struct {
		text, written, utc, zone string
		err                      time.Duration
		noDate, noYear           bool
	}{
		{"2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z", "Z", time.Second / 2, false, false},
		{"2026-01-02T03:04:05.5+01:00 x", "2026-01-02T03:04:05.5+01:00", "2026-01-02T02:04:05.5Z", "+01:00", time.Second / 20, false, false},
		{"2026-01-02T03:04:05-0530", "2026-01-02T03:04:05-0530", "2026-01-02T08:34:05Z", "-0530", time.Second / 2, false, false},
		{"2026-01-02 03:04:05,678 rest", "2026-01-02 03:04:05,678", "2026-01-02T03:04:05.678Z", "", time.Millisecond / 2, false, false},
		{"2026-01-02 03:04:05 UTC", "2026-01-02 03:04:05 UTC", "2026-01-02T03:04:05Z", "UTC", time.Second / 2, false, false},
		{"2026-01-02_03:04:05", "2026-01-02_03:04:05", "2026-01-02T03:04:05Z", "", time.Second / 2, false, false},
		{"2026/01/02 03:04:05.678", "2026/01/02 03:04:05.678", "2026-01-02T03:04:05.678Z", "", time.Millisecond / 2, false, false},
		{"2026-01-02 03:04:05 - x", "2026-01-02 03:04:05", "2026-01-02T03:04:05Z", "", time.Second / 2, false, false},
		{"2026-01-02 03:04:05.123456789 x", "2026-01-02 03:04:05.123456789", "2026-01-02T03:04:05.123456789Z", "", 0, false, false},
		{"01/02/2026 03:04:05 - x", "01/02/2026 03:04:05", "2026-01-02T03:04:05Z", "", time.Second / 2, false, false},
		{"01/02 03:04:05", "01/02 03:04:05", "0000-01-02T03:04:05Z", "", time.Second / 2, false, true},
		{"12-31 23:59:59 [x]", "12-31 23:59:59", "0000-12-31T23:59:59Z", "", time.Second / 2, false, true},
		{"03:04:05.25 x", "03:04:05.25", "0000-01-01T03:04:05.25Z", "", time.Second / 200, true, false},
		{"Fri Jan  2 03:04:05 2026", "Fri Jan  2 03:04:05 2026", "2026-01-02T03:04:05Z", "", time.Second / 2, false, false},
		{"Fri Jan 12 03:04:05 UTC 2026 x", "Fri Jan 12 03:04:05 UTC 2026", "2026-01-12T03:04:05Z", "UTC", time.Second / 2, false, false},
		{"Jan  2 03:04:05 h1 kernel:", "Jan  2 03:04:05", "0000-01-02T03:04:05Z", "", time.Second / 2, false, true},
		{"Jan 22 03:04:05.123456 h1", "Jan 22 03:04:05.123456", "0000-01-22T03:04:05.123456Z", "", time.Microsecond / 2, false, true},
		{"2026-13-02 03:04:05", "", "", "", 0, false, false},
		{"2026-01-02", "", "", "", 0, false, false},
		{"25:04:05 x", "", "", "", 0, false, false},
		{"January is cold", "", "", "", 0, false, false},
		{"12345678", "", "", "", 0, false, false},
	} {
		st, n := parseStamp(c.text)
		if n != len(c.written) || st.Written != c.written {
			t.Errorf("%q: took %q (%d bytes), want %q", c.text, st.Written, n, c.written)
			continue
		}
		if n == 0 {
			continue
		}
		if got := st.Time.Format(time.RFC3339Nano); got != c.utc {
			t.Errorf("%q: %s, want %s", c.text, got, c.utc)
		}
		if st.Zone != c.zone || st.Error != c.err || st.NoDate != c.noDate || st.NoYear != c.noYear || st.Clock != "wall" {
			t.Errorf("%q: %+v", c.text, st)
		}
	}
}

func TestGlogStamp(t *testing.T) {
	for text, want := range map[string]string{
		"0102 03:04:05.678": "01-02T03:04:05.678",
		"102 03:04:05.5 x":  "01-02T03:04:05.5",
		"1206 03:04:05.1":   "12-06T03:04:05.1",
		"321 03:04:05.000":  "03-21T03:04:05",
	} {
		st, n := glogStamp(text)
		if n == 0 || !st.NoYear {
			t.Errorf("%q is not read", text)
			continue
		}
		if got := st.Time.Format("01-02T15:04:05.999999999"); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"12 03:04:05", "99999 03:04:05", "1301 03:04:05.1", "0102"} {
		if _, n := glogStamp(text); n != 0 {
			t.Errorf("%q is read", text)
		}
	}
}

func TestBootStamp(t *testing.T) {
	st, ok := bootStamp("337533.314407")
	if !ok || st.Clock != "boot" || st.Time.Sub(time.Unix(0, 0)) != 337533314407*time.Microsecond || st.Error != time.Microsecond/2 {
		t.Errorf("%+v %v", st, ok)
	}
	for _, s := range []string{"", "12", ".", "1.2.3", "a.b", "99999999999.1"} {
		if _, ok := bootStamp(s); ok {
			t.Errorf("%q is read", s)
		}
	}
}

func FuzzStamp(f *testing.F) {
	for _, s := range []string{"2026-01-02T03:04:05.123Z x", "Fri Jan  2 03:04:05 UTC 2026", "01-02 03:04:05", "03:04:05,6", "Jan 2 03:04:05 +0100 2", "E102 03:04:05.1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		st, n := parseStamp(s)
		if n < 0 || n > len(s) || n > 0 && (st.Written != s[:n] || !st.Known()) || st.Error < 0 {
			t.Fatalf("%q: %d %+v", s, n, st)
		}
		if st, n := glogStamp(s); n > len(s) || n > 0 && !strings.HasPrefix(s, st.Written) {
			t.Fatalf("%q: %d %+v", s, n, st)
		}
		bootStamp(s)
	})
}
