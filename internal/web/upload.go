package web

import (
	"bufio"
	"errors"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"path"
	"strings"

	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/request"
)

var uploadRoutes = []route{
	{"POST /cases", (*site).handOver},
}

// pasted is the name of the file that a pasted text becomes.
const pasted = "pasted.log"

var errNothing = &failure{http.StatusBadRequest, "Nothing was handed over", "Paste a log, or choose a file or a folder.", nil}

// A putter takes one file of a case.
type putter func(name string, r io.Reader) error

// newCase makes a case of what fill hands over, has it diagnosed, and shows it. fill calls begin
// before the first file. A case that is not whole is taken back.
func (s *site) newCase(w http.ResponseWriter, r *http.Request, fill func(begin func(name string) error, put putter) error) error {
	var c *incident.Case
	files := 0
	err := fill(func(name string) (err error) {
		if c == nil {
			c, err = s.Desk.Begin(name)
		}
		return err
	}, func(name string, in io.Reader) error {
		_, err := s.Desk.Put(r.Context(), c.ID, name, in)
		files++
		return err
	})
	if err == nil && files == 0 {
		err = errNothing
	}
	if err == nil {
		err = s.Desk.Diagnose(c.ID, desk.Handling{})
	}
	if err != nil {
		if c != nil {
			s.Desk.Remove(c.ID)
		}
		return err
	}
	return see(w, r, "/cases/"+c.ID)
}

// handOver takes the form of the first page as it comes, part by part: nothing of it is kept in
// memory or in a second file. It is what a browser without scripts sends; with them, files come
// one by one (assets/upload.js).
func (s *site) handOver(w http.ResponseWriter, r *http.Request) error {
	parts, err := r.MultipartReader()
	if err != nil {
		return &failure{http.StatusUnsupportedMediaType, "The form came in a way that is not read", "Send it as multipart/form-data.", err}
	}
	return s.newCase(w, r, func(begin func(string) error, put putter) error {
		for {
			part, err := parts.NextRawPart()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return cutShort(err)
			}
			if err := takePart(part, begin, put); err != nil {
				return err
			}
		}
	})
}

// takePart takes one part: the pasted text, a file with something in it, or nothing.
func takePart(part *multipart.Part, begin func(string) error, put putter) error {
	defer part.Close()
	var in io.Reader = coming{part}
	name := request.FileName(part)
	switch part.FormName() {
	case "text":
		name, in = pasted, &unixLines{bufio.NewReaderSize(in, 64<<10)}
	case "files", "folder":
	default:
		return nil
	}
	if name == "" {
		return nil // a field for files in which none was chosen
	}
	var first [512]byte
	n, err := io.ReadFull(in, first[:])
	if n == 0 && err == io.EOF {
		if part.FormName() == "text" {
			return nil
		}
	} else if err != nil && err != io.ErrUnexpectedEOF {
		return err
	}
	if err := begin(caseName(name)); err != nil {
		return err
	}
	return put(name, io.MultiReader(strings.NewReader(string(first[:n])), in))
}

// caseName is what a case is called after its first file.
func caseName(file string) string {
	if file == pasted {
		return "pasted text"
	}
	if folder, _, ok := strings.Cut(file, "/"); ok && folder != "" {
		return folder + "/"
	}
	return path.Base(file)
}

// cutShort is why a form did not come whole.
func cutShort(err error) error {
	var slow net.Error
	if errors.As(err, &slow) && slow.Timeout() {
		return &failure{http.StatusRequestTimeout, "The upload stood still", "Nothing came for a minute, and it was given up. Hand it over once more.", nil}
	}
	return &failure{http.StatusBadRequest, "The upload ended before all of it had come", "Hand it over once more.", err}
}

// A coming reads a part of a form; where the form is cut short its error says so.
type coming struct{ io.Reader }

func (c coming) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = cutShort(err)
	}
	return n, err
}

// unixLines reads text to which a form gave the line ends CR LF, as it was: with LF.
type unixLines struct{ in *bufio.Reader }

func (u *unixLines) Read(p []byte) (n int, err error) {
	for n < len(p) && (n == 0 || u.in.Buffered() > 0) {
		b, err := u.in.ReadByte()
		if err != nil {
			return n, err
		}
		if b == '\r' {
			if next, _ := u.in.Peek(1); len(next) == 1 && next[0] == '\n' {
				continue
			}
		}
		p[n] = b
		n++
	}
	return n, nil
}
