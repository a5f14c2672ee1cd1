package redact

import (
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
	f("Authorization: Bearer abcdefghijklmnop", "Authorization: Bearer [masked]")
	f("api_key=None", "api_key=None")
	f("The access token expired yesterday", "The access token expired yesterday")
	f("tokens/s: 5432.100, Tokens/s/device: 5311.9", "tokens/s: 5432.100, Tokens/s/device: 5311.9")
	f("pad_token_id: 151643, num_tokens: 61240", "pad_token_id: 151643, num_tokens: 61240")
	f("GET AKIA"+strings.Repeat("A", 16), "GET [masked]")
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
