package redact

import (
	"slices"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		if got := Text(in); got != want {
			t.Errorf("Text(%q)\n got %q\nwant %q", in, got, want)
		}
	}
	f("loss 2.31 step 40", "loss 2.31 step 40")
	f("login with hf_"+strings.Repeat("aB3", 10), "login with [masked]")
	f("WANDB_API_KEY="+strings.Repeat("0f", 20)+" python train.py", "WANDB_API_KEY=[masked] python train.py")
	f("--hf-token "+strings.Repeat("x1", 8), "--hf-token [masked]")
	f(`"password": "hunter2000"`, `"password": "[masked]"`)
	f("postgres://ana:pa55word@db/x", "postgres://ana:[masked]@db/x")
	f("redis://:pa55word@cache:6379", "redis://:[masked]@cache:6379")
	f("pull from https://ana:pa55w", "pull from https://ana:[masked]")
	for _, same := range []string{"tcp://node-1:29500", "http://[::1]:8080", "file://C:\\runs", "listening on http://0.0.0.0:6006/"} {
		f(same, same)
	}
	f("cloning with github_pat_"+strings.Repeat("aB3_", 9), "cloning with [masked]")
	f("Authorization: Basic\tabcdefghijklmnop", "Authorization: Basic [masked]")
	f("Authorization: Bearer abcdefghijklmnop", "Authorization: Bearer [masked]")
	f("api_key=None", "api_key=None")
	f("The access token expired yesterday", "The access token expired yesterday")
	f("tokens/s: 5432.100, Tokens/s/device: 5311.9", "tokens/s: 5432.100, Tokens/s/device: 5311.9")
	f("pad_token_id: 151643, num_tokens: 61240", "pad_token_id: 151643, num_tokens: 61240")
	f("GET AKIA"+strings.Repeat("A", 16), "GET [masked]")
}

// A word that an escape or a colour ends is none: what follows begins one.
func TestShapesBehindEscapes(t *testing.T) {
	token := "hf_" + strings.Repeat("aB3", 9)
	for _, before := range []string{"", " ", "\n", `\n`, `\t`, `\r\n`, `\x0a`, `\u000a`, "\x1b[32m", "\x1b[m", `\u001b[1;31m`, `\x1b[0m`, "[33m"} {
		if got := Text("it is" + before + token + "."); strings.Contains(got, token) != (before == "") {
			t.Errorf("%q: %q", before, got)
		}
		key := "gsk_" + strings.Repeat("aB3", 9)
		if got := Thorough("it is" + before + key + "."); strings.Contains(got, key) != (before == "") {
			t.Errorf("%q: %q", before, got)
		}
	}
}

// TestHints checks that the first look loses nothing: whatever a pattern can
// match holds one of the hints.
func TestHints(t *testing.T) {
	alternatives := strings.Split(strings.TrimSuffix(shapes.String()[strings.Index(shapes.String(), `(?:`)+len(`(?:`):], ")"), "|")
	if len(alternatives) < 10 {
		t.Fatalf("%q", alternatives)
	}
	for _, a := range alternatives {
		fixed := strings.ToLower(strings.Replace(a, "gh[pousr]_", "ghs_", 1))
		if !slices.ContainsFunc(hints, func(h string) bool { return strings.HasPrefix(fixed, h) }) {
			t.Errorf("no hint for %s", a)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("password=abcdef hf_x://a:b@c")
	f.Fuzz(func(t *testing.T, s string) {
		once := Text(s)
		if len(once) > 4*len(s)+64 {
			t.Errorf("grew from %d to %d bytes", len(s), len(once))
		}
	})
}
