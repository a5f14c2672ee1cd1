package explain

import (
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/encyclopedia"
	"github.com/inquest-dev/inquest/internal/catalog"
)

func TestShort(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"One. Two.", "One."},
		{"One", "One"},
		{"", ""},
		{"At 1.5 GiB it ends. Next.", "At 1.5 GiB it ends."},
		{"Some, e.g. Adam, do. `x` is next.", "Some, e.g. Adam, do."},
		{"Why? Because.", "Why?"},
		{"No. 3 is it. Next.", "No. 3 is it."},
	} {
		if got := firstSentence(c.text); got != c.want {
			t.Errorf("%q: %q; want %q", c.text, got, c.want)
		}
	}
	c, err := catalog.Load(encyclopedia.FS)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range c.Entries() {
		e, err := c.Entry(h.ID)
		if err != nil {
			t.Fatal(err)
		}
		if s := Short(e); len(s) < 20 || len(s) > 400 || !strings.HasSuffix(s, ".") {
			t.Errorf("%s: %q", h.ID, s)
		}
	}
}
