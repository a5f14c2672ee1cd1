package memsnap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/pickle"
	"github.com/inquest-dev/inquest/internal/reader"
)

// Options of Decode.
type Options struct {
	Artifact string // of the result
	// Bytes is how much is read at most, after decompression; 0 means 1 TiB.
	Bytes int64

	plain bool // opcode by opcode, without the fast ways, which tests compare with it
}

var errNone = errors.New("no memory snapshot")

// Decode reads a snapshot from r: a pickle, one inside the HTML of trace_plot, or a
// memory timeline; each also compressed by gzip. Of an HTML file with several snapshots
// it is the first; the Damage says how many follow.
//
// What is damaged is told in the result's Damage, with its offset in the pickle, and what
// could be read is there. An error means that nothing could: r holds no snapshot, which
// is a *pickle.Error where it is a pickle at all, or ctx was done.
func Decode(ctx context.Context, r io.Reader, o Options) (*evidence.MemSnapshot, error) {
	got, err := decode(ctx, r, o)
	if err != nil {
		return nil, err
	}
	return got.MemSnapshot, nil
}

func decode(ctx context.Context, r io.Reader, o Options) (*result, error) {
	if o.Bytes <= 0 {
		o.Bytes = 1 << 40
	}
	got, err := forms(reader.Stopping(ctx, r), o, 0)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	got.Artifact = o.Artifact
	return got, nil
}

// forms finds out what r holds.
func forms(r io.Reader, o Options, layers int) (*result, error) {
	head := make([]byte, 4096)
	n, err := io.ReadFull(r, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	head = head[:n]
	all := io.MultiReader(bytes.NewReader(head), r)
	switch {
	case isPickle(head):
		return one(&io.LimitedReader{R: all, N: o.Bytes}, o)
	case len(head) > 2 && head[0] == 0x1f && head[1] == 0x8b && layers < 2:
		z, err := gzip.NewReader(all)
		if err != nil {
			return nil, err
		}
		defer z.Close()
		return forms(z, o, layers+1)
	case isHTML(head):
		return fromHTML(&io.LimitedReader{R: all, N: o.Bytes}, o)
	case isTimeline(head):
		return fromTimeline(&io.LimitedReader{R: all, N: o.Bytes})
	}
	return nil, errNone
}

// isPickle reports whether head is that of a pickle of protocol 2 or later.
func isPickle(head []byte) bool {
	return len(head) > 1 && head[0] == byte(pickle.Proto) && head[1] >= 2 && head[1] <= 5
}

// one decodes one pickle.
func one(r *io.LimitedReader, o Options) (*result, error) {
	got, err := runPickle(r, o)
	if r.N <= 0 && got != nil {
		got.Damage = append(got.Damage, evidence.SnapDamage{Offset: got.end, Text: fmt.Sprintf("it has more than %d bytes; what follows was not read", o.Bytes)})
	}
	return got, err
}

// runPickle decodes a pickle to its STOP.
func runPickle(r io.Reader, o Options) (*result, error) {
	m := newMachine(r)
	m.plain = o.plain
	err := m.run()
	var v value
	if err != nil {
		v = m.salvage()
	} else {
		v = m.stack[0]
	}
	got := m.assemble(v, err == nil)
	switch {
	case got == nil && err != nil:
		return nil, err
	case got == nil:
		return nil, &pickle.Error{Offset: m.sc.Offset(), Reason: errNone.Error(), Err: errNone}
	case err != nil:
		d := evidence.SnapDamage{Offset: m.sc.Offset(), Text: err.Error()}
		var at *pickle.Error
		if errors.As(err, &at) {
			d.Offset = at.Offset
		}
		got.Damage = append(got.Damage, d)
		got.cut, got.Cut = true, true
	}
	got.end = m.sc.Offset()
	return got, nil
}
