package mlflowfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
)

// dump reads all lines: offset, what is wrong or time, value and step.
func dump(t testing.TB, text string) string {
	t.Helper()
	var b strings.Builder
	r := NewReader(strings.NewReader(text))
	for {
		l, err := r.Next()
		if err == io.EOF {
			return b.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		if l.Err != nil {
			fmt.Fprintf(&b, "%d %v;", l.Offset, l.Err)
		} else {
			fmt.Fprintf(&b, "%d %d %v %d;", l.Offset, l.Millis, l.Value, l.Step)
		}
	}
}

func TestLines(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"1700000000000 0.5 3\n", "0 1700000000000 0.5 3;"},
		{"\xef\xbb\xbf1 1e-05\r\n2 nan 4\r\n", "0 1 1e-05 0;12 2 NaN 4;"},
		{"1 inf 1\n1 -inf 2\n1 1e999 3\n", "0 1 +Inf 1;8 1 -Inf 2;17 1 +Inf 3;"},
		{"1 2 3 4\n\nx\n1\n1 a 2\n1 2 3.5\n", "0 is no metric;8 is no metric;9 is no metric;11 is no metric;13 is no metric;19 is no metric;"},
		{"1 2 3\n1 2 3", "0 1 2 3;6 is cut off;"},
		{"1 2 3\n\x00\x00\x00", "0 1 2 3;6 is filled with zeros;"},
		{"1 2 3\n\x00\x001 2 4\n", "0 1 2 3;6 is filled with zeros;"},
		{strings.Repeat("9", 200_000) + "\n1 2 3\n", "0 is longer than 64 KiB;200001 1 2 3;"},
	} {
		if got := dump(t, c.text); got != c.want {
			t.Errorf("%.40q:\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}

func TestInRun(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdef"
	for _, c := range []struct {
		path, in, below string
	}{
		{"m/0/" + id + "/metrics/val/loss", "m/0/" + id + " metrics/val/loss", "m/0/" + id + " metrics/val/loss"},
		{"m/0/" + id + "/metrics/params/x", "m/0/" + id + " metrics/params/x", "m/0/" + id + " metrics/params/x"},
		{"m/copy/tags/x", " ", "m/copy tags/x"},
		{"metrics/loss", " ", " metrics/loss"},
		{"a/metrics", " ", " "},
	} {
		dir, rest, _ := InRun(c.path)
		if got := dir + " " + rest; got != c.in {
			t.Errorf("InRun %s: %q", c.path, got)
		}
		dir, rest, _ = Below(c.path)
		if got := dir + " " + rest; got != c.below {
			t.Errorf("Below %s: %q", c.path, got)
		}
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("1700000000000 nan 3\n1 inf\n1 2 3 4\n\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := NewReader(bytes.NewReader(data))
		var all []byte
		for {
			l, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil || l.Length < int64(len(l.Raw)) {
				t.Fatal(err, l)
			}
			if l.Offset != int64(len(all)) {
				t.Fatalf("line %d begins at %d, want %d", l.Number, l.Offset, len(all))
			}
			all = append(all, data[l.Offset:l.Offset+l.Length]...)
			if l.Err == nil && !math.IsNaN(l.Value) && l.Raw[len(l.Raw)-1] != '\n' {
				t.Fatal("a line without an end has a value")
			}
			if errors.Is(l.Err, io.EOF) {
				t.Fatal("an end")
			}
		}
		if !bytes.Equal(all, data) {
			t.Fatal("lines do not make up the file")
		}
	})
}
