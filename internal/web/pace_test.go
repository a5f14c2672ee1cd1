package web

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A deadlined is a writer that keeps the deadline for reading.
type deadlined struct {
	*httptest.ResponseRecorder
	read time.Time
}

func (d *deadlined) SetReadDeadline(at time.Time) error { d.read = at; return nil }

// TestPaceEnded reads behind the end of a request: no deadline is moved on, and nothing is waited for.
func TestPaceEnded(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w := &deadlined{ResponseRecorder: httptest.NewRecorder()}
	b := &pacedBody{ReadCloser: io.NopCloser(strings.NewReader("text")), control: http.NewResponseController(w), now: func() time.Time { return now }}
	if n, err := b.Read(make([]byte, 2)); n != 2 || err != nil || !w.read.Equal(now.Add(stall)) {
		t.Fatalf("%d bytes, %v, until %v", n, err, w.read)
	}
	b.end()
	ended := w.read
	now = now.Add(time.Hour)
	if n, err := b.Read(make([]byte, 2)); n != 0 || err != context.Canceled || !w.read.Equal(ended) || ended.After(now) {
		t.Errorf("behind the end: %d bytes, %v, until %v", n, err, w.read)
	}
}
