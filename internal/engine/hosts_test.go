package engine

import "testing"

func TestHostInPath(t *testing.T) {
	hosts := map[string]bool{"trn-07": true, "trn-0": true, "alpha": true}
	for p, want := range map[string]string{
		"job/trn-07/dmesg.txt":      "trn-07",
		"job/trn-07.dmesg.txt":      "trn-07",
		"job/trn-07_smi.csv":        "trn-07",
		"job.tar!alpha/x.log":       "alpha",
		"job/trn-070/dmesg.txt":     "",
		"job/alpha/trn-07/dmesg":    "",
		"job/alpha/alpha.dmesg.txt": "alpha",
		"job/alphabet.log":          "",
		"":                          "",
	} {
		if got := hostInPath(p, hosts); got != want {
			t.Errorf("hostInPath(%q) is %q, want %q", p, got, want)
		}
	}
}
