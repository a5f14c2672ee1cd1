package web

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/encyclopedia"
	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/reader/all"
)

// A served is a site that answers on a port of this machine, as inquest serve does.
type served struct {
	*testing.T
	desk *desk.Desk
	url  string
	dir  string // in which the desk keeps its folder
	stop func() // as an interrupt of inquest serve: requests end, then the desk
}

func serve(t *testing.T, limits desk.Limits, now func() time.Time) *served {
	t.Helper()
	before := goroutines()
	c, err := catalog.Load(encyclopedia.FS)
	if err != nil {
		t.Fatal(err)
	}
	s := &served{T: t, dir: t.TempDir()}
	s.desk, err = desk.New(desk.Options{Dir: s.dir, Engine: engine.Options{Catalog: c, Readers: all.Readers(c.Plan()), Version: "test", Workers: 2}, Limits: limits, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	samples := []Sample{{"oom", "A sample", map[string]string{"oom/train.log": oom}}}
	h, err := Handler(Options{Desk: s.desk, Catalog: c, Hosts: []string{host}, Samples: samples, Version: "test", Now: now})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	server := httptest.NewUnstartedServer(h)
	server.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	server.Start()
	s.url = server.URL
	stopped := false
	s.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		http.DefaultClient.CloseIdleConnections()
		wait, done := context.WithTimeout(context.Background(), 5*time.Minute)
		defer done()
		if err := server.Config.Shutdown(wait); err != nil {
			t.Errorf("requests do not end: %v", err)
			server.CloseClientConnections()
		}
		server.Close()
		if err := s.desk.Close(); err != nil {
			t.Errorf("close desk: %v", err)
		}
		if left, _ := os.ReadDir(s.dir); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		if !eventually(func() bool { return goroutines() <= before }) {
			buf := make([]byte, 1<<20)
			t.Errorf("goroutines are left: %d, before %d\n%s", goroutines(), before, buf[:runtime.Stack(buf, true)])
		}
	}
	t.Cleanup(s.stop)
	return s
}

// goroutines counts those that run code of a site or a desk, or answer a connection.
func goroutines() int {
	buf := make([]byte, 4<<20)
	n := 0
	for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(g, "internal/desk.") || strings.Contains(g, "internal/engine.") || strings.Contains(g, "net/http.(*conn).serve") {
			n++
		}
	}
	return n
}

// eventually waits until ok, as long as a loaded machine may need: some minutes.
func eventually(ok func() bool) bool {
	for range 30_000 {
		if ok() {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

const oom = `step 1 | loss 2.31
step 2 | loss 2.30
Traceback (most recent call last):
  File "train.py", line 10, in <module>
    main()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 592.00 MiB. GPU 0 has a total capacity of 23.58 GiB of which 201.44 MiB is free. Including non-PyTorch memory, this process has 23.38 GiB memory in use. Of the allocated memory 22.71 GiB is allocated by PyTorch, and 193.52 MiB is reserved by PyTorch but unallocated.
`

// A part is a field of a form; with a file name it is a file.
type part struct{ field, file, text string }

func form(parts ...part) (kind string, body *bytes.Buffer) {
	body = &bytes.Buffer{}
	w := multipart.NewWriter(body)
	for _, p := range parts {
		h := textproto.MIMEHeader{}
		h.Set("Content-Disposition", fmt.Sprintf(`form-data; name="%s"`, p.field))
		if p.file != "-" {
			h.Set("Content-Disposition", fmt.Sprintf(`form-data; name="%s"; filename="%s"`, p.field, p.file))
			h.Set("Content-Type", "application/octet-stream")
		}
		out, _ := w.CreatePart(h)
		io.WriteString(out, p.text)
	}
	w.Close()
	return w.FormDataContentType(), body
}

// send posts to a path and does not follow where that leads.
func (s *served) send(path, kind string, body io.Reader) (*http.Response, string) {
	s.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	resp, err := client.Post(s.url+path, kind, body)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Fatal(err)
	}
	return resp, string(b)
}

// handed posts a form that is taken, and waits for the end of its case.
func (s *served) handed(parts ...part) *incident.Case {
	s.Helper()
	kind, body := form(parts...)
	resp, page := s.send("/cases", kind, body)
	if resp.StatusCode != http.StatusSeeOther {
		s.Fatalf("status %d: %s", resp.StatusCode, page)
	}
	return s.end(strings.TrimPrefix(resp.Header.Get("Location"), "/cases/"))
}

func (s *served) end(id string) *incident.Case {
	s.Helper()
	if _, err := s.desk.Result(context.Background(), id); err != nil && !errors.Is(err, desk.ErrFailed) {
		s.Fatal(err)
	}
	c, err := s.desk.Case(id)
	if err != nil {
		s.Fatal(err)
	}
	return c
}

func names(c *incident.Case) []string {
	var out []string
	for _, f := range c.Files {
		out = append(out, f.Name)
	}
	return out
}

func TestHandOver(t *testing.T) {
	s := serve(t, desk.Limits{}, time.Now)
	for _, c := range []struct {
		about string
		parts []part
		name  string
		files []string
	}{
		{"a pasted text", []part{{"text", "-", strings.ReplaceAll(oom, "\n", "\r\n")}}, "pasted text", []string{"pasted.log"}},
		{"files", []part{{"files", "a.log", oom}, {"files", "b.log", "step 1\n"}, {"folder", "", ""}}, "a.log", []string{"a.log", "b.log"}},
		{"a folder", []part{{"files", "", ""}, {"folder", "job/rank_0.log", oom}, {"folder", "job/deep/rank_1.log", "step 1\n"}}, "job/", []string{"job/deep/rank_1.log", "job/rank_0.log"}},
		{"a folder of Windows", []part{{"folder", `job\\rank_0.log`, oom}}, "job/", []string{"job/rank_0.log"}},
		{"an empty file", []part{{"files", "empty.log", ""}}, "empty.log", []string{"empty.log"}},
		{"a field that nobody knows", []part{{"other", "-", "x"}, {"text", "-", oom}}, "pasted text", []string{"pasted.log"}},
	} {
		k := s.handed(c.parts...)
		if k.Name != c.name || !slices.Equal(names(k), c.files) {
			t.Errorf("%s: case %q of %q, want %q of %q", c.about, k.Name, names(k), c.name, c.files)
		}
		for _, f := range k.Files {
			if !f.Whole {
				t.Errorf("%s: %s is not whole", c.about, f.Name)
			}
		}
	}
	k := s.handed(part{"text", "-", strings.ReplaceAll(oom, "\n", "\r\n")})
	if k.Bytes != int64(len(oom)) {
		t.Errorf("a pasted text has %d bytes, want %d: line ends as they were", k.Bytes, len(oom))
	}
	if !strings.Contains(k.Title, "memory") {
		t.Errorf("the verdict of a pasted text is %q", k.Title)
	}
}

func TestSample(t *testing.T) {
	s := serve(t, desk.Limits{}, time.Now)
	resp, _ := s.send("/samples/oom", "", nil)
	if resp.StatusCode != http.StatusSeeOther {
		t.Fatalf("status %d", resp.StatusCode)
	}
	if k := s.end(strings.TrimPrefix(resp.Header.Get("Location"), "/cases/")); k.State != incident.CaseDone || !slices.Equal(names(k), []string{"oom/train.log"}) {
		t.Errorf("case %+v", k)
	}
	if resp, _ := s.send("/samples/none", "", nil); resp.StatusCode != http.StatusNotFound {
		t.Errorf("status %d of a sample that is not there", resp.StatusCode)
	}
}

// What is refused leaves no case, and nothing outside the desk's folder.
func TestHandOverRefused(t *testing.T) {
	s := serve(t, desk.Limits{CaseBytes: 4096, Files: 3}, time.Now)
	long := strings.Repeat("x", 5000)
	for _, c := range []struct {
		about  string
		status int
		says   string
		parts  []part
	}{
		{"nothing", 400, "Nothing was handed over", nil},
		{"empty fields", 400, "Nothing was handed over", []part{{"text", "-", ""}, {"files", "", ""}}},
		{"a path that leads up", 400, "name that is not taken", []part{{"files", "../outside.log", oom}}},
		{"a path that leads up further down", 400, "name that is not taken", []part{{"folder", "job/../../outside.log", oom}}},
		{"a path that leads up on Windows", 400, "name that is not taken", []part{{"files", `..\\..\\outside.log`, oom}}},
		{"an absolute path", 400, "name that is not taken", []part{{"files", "/tmp/outside.log", oom}}},
		{"a drive", 400, "name that is not taken", []part{{"files", `C:\\outside.log`, oom}}},
		{"a zero byte", 400, "", []part{{"files", "a\x00.log", oom}}},
		{"a long name", 400, "name that is not taken", []part{{"files", strings.Repeat("n", 5000), oom}}},
		{"a name twice", 409, "there already", []part{{"files", "a.log", "1\n"}, {"files", "a.log", "2\n"}}},
		{"a large file", 413, "larger than is taken", []part{{"files", "a.log", long}}},
		{"large files together", 413, "larger than is taken", []part{{"files", "a.log", long[:3000]}, {"files", "b.log", long[:3000]}}},
		{"many files", 429, "more than is taken", []part{{"files", "a", "1"}, {"files", "b", "1"}, {"files", "c", "1"}, {"files", "d", "1"}}},
	} {
		kind, body := form(c.parts...)
		resp, page := s.send("/cases", kind, body)
		if resp.StatusCode != c.status || !strings.Contains(page, c.says) {
			t.Errorf("%s: status %d, want %d and %q: %s", c.about, resp.StatusCode, c.status, c.says, page)
		}
		if left := s.desk.Cases(); len(left) > 0 {
			t.Errorf("%s: a case is left: %+v", c.about, left)
		}
	}
	for kind, status := range map[string]int{"text/plain": 415, "application/x-www-form-urlencoded": 415, "multipart/form-data": 415} {
		if resp, _ := s.send("/cases", kind, strings.NewReader("text=x")); resp.StatusCode != status {
			t.Errorf("%s: status %d, want %d", kind, resp.StatusCode, status)
		}
	}
	if resp, _ := s.send("/cases", "multipart/form-data; boundary=b", strings.NewReader("no form")); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("no form: status %d", resp.StatusCode)
	}
	// What is no upload has no large body.
	if resp, _ := s.send("/cases/x/notes", "text/plain", strings.NewReader(strings.Repeat("x", 2*maxBody))); resp.StatusCode < 400 {
		t.Errorf("a large body: status %d", resp.StatusCode)
	}
	filepath.WalkDir(s.dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && strings.Contains(d.Name(), "outside") {
			t.Errorf("written: %s", name)
		}
		return err
	})
}

// Members of an archive are only named, whatever they are called: none is written anywhere.
func TestHandOverArchive(t *testing.T) {
	s := serve(t, desk.Limits{}, time.Now)
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for _, name := range []string{"job/train.log", "../../outside.log", "/tmp/inquest-outside.log"} {
		w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(oom))})
		io.WriteString(w, oom)
	}
	w.WriteHeader(&tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"})
	w.Close()
	k := s.handed(part{"files", "job.tar", packed.String()})
	if k.State != incident.CaseDone {
		t.Fatalf("case %+v", k)
	}
	if _, err := os.Stat("/tmp/inquest-outside.log"); err == nil {
		t.Error("a member was written to the path that it names")
	}
	filepath.WalkDir(s.dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && strings.Contains(d.Name(), "outside") {
			t.Errorf("written: %s", name)
		}
		return err
	})
}

// begin sends the head of a form and part of its first file, and leaves the rest to come.
func (s *served) begin() net.Conn {
	s.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "POST /cases HTTP/1.1\r\nHost: %s\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 100000\r\n\r\n--b\r\nContent-Disposition: form-data; name=\"files\"; filename=\"a.log\"\r\n\r\n%s",
		host, strings.Repeat("step 1\n", 1000))
	if !eventually(func() bool { c := s.desk.Cases(); return len(c) == 1 }) {
		s.Fatal("no case was begun")
	}
	return conn
}

func TestCutUpload(t *testing.T) {
	s := serve(t, desk.Limits{}, time.Now)
	s.begin().Close()
	if !eventually(func() bool { return len(s.desk.Cases()) == 0 }) {
		t.Errorf("a case is left: %+v", s.desk.Cases())
	}
}

// An upload that stands still is given up: here the clock that sets its deadline is far behind.
func TestSlowUpload(t *testing.T) {
	s := serve(t, desk.Limits{}, func() time.Time { return time.Unix(1000, 0) })
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /cases HTTP/1.1\r\nHost: %s\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 100000\r\n\r\n--b\r\nContent-Disposition: form-data; name=\"files\"; filename=\"a.log\"\r\n\r\nstep 1\n", host)
	// The deadline of the answer is over as well: all that is left is the end of the connection.
	if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Logf("the connection ended with %v", err)
	}
	if !eventually(func() bool { return len(s.desk.Cases()) == 0 }) {
		t.Errorf("a case is left: %+v", s.desk.Cases())
	}
}

// An interrupt ends uploads that are under way, and the desk with its folder.
func TestStopWhileUploading(t *testing.T) {
	s := serve(t, desk.Limits{}, time.Now)
	conn := s.begin()
	s.stop()
	if answer, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil && answer.StatusCode < 400 {
		t.Errorf("status %d of an upload that was cut off", answer.StatusCode)
	}
}

// What ends because its request was cancelled is never answered as if it had been done, wherever
// the cancelling meets it.
func TestCancelledRequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	(&site{}).fail(w, httptest.NewRequestWithContext(ctx, "POST", "/cases", nil), fmt.Errorf("take %q: %w", "a.log", context.Canceled))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d", w.Code)
	}
}

// A log with scripts, escapes and one line of 100 MB changes nothing on the page but text.
func TestHostileLog(t *testing.T) {
	if testing.Short() {
		t.Skip("100 MB are read")
	}
	s := serve(t, desk.Limits{}, time.Now)
	quiet := s.handed(part{"files", "train.log", oom})
	in, out := io.Pipe()
	w := multipart.NewWriter(out)
	go func() {
		p, _ := w.CreateFormFile("files", `<img src=x onerror=alert(1)>.log`)
		io.WriteString(p, "<script>alert(1)</script>\x1b]0;title\x07\x1b[31mred\x1b[0m \u202egnihtyreve\u202c\n")
		io.WriteString(p, oom)
		long := strings.Repeat("<b onclick=alert(1)>\x1b[2J", 1<<10)
		for n := 0; n < 100<<20; n += len(long) {
			io.WriteString(p, long)
		}
		io.WriteString(p, "\n")
		w.Close()
		out.Close()
	}()
	resp, page := s.send("/cases", w.FormDataContentType(), in)
	if resp.StatusCode != http.StatusSeeOther {
		t.Fatalf("status %d: %s", resp.StatusCode, page)
	}
	loud := s.end(strings.TrimPrefix(resp.Header.Get("Location"), "/cases/"))
	if loud.State != incident.CaseDone || loud.Title != quiet.Title {
		t.Errorf("case %s with %q, want done with %q", loud.State, loud.Title, quiet.Title)
	}
	get := func(path string) string {
		resp, err := http.Get(s.url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: status %d, %v", path, resp.StatusCode, err)
		}
		return string(b)
	}
	calm := get("/cases/" + quiet.ID)
	for _, path := range []string{"/cases/" + loud.ID, "/cases", "/"} {
		page := get(path)
		for _, no := range []string{"<script>alert", "<img src=x", "<b onclick", "\x1b", "\x07", "\u202e"} {
			if strings.Contains(page, no) {
				t.Errorf("%s has %q", path, no)
			}
		}
		if len(page) > len(calm)+64<<10 {
			t.Errorf("%s has %d bytes, that of the short log %d", path, len(page), len(calm))
		}
	}
}
