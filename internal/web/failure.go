package web

import (
	"context"
	"errors"
	"net/http"

	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/report"
)

// A failure is an error with the status and the words of its page. Handlers return one where the
// error itself does not say enough; the table of failures knows the others.
type failure struct {
	status int
	title  string // what is wrong, as a heading
	todo   string // what to do
	err    error  // the cause, shown; may be nil
}

func (f *failure) Error() string {
	if f.err != nil {
		return f.title + ": " + f.err.Error()
	}
	return f.title
}

func (f *failure) Unwrap() error { return f.err }

// failures say what the page of an error is. The first that fits is taken.
var failures = []struct {
	is     error
	status int
	title  string
	todo   string
}{
	{errNowhere, http.StatusNotFound, "There is no such page", "The navigation above leads to all that there is."},
	{desk.ErrNoCase, http.StatusNotFound, "There is no such case", "It may have been removed, or inquest was started again since: cases are kept as long as it runs. Hand the files over once more."},
	{desk.ErrState, http.StatusConflict, "That cannot be done with the case now", "Look at the case: it may still be read, or have ended."},
	{desk.ErrTooLarge, http.StatusRequestEntityTooLarge, "That is larger than is taken", "Hand over the logs alone, without checkpoints and data; inquest diagnose reads a folder of any size where it lies."},
	{desk.ErrTooMany, http.StatusTooManyRequests, "That is more than is taken at once", "Remove a case, or wait until one has ended. Many small files may come as one archive."},
	{desk.ErrName, http.StatusBadRequest, "A file has a name that is not taken", "Names are relative, without .. elements. Rename it, or put it into an archive."},
	{desk.ErrTwice, http.StatusConflict, "A file of that name is there already", "Rename one of the two, or hand over their folder."},
	{desk.ErrSpace, http.StatusInsufficientStorage, "No space is left for what is handed over", "Remove cases, or start inquest serve with --scratch and a folder on a larger disk."},
	{desk.ErrClosed, http.StatusServiceUnavailable, "inquest is ending", "Start inquest serve again."},
}

// A failed page is what the template failure is given.
type failedPage struct{ Title, Detail, Todo string }

// fail makes a page of an error. What is nobody's fault but ours says no more than that it
// happened; all other errors are of what was asked for, and are shown.
func (s *site) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil && errors.Is(err, context.Canceled) {
		// Mostly nobody listens any more. Where the program is ending somebody does, and without a
		// status the answer would be 200.
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	status, p := http.StatusInternalServerError, failedPage{"This did not work", err.Error(), "If it happens again, report it with what you did."}
	var f *failure
	var large *http.MaxBytesError
	if errors.As(err, &f) {
		status, p = f.status, failedPage{Title: f.title, Todo: f.todo}
		if f.err != nil {
			p.Detail = f.err.Error()
		}
	} else if errors.As(err, &large) {
		status, p = http.StatusRequestEntityTooLarge, failedPage{Title: "That is more than this form takes", Todo: "A log goes to the first page, of any size."}
	} else {
		for _, k := range failures {
			if errors.Is(err, k.is) {
				status, p = k.status, failedPage{k.title, err.Error(), k.todo}
				if err == k.is {
					p.Detail = ""
				}
				break
			}
		}
	}
	p.Detail = report.OneLine(p.Detail)
	if err := s.page(w, r, status, p.Title, "failure", p); err != nil {
		http.Error(w, "this did not work", http.StatusInternalServerError)
	}
}
