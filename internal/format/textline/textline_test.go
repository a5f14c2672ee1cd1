package textline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestEach(t *testing.T) {
	long := strings.Repeat("x", 3*Max)
	for _, c := range []struct {
		name, text string
		want       []string // line, offset, bytes
		over       int
	}{
		{"empty", "", nil, 0},
		{"a mark and Windows line ends", "\xef\xbb\xbfa\r\n\r\nb", []string{"1 3 1", "2 6 0", "3 8 1"}, 0},
		{"the last line has an end", "a\n", []string{"1 0 1"}, 0},
		{"a long line", "a\n" + long + "\nb\n", []string{"1 0 1", fmt.Sprintf("2 2 %d", Max), fmt.Sprintf("3 %d 1", 3*Max+3)}, 1},
	} {
		var got []string
		over := 0
		err := Each(context.Background(), strings.NewReader(c.text), func(l Line) {
			got = append(got, fmt.Sprint(l.Num, l.Off, len(l.Raw)))
		}, func(Line) { over++ })
		if err != nil || !slices.Equal(got, c.want) || over != c.over {
			t.Errorf("%s: got %q, %d over, %v; want %q, %d", c.name, got, over, err, c.want, c.over)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Each(ctx, strings.NewReader("a\n"), func(Line) {}, func(Line) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]Bytes{
		"5 MiB": {5 << 20, 6<<20 - 1}, "0": {0, 0}, "1.5GiB": {3<<29 - 1<<30/10 - 1, 3<<29 + 1<<30/10 + 1}, "12X": NoBytes, "": NoBytes, "-3 MiB": NoBytes, "99999999999999999999": NoBytes,
	} {
		got, ok := Size(text, 1)
		if ok != want.Known() || ok && (got.Lo < want.Lo || got.Hi > want.Hi) {
			t.Errorf("%q: got %v, %v; want within %v", text, got, ok, want)
		}
	}
}

func TestHeader(t *testing.T) {
	want := time.Date(2027, 1, 4, 9, 8, 7, 0, time.UTC)
	m, command, ok := Header("Every 2.0s: nvidia-smi -L                   vega-3: Mon Jan  4 09:08:07 2027")
	if !ok || command != "nvidia-smi -L" || m.Host != "vega-3" || !m.Time.Equal(want) {
		t.Errorf("watch: %+v, %q, %v", m, command, ok)
	}
	if m, _, ok := Header("Mon Jan  4 09:08:07 UTC 2027"); !ok || m.Zone != "Z" || !m.Time.Equal(want) {
		t.Errorf("date: %+v, %v", m, ok)
	}
	if _, _, ok := Header("Every dog has its day, and every night its 09:08:07"); ok {
		t.Error("prose is taken for a date")
	}
}

func TestHostTool(t *testing.T) {
	for command, want := range map[string]bool{"sudo nvidia-smi -q": true, "CUDA_VISIBLE_DEVICES=0 nvidia-smi": true, "/usr/bin/ps aux": true, "python train.py": false, "": false, "torchrun nvidia-smi": false} {
		if got := HostTool(command); got != want {
			t.Errorf("%q: %v", command, got)
		}
	}
}

func FuzzEach(f *testing.F) {
	f.Add("a\r\nb\x1b[31mc\n")
	f.Fuzz(func(t *testing.T, text string) {
		Each(context.Background(), strings.NewReader(text), func(l Line) {
			if text[l.Off:l.Off+int64(len(l.Raw))] != l.Raw {
				t.Fatalf("line %d is not at %d", l.Num, l.Off)
			}
			if m, _, ok := Header(l.Text); ok && m.Written == "" {
				t.Fatal("a date without its text")
			}
			Command(l.Text)
			Size(l.Text, 1)
			TimeOfDay(l.Text)
		}, func(Line) {})
	})
}

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "a\tb\r\nc": "a b  c", "\x1b[31mred\u009b": "[31mred", "caf\xe9": "caf\uFFFD",
		"0123456789": "01234567…", "ää\u00e4\u00e4ä": "ääää…",
	} {
		if got := OneLine(in, 8); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}
