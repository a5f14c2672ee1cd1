package redact

import (
	"strings"
	"testing"
)

// TestKinds holds one secret of each kind: of ZqXw nothing may be left.
func TestKinds(t *testing.T) {
	for _, s := range []string{
		"export AWS_SESSION_TOKEN=FwoGZXIvYXdzZqXw9f8e7d6c5",
		"AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIZqXw7K7MDENG",
		"aws_secret_access_key = 'wJalrXUtZqXw7dK7MDENG'",
		"HUGGING_FACE_HUB_TOKEN=ZqXw0abcdefgh0123456",
		"GITHUB_TOKEN=ZqXwabcdefgh",
		"NEPTUNE_API_TOKEN=ZqXw0abcdefgh0123456",
		"MLFLOW_TRACKING_TOKEN: ZqXw0abcdefgh0123456",
		"login(token='ZqXw0abcdefgh0123456')",
		"train.py --token ZqXw0abcdefgh0123456 --lr 1",
		"--hf_token=ZqXwabcdefgh",
		`{"token": "ZqXw0abcdefgh0123456"}`,
		`{"accessToken":"ZqXw0abcdefgh0123456"}`,
		"https://ZqXw0abcdefgh@github.com/x.git",
		"redis://:ab0/ZqXw@db/x",
		"amqp://bob:AB@ZqXw1ZqXw@db/x",
		"https://b.s3.amazonaws.com/k?X-Amz-Credential=ZqXw&X-Amz-Signature=ZqXwabcdef0123456789",
		"https://acc.blob.core.windows.net/c?sv=2020&sig=ZqXw%2Bab",
		`{\"password\": \"ZqXwabcdef\"}`,
		`{\"password\":\"ab ZqXwabcdef\", \"x\":1}`,
		`password = "SECR ZqXwabcdef"`,
		`password = 'it\'s ZqXw'`,
		"DB_PASS=ZqXw0",
		"MY_OWN_PASS=ZqXw",
		"pwd=ZqXwabcdef1",
		"passphrase: ZqXwabcdef1",
		"client_secret=SECR0ab;ZqXwtail",
		"password=abcdef0&ZqXw",
		"Cookie: session=ZqXwabcdef0123; x=ZqXw",
		"Set-Cookie: sid=ZqXw",
		"Authorization: token ZqXwabcdef0123",
		"'Authorization': 'Bearer ZqXw'",
		"x-api-key: ZqXwabcdef0123",
		"pypi-AgEIcHlwaS5vcmcZqXwabcdef0123",
		"my_hf_ZqXw0abcdefghijklmnop",
		"-----BEGIN RSA PRIVATE KEY-----MIIEvZqXwabcdef-----END RSA PRIVATE KEY-----",
		"-----BEGIN PRIVATE KEY-----\nMIIEvZqXw",
		"sshpass -p ZqXwabc ssh host",
		"sshpass -p 'a b ZqXw' ssh host",
		"curl -u bob:ZqXwabc https://x",
		"curl -s --user 'bob:ZqXw abc' https://x",
		"docker login -u bob -p ZqXw registry",
		"https://hooks.slack.com/services/T000/B000/ZqXwabc",
		`{"name":"HF_TOKEN","value":"ZqXwabcdefgh"}`,
		`- {name: DB_PASSWORD, value: ZqXwabcdefgh}`,
		`{\"name\":\"WANDB_API_KEY\",\"value\":\"ZqXwabcdefgh\"}`,
		`a: password = token = "ZqXw0abcdefgh"`,
	} {
		if got := Text(s); strings.Contains(got, "ZqXw") || !strings.Contains(got, mask) {
			t.Errorf("%s\n -> %s", s, got)
		}
	}
}

// TestOrdinary holds what training logs say beside secrets: it stays.
func TestOrdinary(t *testing.T) {
	for _, s := range []string{
		"tokens", "tokenizer", "num_tokens: 128", "max_tokens=512", "token_count", "token_count=12345678", "pass@1", "pass@1: 0.532", "passes", "sign",
		"--pad_token <pad>", "bos_token_id: 1", "special tokens", "input_pass 3", "signature of function", "pad_token='<|endoftext|>'", "eos_token: </s>",
		"mask_token=[MASK]", "image_token: <image_0123>", "unexpected token: identifier", "time per token: 12.3ms", "tokens_per_second: 5432.1", "loss_per_token=2.31e-01",
		"forward_pass: 12.3ms", "backward_pass=0.123", "FORWARD_PASS=12.5", "bypass=auto123", "first pass: done42", "PWD=/home/ana/run1", "OLDPWD=/tmp/x1", "pwd: /root",
		"tokenizer_path=/data/tok32k", "token_type_ids: shape1234", "KeyError: 'layer.0.weight123'", "missing key(s) in state_dict: layer0", "key_value_heads: 8",
		"SHA256 signature=abcdef0123456789", "docker://registry/x:tag1", "tcp://node-1:29500", "ssh://git@github.com/x", "http://localhost:6006/@vite", "tcp://a:29500,b@c",
		"Cookie: none", "Authorization: failed for user 12345678", "login node ln01", "curl: (7) Failed to connect to host", "curl -O https://x/y",
		`{"name":"NCCL_DEBUG","value":"INFO1234"}`, `{"name":"max_tokens","value":"5121234"}`, "pass rate: 0.93abc", "credentials:", "basic block 12", "token: 4096", "token=None", "HF_TOKEN=$HF_TOKEN", "asia-east1",
	} {
		if got := Text(s); got != s {
			t.Errorf("%s\n -> %s", s, got)
		}
	}
}

// BenchmarkText shows how the time grows with the text: as its length.
func BenchmarkText(b *testing.B) {
	for _, n := range []int{1 << 10, 1 << 13, 1 << 16} {
		for name, piece := range map[string]string{"names": "token_", "assigned": "password=x1 ", "quotes": `\"token\":\"`, "urls": "a://b:c", "tokens": "num_tokens: 12 "} {
			s := strings.Repeat(piece, n/len(piece))
			b.Run(name+"/"+map[int]string{1 << 10: "1K", 1 << 13: "8K", 1 << 16: "64K"}[n], func(b *testing.B) {
				b.SetBytes(int64(len(s)))
				for b.Loop() {
					Text(s)
				}
			})
		}
	}
}
