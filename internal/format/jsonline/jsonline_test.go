package jsonline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestEach(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"a\nb\r\n\n c \nd", "1 0+2 true \"a\"\n2 2+3 true \"b\"\n4 6+4 true \" c \"\n5 10+1 false \"d\"\n"},
		{"\ufeffa\n", "1 3+2 true \"a\"\n"},
		{"\x00\x00\x00a\n\x00\x00\nb", "1 3+2 true \"a\"\n3 8+1 false \"b\"\n"},
		{"0123456789abc\nx\n", "1 0+14 true \"0123456789\" long\n2 14+2 true \"x\"\n"},
		{"0123456789\r\nx", "1 0+12 true \"0123456789\"\n2 12+1 false \"x\"\n"},
	} {
		got := ""
		err := Each(context.Background(), strings.NewReader(c.text), 10, func(l Line) error {
			got += fmt.Sprintf("%d %d+%d %v %q", l.N, l.Offset, l.Size, l.Ended, l.Text)
			if l.Long {
				got += " long"
			}
			got += "\n"
			return nil
		})
		if err != nil || got != c.want {
			t.Errorf("%q: %v\n%swant\n%s", c.text, err, got, c.want)
		}
	}
	long := strings.Repeat("x", 1<<20) + "\ny\n"
	n := 0
	if err := Each(context.Background(), strings.NewReader(long), 2<<20, func(l Line) error { n += len(l.Text); return nil }); err != nil || n != 1<<20+1 {
		t.Errorf("a long line: %d bytes, %v", n, err)
	}
	stop := errors.New("stop")
	if err := Each(context.Background(), strings.NewReader("a\nb\n"), 10, func(Line) error { return stop }); err != stop {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Each(ctx, strings.NewReader("a\n"), 10, func(Line) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
