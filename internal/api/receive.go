package api

import (
	"context"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/request"
)

// A bodyError is why the body of a request ended before its end: the client went, or stalled
// (a net.Error that is a timeout).
type bodyError struct {
	err   error
	after int64 // bytes that had come
}

func (e *bodyError) Error() string { return "read body: " + e.err.Error() }
func (e *bodyError) Unwrap() error { return e.err }

// A body is that of an upload: each read may wait for idle and no longer, all of them together as
// long as they will. From its end on, the connection is watched for the client's going, for which
// there is no deadline; where it ended early the deadline stays, for what the server reads of the
// rest before it answers.
type body struct {
	r    io.Reader
	rc   *http.ResponseController
	now  func() time.Time
	idle time.Duration
	n    int64
}

// body is the body of the call.
func (c *call) body(s *server) *body {
	return &body{r: c.r.Body, rc: c.rc, now: s.Now, idle: s.Idle}
}

func (b *body) Read(p []byte) (int, error) {
	_ = b.rc.SetReadDeadline(b.now().Add(b.idle)) // an error: there are no deadlines, as in a test
	n, err := b.r.Read(p)
	b.n += int64(n)
	switch {
	case err == io.EOF:
		_ = b.rc.SetReadDeadline(time.Time{})
	case err != nil:
		err = &bodyError{err: err, after: b.n}
	}
	return n, err
}

// fits refuses a body that says that it is larger than a case may be, before any of it is read.
func (s *server) fits(c *call) error {
	if l := s.Desk.Limits(); c.r.ContentLength > l.CaseBytes {
		return desk.ErrTooLarge
	}
	return nil
}

// receive puts the files of a request into a case: those of a form with files, else the one that
// the body is, which was written last at a time. It returns how many there were.
func (s *server) receive(ctx context.Context, c *call, id, name string, written time.Time) (files int, err error) {
	if err := s.fits(c); err != nil {
		return 0, err
	}
	b := c.body(s)
	kind, params, _ := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if kind != "multipart/form-data" {
		if name == "" {
			name = "log"
		}
		_, err := s.Desk.PutDated(ctx, id, name, written, b)
		return 1, err
	}
	form := multipart.NewReader(b, params["boundary"])
	for {
		part, err := form.NextRawPart()
		if err == io.EOF {
			return files, nil
		}
		if err == nil {
			if name := request.FileName(part); name != "" {
				files++
				_, err = s.Desk.Put(ctx, id, name, part)
			} else {
				_, err = io.Copy(io.Discard, io.LimitReader(part, chunk)) // a field of the form; NextRawPart skips the rest
			}
		}
		if err != nil {
			return files, formError(err)
		}
	}
}

// formError tells what is no form from what ended early.
func formError(err error) error {
	var cut *bodyError
	if errors.As(err, &cut) || isDesks(err) {
		return err
	}
	return huma.Error422UnprocessableEntity("the body is not the multipart/form-data that its Content-Type promises: " + err.Error())
}

func isDesks(err error) bool {
	for _, e := range []error{desk.ErrNoCase, desk.ErrName, desk.ErrTwice, desk.ErrTooLarge, desk.ErrTooMany, desk.ErrState, desk.ErrSpace, desk.ErrClosed, context.Canceled} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// A fileName is the name of a file of a case. desk.CheckName has the last word.
type fileName string

func (fileName) Schema(huma.Registry) *huma.Schema {
	least, most := 1, 1024
	return precomputed(&huma.Schema{
		Type: huma.TypeString, MinLength: &least, MaxLength: &most,
		Pattern:     `^[^/\\\x00-\x1f\x7f-\x9f]+(/[^/\\\x00-\x1f\x7f-\x9f]+)*$`,
		Description: "Relative, with slashes, without . and .. elements, in UTF-8; an element has at most 255 bytes and is no name that Windows has for a device.",
	})
}

// Modified says when a file was written last.
type Modified struct {
	Modified time.Time `query:"modified" doc:"When the file was written last where it comes from: RFC 3339, from 1970 to a day from now. Which of several launches is the newest, and whether a run still goes on, can depend on it. Left out, it is the time of the upload." example:"2026-01-31T12:00:00Z"`
}

// ahead is how far the clock of a client may be.
const ahead = 24 * time.Hour

// written is the time, the zero time where none was given.
func (m *Modified) written(now time.Time) (time.Time, error) {
	switch t := m.Modified; {
	case t.IsZero():
	case t.Before(time.Unix(0, 0)):
		return t, huma.Error422UnprocessableEntity("modified is before 1970; leave it out where it is not known")
	case t.After(now.Add(ahead)):
		return t, huma.Error422UnprocessableEntity("modified is more than a day in the future; leave it out where it is not known")
	}
	return m.Modified, nil
}

type putInput struct {
	ID   string   `path:"id" doc:"Of the case." maxLength:"128"`
	Name fileName `path:"name" doc:"Of the file, with slashes as / or %2F." example:"logs/rank_0.log"`
	Modified
}

func (s *server) registerUpload() {
	const at = "/v1/cases/{id}/files/{name...}"
	huma.Register(s.api, huma.Operation{
		OperationID: "putFile", Method: http.MethodPut, Path: at, Tags: []string{"cases"},
		Summary: "Put a file into a case",
		Description: `The body is the file, as it is: a log, an archive, a tracker's file, a memory snapshot. It is written while it comes, whatever its length; Content-Length is not needed. A file whose upload
ended early stays, marked as not whole, and is diagnosed as far as it came. A name is taken once. Upload as many files at once as you like.`,
		DefaultStatus: http.StatusCreated,
		Responses:     responses(http.StatusCreated, answers("The file is there.", ref("Case.casefile"))),
		Errors:        []int{http.StatusBadRequest, http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusInsufficientStorage},
	}, s.putFile)
	s.takes(http.MethodPut, at, "The bytes of the file; none are an empty file.", map[string]*huma.MediaType{"application/octet-stream": {Schema: binary}})
}

func (s *server) putFile(ctx context.Context, in *putInput) (*answered, error) {
	c := callOf(ctx)
	if err := s.fits(c); err != nil {
		return nil, problem(err)
	}
	written, err := in.written(s.Now())
	if err != nil {
		return nil, err
	}
	b := c.body(s)
	n, err := s.Desk.PutDated(ctx, in.ID, string(in.Name), written, b)
	if err != nil {
		return nil, problem(err)
	}
	return s.sendJSON(ctx, http.StatusCreated, incident.CaseFile{Name: string(in.Name), Bytes: n, Whole: true}, nil)
}
