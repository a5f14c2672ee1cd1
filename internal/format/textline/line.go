// Package textline holds what the decoders of a tool's printed text have in common: a
// stream cut into bounded lines, and the sizes and dates that such tools print.
package textline

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/inquest-dev/inquest/internal/lazyre"
)

// Max is how many bytes of one line are looked at.
const Max = 64 << 10

// A Line is one line of a text: its bytes as they stand, up to Max of them and
// without the line end, and the same without terminal escapes and control bytes.
type Line struct {
	Raw, Text string
	Num       int64 // 1-based
	Off       int64 // bytes from the start of the text to Raw
}

// Each gives every line of r to f, in order, the last one also where it has no
// line end. A byte order mark is left out. Of a longer line f gets the first Max
// bytes, and long is called with it before. Each returns ctx's error soon after
// it is done, else that of r; nil at the end.
func Each(ctx context.Context, r io.Reader, f, long func(Line)) error {
	b := bufio.NewReaderSize(r, Max)
	var l Line
	for l.Num = 1; ; l.Num++ {
		if l.Num%256 == 1 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		part, err := b.ReadSlice('\n')
		size := int64(len(part))
		l.Raw = strings.TrimRight(string(part), "\r\n")
		if l.Num == 1 {
			trimmed := strings.TrimPrefix(l.Raw, "\xef\xbb\xbf")
			mark := int64(len(l.Raw) - len(trimmed))
			l.Off, size, l.Raw = l.Off+mark, size-mark, trimmed
		}
		for over := false; errors.Is(err, bufio.ErrBufferFull); {
			if !over {
				over = true
				long(l)
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			part, err = b.ReadSlice('\n')
			size += int64(len(part))
		}
		l.Text = Clean(l.Raw)
		if size > 0 {
			f(l)
		}
		l.Off += size
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// escapes are terminal sequences: CSI, OSC up to its end, and those of two bytes.
var escapes = lazyre.New(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])`)

// Clean returns s as valid UTF-8 without terminal sequences and control characters
// other than tabs.
func Clean(s string) string {
	plain := true
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' && s[i] != '\t' || s[i] >= 0x7f {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.IndexFunc(s, control) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if control(r) {
			return -1
		}
		return r
	}, escapes.ReplaceAllString(s, ""))
}

func control(r rune) bool { return r < ' ' && r != '\t' || r >= 0x7f && r <= 0x9f }

// Cut returns at most n bytes of text and ends at a whole character.
func Cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// OneLine is s for people: on one line, without control characters, and cut with a mark
// where it has more than n bytes.
func OneLine(s string, n int) string {
	if len(s) > 4*n {
		s = s[:4*n]
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			return ' '
		case control(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}

// Command recognises a shell prompt or trace before a command: "$ df -h",
// "+ nvidia-smi", "me@node:~$ free -g".
func Command(text string) (cmd string, ok bool) {
	for _, mark := range [...]string{"$ ", "+ ", "> "} {
		if rest, found := strings.CutPrefix(text, mark); found {
			return rest, true
		}
	}
	if i := strings.IndexByte(text, '@'); i > 0 && i < 40 {
		if j := strings.Index(text, "$ "); j > i && j < 120 && !strings.Contains(text[:i], " ") {
			return text[j+2:], true
		}
		if j := strings.Index(text, "# "); j > i && j < 120 && !strings.Contains(text[:j], " ") {
			return text[j+2:], true
		}
	}
	return "", false
}

// hostTools are commands that print the state of a machine, and nothing of a run.
var hostTools = map[string]bool{
	"nvidia-smi": true, "rocm-smi": true, "amd-smi": true, "dcgmi": true, "ps": true, "top": true, "free": true, "df": true, "quota": true, "lfs": true, "uptime": true, "uname": true, "hostname": true, "date": true, "lscpu": true, "numactl": true,
	"lsof": true, "fuser": true, "sinfo": true, "squeue": true, "sacct": true, "scontrol": true, "ulimit": true, "ibstat": true, "ibv_devinfo": true,
}

// HostTool reports whether a command line prints the state of a machine.
func HostTool(command string) bool {
	for _, w := range strings.Fields(command) {
		if w == "sudo" || w == "watch" || strings.Contains(w, "=") || strings.HasPrefix(w, "-") {
			continue
		}
		return hostTools[w[strings.LastIndexByte(w, '/')+1:]]
	}
	return false
}
