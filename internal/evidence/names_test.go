package evidence

import (
	"strings"
	"testing"
)

func TestHostName(t *testing.T) {
	for _, s := range []string{"", "node-1", "trn07.cluster.local", "10.0.0.1", "[::1]", "fe80::1%eth0", "default/worker-0", "nid001234", "gpu_a"} {
		if !HostName(s) {
			t.Errorf("%q is refused", s)
		}
	}
	for _, s := range []string{"$(id)", "`id`", "a b", "a;b", "a|b", "a&b", "a\nb", "-oProxyCommand=x", "a'b", `a"b`, "a>b", "*", "~root", "a\x1b[3m", "\xff", strings.Repeat("a", 300)} {
		if HostName(s) {
			t.Errorf("%q is taken", s)
		}
	}
}
