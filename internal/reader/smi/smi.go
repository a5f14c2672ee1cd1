// Package smi reads what GPU tools print about the devices of a machine:
// nvidia-smi, rocm-smi and amd-smi in their forms, dcgmi diag, and PyTorch's
// collect_env. One file may hold several of them, one after the other, each
// perhaps behind the command that made it. The forms themselves are decoded by
// the packages format/nvsmi and format/amdsmi; here they become evidence.
//
// What these tools count is mostly history: a counter may have stood so for
// months, and was read before or after the run. So counters and states are
// context, for conditions to ask for. Only a message that a device is lost is a
// fault of its own.
package smi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/amdsmi"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/reader"
)

const (
	maxQuote = 1024     // bytes of a line kept as a quote
	maxJSON  = 16 << 20 // bytes of a JSON document
	headFull = 4000     // a head of this length means that more follows
)

var (
	errLongLine = errors.New("over limit: line longer than 64 KiB")
	errLongJSON = errors.New("over limit: JSON of more than 16 MiB")
)

// New returns the reader.
func New() reader.Reader { return smi{} }

type smi struct{}

func (smi) Name() string { return "smi" }

// Tabular marks the tables here as such that stand inside job logs too.
func (smi) Tabular() {}

// Sniff claims a text whose first line of substance is the header of a known
// table and whose head holds little else, but for what other commands printed of
// the machine. Job logs often begin with the output of
// nvidia-smi: a long file named like a log is left to the log reader.
func (smi) Sniff(a evidence.Artifact, head []byte) reader.Confidence {
	if len(head) == 0 || bytes.IndexByte(head, 0) >= 0 {
		return reader.No
	}
	text := strings.TrimPrefix(string(head), "\xef\xbb\xbf")
	if isJSON(text) {
		return toolJSON(text)
	}
	full := len(head) >= headFull
	lines := strings.Split(text, "\n")
	if full && len(lines) > 1 {
		lines = lines[:len(lines)-1] // the last one is cut
	}
	p := newParser(discard{}, a)
	taken, all := 0, 0
	for i, s := range lines {
		if strings.TrimSpace(s) == "" {
			continue
		}
		all++
		if p.feed(textline.Line{Raw: s, Text: textline.Clean(s), Num: int64(i + 1)}) != "unknown" || textline.HostTool(p.command) {
			taken++
		}
		if p.tables == 0 && all > 8 {
			return reader.No
		}
	}
	switch strings.ToLower(path.Ext(a.Path)) {
	case ".log", ".out", ".err":
		if full && !p.whole {
			return reader.No
		}
	}
	if p.tables == 0 || taken*10 < all*9 {
		return reader.No
	}
	return reader.Sure
}

// isJSON reports whether a text begins like an object or a list.
func isJSON(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	return text != "" && (text[0] == '{' || text[0] == '[')
}

// toolJSON recognises rocm-smi --json and amd-smi --json.
func toolJSON(text string) reader.Confidence {
	if strings.Contains(text, `"card0"`) && (strings.Contains(text, "VRAM") || strings.Contains(text, "(Sensor ") || strings.Contains(text, "GPU use (%)") || strings.Contains(text, "Package Power (W)") || strings.Contains(text, "Unique ID")) {
		return reader.Sure
	}
	if !strings.Contains(text, `"gpu":`) {
		return reader.No
	}
	for _, key := range [...]string{`"mem_usage"`, `"process_list"`, `"process_info"`, `"gfx_activity"`, `"socket_power"`, `"kfd_id"`, `"market_name"`, `"vram_used"`} {
		if strings.Contains(text, key) {
			return reader.Sure
		}
	}
	return reader.No
}

// Read streams the text into s.
func (smi) Read(ctx context.Context, in reader.Input, s reader.Sink) error {
	f, err := in.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	head = head[:n]
	all := io.MultiReader(bytes.NewReader(head), f)
	p := newParser(s, in.Artifact)
	if isJSON(strings.TrimPrefix(string(head), "\xef\xbb\xbf")) && !p.embedded {
		return p.json(ctx, all)
	}
	err = textline.Each(ctx, all, func(l textline.Line) { p.feed(l) }, func(l textline.Line) {
		s.Damage(p.span(l), fmt.Errorf("reading a device tool's text: %w", errLongLine))
	})
	if err == nil {
		p.close()
	}
	return err
}

// json reads a JSON document, which is held in memory.
func (p *parser) json(ctx context.Context, r io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(reader.Stopping(ctx, r), maxJSON+1))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if len(data) > maxJSON {
		p.s.Damage(evidence.Span{Artifact: p.artifact, Kind: "text", Offset: maxJSON}, errLongJSON)
		data = data[:maxJSON]
	}
	mark := len(data) - len(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	at := newPlaces(data, mark)
	if bad := amdsmi.JSON(bytes.NewReader(data[mark:]), at.line, (*amd)(p)); bad != nil {
		l := at.line(int64(len(data) - mark))
		p.s.Damage(p.span(l), fmt.Errorf("reading JSON: %w", bad))
	}
	return err
}

// places finds the lines of ascending offsets.
type places struct {
	data  []byte
	mark  int // bytes of a byte order mark
	start int
	num   int64
}

func newPlaces(data []byte, mark int) *places { return &places{data, mark, mark, 1} }

func (p *places) line(offset int64) textline.Line {
	end := min(int(offset)+p.mark, len(p.data))
	for {
		i := bytes.IndexByte(p.data[p.start:max(end, p.start)], '\n')
		if i < 0 {
			break
		}
		p.start += i + 1
		p.num++
	}
	line := p.data[p.start:]
	if i := bytes.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	raw := strings.TrimRight(string(line[:min(len(line), maxQuote)]), "\r")
	return textline.Line{Raw: raw, Text: textline.Clean(raw), Num: p.num, Off: int64(p.start)}
}

// discard is the sink of Sniff.
type discard struct{}

func (discard) Event(evidence.Event)                         {}
func (discard) Series(k evidence.SeriesKey) *evidence.Series { return evidence.NewSeries(k) }
func (discard) Fact(evidence.Fact)                           {}
func (discard) Owner(evidence.Owner)                         {}
func (discard) Damage(evidence.Span, error)                  {}
