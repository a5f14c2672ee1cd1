package report

import (
	"bytes"
	"testing"
)

func TestBegan(t *testing.T) {
	for _, s := range samples {
		for _, format := range Formats() {
			for _, who := range []string{"engineer", "on-call", "executive"} {
				var b bytes.Buffer
				if err := Write(&b, format, load(t, s.name), Options{For: who, Width: 100}); err != nil {
					t.Fatal(err)
				}
				if !Began(b.Bytes()) {
					t.Errorf("%s: a %s report for %s is not known by %.60q", s.name, format, who, b.String())
				}
			}
		}
	}
	for _, log := range []string{"", "step 1 loss 2.5\n", "# torchrun train.py\n", "{\"loss\": 1}\n", "<html>"} {
		if Began([]byte(log)) {
			t.Errorf("%q is taken for a report", log)
		}
	}
}
