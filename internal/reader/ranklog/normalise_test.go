package ranklog

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for _, c := range []struct{ raw, want string }{
		{"plain text  \t", "plain text"},
		{"\x1b[38;2;1;2;3mloss\x1b[0m: 2", "loss: 2"},
		{"\x1b]0;title\x07text", "text"},
		{"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"},
		{"10/20\b\b\b\b\b11/20", "11/20"},
		{"\b\bx", "x"},
		{"é\bx", "x"},
		{"a\x00b\x01c", "abc"},
		{"bad \xff byte", "bad \uFFFD byte"},
		{"\xef\xbb\xbfafter a mark", "after a mark"},
		{"cut \x1b[31", "cut"},
		{"cut \x1b", "cut"},
		{"\x1b(Btext\x1b=", "text"},
		{"bar ███▌", "bar ███▌"},
		{"c1 \u009b31m", "c1 31m"},
		{"", ""},
	} {
		if got := clean([]byte(c.raw)); got != c.want {
			t.Errorf("clean(%q) = %q, want %q", c.raw, got, c.want)
		}
	}
}

func TestFrames(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"one", "one"},
		{"\ra\rb\r", "a|b"},
		{"a\r\r\rb", "a|b"},
		{"", ""},
		{"\r", ""},
	} {
		var got []string
		for _, f := range frames(nil, []byte(c.line)) {
			got = append(got, c.line[f.start:f.end])
		}
		if s := strings.Join(got, "|"); s != c.want {
			t.Errorf("frames(%q) = %q, want %q", c.line, s, c.want)
		}
	}
}

func TestAfterBar(t *testing.T) {
	for line, want := range map[string]string{
		"12%|#2 | 3/25 [00:01<00:07,  1.23s/it]Traceback (most": "Traceback (most",
		"5/9 [00:01<00:07, 4.1it/s, v_num=1][E Process":         "[E Process",
		"5/9 [00:01<00:07, ?it/s]  RuntimeError: x":             "RuntimeError: x",
		"5/9 [00:01<00:07, 4.1it/s]":                            "",
		"commit [abc]":                                          "",
	} {
		got := ""
		if n := afterBar(line); n > 0 {
			got = line[n:]
		}
		if got != want {
			t.Errorf("afterBar(%q): %q, want %q", line, got, want)
		}
	}
}

func TestUnframe(t *testing.T) {
	for _, c := range []struct {
		line, body, stream, time string
		partial                  bool
	}{
		{"plain", "plain", "", "", false},
		{"2026-01-02T03:04:05.123456789Z stderr F text", "text", "stderr", "2026-01-02T03:04:05.123456789Z", false},
		{"2026-01-02T03:04:05.1+01:00 stdout P part", "part", "stdout", "2026-01-02T03:04:05.1+01:00", true},
		{"2026-01-02T03:04:05.1Z stdout F", "", "stdout", "2026-01-02T03:04:05.1Z", false},
		{"2026-01-02T03:04:05.1234567Z text", "text", "", "2026-01-02T03:04:05.1234567Z", false},
		{`{"log":"te\u00e9xt\n","stream":"stderr","time":"2026-01-02T03:04:05.5Z"}`, "teéxt", "stderr", "2026-01-02T03:04:05.5Z", false},
		{`{"log":"par","stream":"stdout","time":"2026-01-02T03:04:05.5Z"}`, "par", "stdout", "2026-01-02T03:04:05.5Z", true},
		{`{"@timestamp":"2026-01-02T03:04:05Z","message":"text"}`, "text", "", "2026-01-02T03:04:05Z", false},
		{`{"log":"text\r\n","stream":"stdout","attrs":{"tag":"x"},"time":"2026-01-02T03:04:05.5Z"}`, "text", "stdout", "2026-01-02T03:04:05.5Z", false},
		{`{"log":"text","stream":"stderr","kubernetes":{"pod_name":"fit-0"},"date":1767322000.25}`, "text", "stderr", "1767322000.25", false},
		{`{"log":"par","_p":"P","stream":"stderr","time":"2026-01-02T03:04:05.5Z"}`, "par", "stderr", "2026-01-02T03:04:05.5Z", true},
		{`{"log":"end","logtag":"F","stream":"stderr","time":"2026-01-02T03:04:05.5Z"}`, "end", "stderr", "2026-01-02T03:04:05.5Z", false},
		{`{"timestamp":1767322000123,"message":"text","ingestionTime":1767322000999}`, "text", "", "1767322000123", false},
		{`{"labels":{"pod":"fit-0"},"line":"text","timestamp":"2026-01-02T03:04:05Z"}`, "text", "", "2026-01-02T03:04:05Z", false},
		{`{"insertId":"x","textPayload":"text","timestamp":"2026-01-02T03:04:05.5Z"}`, "text", "", "2026-01-02T03:04:05.5Z", false},
		{`{"line": 3, "timestamp": "2026-01-02T03:04:05Z"}`, `{"line": 3, "timestamp": "2026-01-02T03:04:05Z"}`, "", "", false},
		{`{"step": 3, "message": "ok"}`, `{"step": 3, "message": "ok"}`, "", "", false},
		{`{"loss": 1.5, "step": 3}`, `{"loss": 1.5, "step": 3}`, "", "", false},
		{`{"log": broken`, `{"log": broken`, "", "", false},
		{"704.7s\t1460\ttext", "text", "", "704.7", false},
		{"2026-01-02 03:04:05 text", "2026-01-02 03:04:05 text", "", "", false},
	} {
		f := unframe([]byte(c.line))
		if string(f.body) != c.body || f.stream != c.stream || f.stamp.Written != c.time || f.partial != c.partial {
			t.Errorf("unframe(%q) = %q %q %q %v", c.line, f.body, f.stream, f.stamp.Written, f.partial)
		}
		if f.at >= 0 && c.line[f.at:] != c.body {
			t.Errorf("unframe(%q): the body is not at %d", c.line, f.at)
		}
	}
}

// TestUnframeHost: exports say of which pod a line is.
func TestUnframeHost(t *testing.T) {
	for line, want := range map[string]string{
		`{"log":"x","kubernetes":{"pod_name":"fit-worker-2"},"time":"2026-01-02T03:04:05Z"}`:                "fit-worker-2",
		`{"labels":{"pod":"fit-worker-3"},"line":"x","timestamp":"2026-01-02T03:04:05Z"}`:                   "fit-worker-3",
		`{"textPayload":"x","resource":{"labels":{"pod_name":"fit-4"}},"timestamp":"2026-01-02T03:04:05Z"}`: "fit-4",
		`{"log":"x","kubernetes":{"pod_name":"no host \u001b"},"time":"2026-01-02T03:04:05Z"}`:              "",
		`{"log":"x\n","stream":"stdout","time":"2026-01-02T03:04:05Z"}`:                                     "",
	} {
		if got := unframe([]byte(line)).host; got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

func FuzzNormalise(f *testing.F) {
	for _, s := range []string{"\x1b[31mred\x1b[0m", "a\b\bb", "\r1%|#| 1/9 [00:01<00:02, 1.0it/s]x", "[rank1]:[E102 03:04:05.1 A.cpp:1] [Rank 1] x",
		"2026-01-02T03:04:05.1Z stderr F (a pid=1) [1,2]<stdout>:x", `{"log":"a\n","time":"2026-01-02T03:04:05Z"}`, "h:1:2 [3] NCCL INFO", "[2026-01-02 03:04:05,678] [INFO] [a] [PID:1]", "P0  3: x"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		fr := unframe(line)
		for _, p := range frames(nil, fr.body) {
			text := clean(fr.body[p.start:p.end])
			if !utf8.ValidString(text) || strings.ContainsAny(text, "\x1b\x00\b\r") {
				t.Fatalf("%q is not clean", text)
			}
			for _, fm := range []framing{{}, {srun: true, srunRank: true, tee: true, bracket: true, hosts: map[string]bool{"h": true}}} {
				h := head0()
				if n := fm.peel(text, &h); n < 0 || n > len(text) {
					t.Fatalf("%q: peeled %d bytes", text, n)
				}
			}
			if n := afterBar(text); n < 0 || n >= len(text) && n > 0 {
				t.Fatalf("%q: bar of %d bytes", text, n)
			}
		}
	})
}

// TestPlain: eight bytes at a time say what single ones do.
func TestPlain(t *testing.T) {
	for c := range 256 {
		for n := range 20 {
			for at := range n {
				raw := bytes.Repeat([]byte{'x'}, n)
				raw[at] = byte(c)
				if at > 0 {
					raw[at-1] = "\t ~"[c%3]
				}
				if got, want := plain(raw), plainBytes(raw); got != want {
					t.Fatalf("%q: %v", raw, got)
				}
			}
		}
	}
}
