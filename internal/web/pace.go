package web

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// stall is how long a request or an answer may stand still before its connection is closed. There
// is no bound on how long it may take: a large folder comes for as long as it comes.
const stall = time.Minute

// paced answers with next; reading what is uploaded and writing what is answered each get a
// deadline that moves on with every part. When the request or the program ends, a read that
// waits for its bytes ends with it.
func (s *site) paced(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		out := &pacedWriter{ResponseWriter: w, control: control, now: s.Now}
		if r.Body != nil && r.Body != http.NoBody {
			in := &pacedBody{ReadCloser: r.Body, control: control, now: s.Now}
			defer context.AfterFunc(r.Context(), in.end)()
			r.Body = in
		}
		next.ServeHTTP(out, r)
		out.move()
	})
}

type pacedBody struct {
	io.ReadCloser
	control *http.ResponseController
	now     func() time.Time
	set     time.Time

	mu    sync.Mutex
	ended bool // no deadline is moved on any more
}

func (b *pacedBody) Read(p []byte) (int, error) {
	if now := b.now(); now.Sub(b.set) > time.Second {
		b.set = now
		b.until(now.Add(stall))
	}
	if b.over() { // whoever reads may have moved the deadline by itself
		return 0, context.Canceled
	}
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		// What follows is waited for without a deadline, by which the server learns that the
		// other side has gone.
		b.until(time.Time{})
	}
	return n, err
}

// until sets how long a read may wait, unless the request has ended.
func (b *pacedBody) until(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		b.control.SetReadDeadline(at)
	}
}

func (b *pacedBody) over() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended
}

// end makes a read that waits return, and one that comes later.
func (b *pacedBody) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.control.SetReadDeadline(time.Unix(1, 0))
}

type pacedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	now     func() time.Time
	set     time.Time
}

func (w *pacedWriter) move() {
	if now := w.now(); now.Sub(w.set) > time.Second {
		w.set = now
		w.control.SetWriteDeadline(now.Add(stall))
	}
}

func (w *pacedWriter) Write(p []byte) (int, error) {
	w.move()
	return w.ResponseWriter.Write(p)
}

// FlushError sends what is written so far; http.ResponseController finds it.
func (w *pacedWriter) FlushError() error {
	w.move()
	return w.control.Flush()
}

func (w *pacedWriter) Flush() { w.FlushError() }

// Unwrap lets a ResponseController reach the connection.
func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
