// Package ranklog reads the text that a training job wrote: standard output and
// error of ranks and launchers, scheduler output, kernel messages and console
// captures. One pass over the bytes with one matcher finds the lines that
// matter; only those are normalised and understood.
package ranklog

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
)

// headBytes is how much of the start of an artifact is looked at to decide how
// its lines are framed.
const headBytes = 64 << 10

// New returns the reader of job logs. It looks for the wordings of plan and for
// metric lines, tracebacks, launcher summaries and settings.
func New(plan evidence.Plan) reader.Reader { return &logReader{newWanted(plan)} }

type logReader struct{ want *wanted }

func (*logReader) Name() string { return "ranklog" }

// words are what makes a text likely to be a job log.
var words = []string{"Traceback (most recent", "CUDA", "NCCL", "torch", "loss", "epoch", "Epoch", "iteration", "it/s]", "s/it",
	"INFO", "WARNING", "ERROR", "[rank", "srun:", "slurmstepd", "oom-kill", "NVRM", "kernel:", "wandb:", "Traceback"}

// Sniff accepts any text, at most as likely: every more specific reader of text
// goes first.
func (*logReader) Sniff(a evidence.Artifact, head []byte) reader.Confidence {
	if len(head) == 0 {
		return reader.Maybe
	}
	if _, wide := wideOrder(head); wide {
		return reader.Maybe
	}
	bad := 0
	for i := 0; i < len(head); {
		c := head[i]
		switch {
		case c == 0:
			bad += 4
			i++
		case c < utf8.RuneSelf:
			if c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != 0x1b && c != '\b' && c != '\f' {
				bad++
			}
			i++
		default:
			r, n := utf8.DecodeRune(head[i:])
			if r == utf8.RuneError && n == 1 && len(head)-i >= utf8.UTFMax {
				bad++
			}
			i += n
		}
	}
	if bad*20 > len(head) {
		return reader.No
	}
	for _, w := range words {
		if bytes.Contains(head, []byte(w)) {
			return reader.Likely
		}
	}
	for _, ext := range []string{".log", ".out", ".err"} {
		if strings.HasSuffix(a.Path, ext) {
			return reader.Likely
		}
	}
	return reader.Maybe
}

// buffers are those of artifacts being read, whose head is looked at first.
var buffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, headBytes) }}

// Read implements reader.Reader.
func (r *logReader) Read(ctx context.Context, in reader.Input, sink reader.Sink) error {
	rc, err := in.Open()
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer rc.Close()
	br := buffers.Get().(*bufio.Reader)
	br.Reset(rc)
	defer func() {
		br.Reset(nil)
		buffers.Put(br)
	}()
	head, err := br.Peek(headBytes)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) && len(head) == 0 {
		return fmt.Errorf("read log: %w", err)
	}
	var src io.Reader = br
	var wide *wideReader
	if order, ok := wideOrder(head); ok {
		wide = newWideReader(br, order)
		narrow := bufio.NewReaderSize(wide, headBytes)
		head, _ = narrow.Peek(headBytes)
		src = narrow
	}
	s := newSession(r.want, in.Artifact, sink, head)
	s.wide = wide
	if err := s.run(ctx, src); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("read log: %w", err)
	}
	return nil
}
