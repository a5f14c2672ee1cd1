package reader

import (
	"bytes"
	"context"
	"io"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// Within reads text that stands inside an artifact of another format (the message
// of an error file, the last words of a container) with r, as if it were an
// artifact of its own. Spans of the result count in text; whoever decoded the
// text knows where it stands.
func Within(ctx context.Context, r Reader, a evidence.Artifact, text []byte) (*Collector, error) {
	c := NewCollector()
	a.Size = int64(len(text))
	err := r.Read(ctx, Input{
		Artifact: a,
		Open:     func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil },
		At:       bytes.NewReader(text),
		Size:     a.Size,
	}, c)
	return c, err
}
