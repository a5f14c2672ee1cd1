package bundle

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/redact"
)

// TestJSON redacts documents: they stay documents, in their order, and what stays is as it was.
func TestJSON(t *testing.T) {
	secret := "h" + "f_" + strings.Repeat("aB3", 11)
	word := "tr0ub4dorx9"
	for _, c := range []struct{ in, want string }{
		{`{"z":1,"a":"loss 2.31","m":[1.50,null,true]}`, `{"z":1,"a":"loss 2.31","m":[1.50,null,true]}`},
		{`{"variables":{"HF_TOKEN":"` + secret + `","DB_PASSWORD":"` + word + `","NCCL_DEBUG":"INFO"}}`, `{"variables":{"HF_TOKEN":"[masked]","DB_PASSWORD":"[masked]","NCCL_DEBUG":"INFO"}}`},
		{`{"command":["python","train.py","--password","` + word + `","--lr","1e-4"]}`, `{"command":["python","train.py","--password","[masked]","--lr","1e-4"]}`},
		{`{"command":["x","--api-key=` + secret + `"]}`, `{"command":["x","--api-key=[masked]"]}`},
		{`{"host":"qnode7","dir":"/home/quxuser/wombat9","env":{"USER":"quxuser"}}`, `{"host":"host-1","dir":"/home/user-1/path-1","env":{"USER":"user-1"}}`},
		{`{"text":"it says \"ok\"\n/home/quxuser/x"}`, `{"text":"it says \"ok\"\n/home/user-1/x"}`},
	} {
		n := redact.NewNames()
		n.Learn(c.in)
		got, ok := JSON(n, []byte(c.in))
		if !ok || string(got) != c.want || !json.Valid(got) {
			t.Errorf("%s\n got %s\nwant %s", c.in, got, c.want)
		}
	}
	for _, bad := range []string{"", "{", `{"a":}`, "no json"} {
		if _, ok := JSON(redact.NewNames(), []byte(bad)); ok {
			t.Errorf("%q is a document", bad)
		}
	}
}

// TestRecords checks that the records of a trial stay records, and that a torn one stays torn.
func TestRecords(t *testing.T) {
	body := `{"seq":0,"begun":{"dir":"/home/quxuser/x"}}`
	sum := func(s string) string { return fmt.Sprintf("%08x", crc32.Checksum([]byte(s), castagnoli)) }
	text := body + "\t" + sum(body) + "\n" + body + "\t00000000\n" + body[:20]
	n := redact.NewNames()
	n.Learn(text)
	lines := strings.Split(records(n, text), "\n")
	safe, got, _ := strings.Cut(lines[0], "\t")
	if strings.Contains(lines[0], "quxuser") || got != sum(safe) {
		t.Errorf("%q", lines[0])
	}
	if safe, got, _ := strings.Cut(lines[1], "\t"); got == sum(safe) || strings.Contains(lines[1], "quxuser") {
		t.Errorf("a damaged record was mended: %q", lines[1])
	}
	if len(lines) != 3 || strings.Contains(lines[2], "quxuser") {
		t.Errorf("%q", lines)
	}
}

// TestNames checks that no name of an artifact leads out of a bundle.
func TestNames(t *testing.T) {
	for in, want := range map[string]string{
		"run/rank0.log": "run/rank0.log", "../../etc/x.log": "etc/x.log", "/var/log/syslog": "var/log/syslog", "a.tar.gz!b/rank1.log": "a.tar.gz/b/rank1.log", "-": "standard-input.log", `C:\runs\rank0.log`: "C_/runs/rank0.log",
		"inquest-report/rank0.log": "reports/rank0.log",
	} {
		if got := safeName(redact.NewNames(), in); got != want || strings.Contains("/"+got+"/", "/../") || strings.HasPrefix(got, "/") {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
	}
}
