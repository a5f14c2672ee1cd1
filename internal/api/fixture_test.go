package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/encyclopedia"
	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/reader/all"
	"github.com/inquest-dev/inquest/internal/store"
)

// oom is the log of a run that ran out of device memory.
const oom = `[rank0]: step 118 loss 2.31
[rank0]: step 119 loss 2.29
[rank0]: step 120 loss 2.30
[rank0]: Traceback (most recent call last):
[rank0]:   File "/work/train.py", line 88, in <module>
[rank0]:     loss.backward()
[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.20 GiB is free. Process 4711 has 77.94 GiB memory in use. Of the allocated memory 70.01 GiB is allocated by PyTorch, and 6.90 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.
`

var knowledge = sync.OnceValues(func() (*catalog.Catalog, error) { return catalog.Load(encyclopedia.FS) })

func engineOptions(t testing.TB) engine.Options {
	t.Helper()
	c, err := knowledge()
	if err != nil {
		t.Fatal(err)
	}
	return engine.Options{Catalog: c, Readers: all.Readers(c.Plan()), Version: "test", Workers: 2}
}

// A site is a server of the API with a desk and a store of its own.
type site struct {
	*httptest.Server
	t     testing.TB
	desk  *desk.Desk
	dir   string // of the desk
	store *store.Store
}

func newSite(t testing.TB, limits desk.Limits, with func(*Options)) *site {
	t.Helper()
	eo := engineOptions(t)
	dir := t.TempDir()
	d, err := desk.New(desk.Options{Dir: dir, Engine: eo, Limits: limits, Workers: 2, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, desk: d, dir: dir, store: store.Open(t.TempDir())}
	o := Options{Desk: d, Catalog: eo.Catalog, Store: s.store, Version: "test"}
	if with != nil {
		with(&o)
	}
	h, err := Handler(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Server = httptest.NewServer(h)
	t.Cleanup(func() {
		s.Server.Close()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// A reply is a response with its body.
type reply struct {
	*http.Response
	body string
}

func (s *site) do(method, path, body string, header ...string) reply {
	s.t.Helper()
	r, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := s.Client().Do(r)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return reply{resp, string(b)}
}

// want checks the status of a reply, and decodes its body into v where v is not nil.
func (s *site) want(r reply, status int, v any) reply {
	s.t.Helper()
	if r.StatusCode != status {
		s.t.Fatalf("%s %s: %s, want %d: %.400s", r.Request.Method, r.Request.URL, r.Status, status, r.body)
	}
	if v != nil {
		if err := json.Unmarshal([]byte(r.body), v); err != nil {
			s.t.Fatalf("%s %s: %v: %.400s", r.Request.Method, r.Request.URL, err, r.body)
		}
	}
	if status >= 400 {
		if got := r.Header.Get("Content-Type"); got != "application/problem+json" {
			s.t.Errorf("%s %s: an error of type %q", r.Request.Method, r.Request.URL, got)
		}
	}
	return r
}

// begin opens a case.
func (s *site) begin() incident.Case {
	s.t.Helper()
	var k incident.Case
	s.want(s.do("POST", "/v1/cases", `{"name":"a case"}`, "Content-Type", "application/json"), http.StatusCreated, &k)
	return k
}

// diagnosed is a case of these files (name, text, name, text…) that has ended.
func (s *site) diagnosed(files ...string) incident.Case {
	s.t.Helper()
	k := s.begin()
	for i := 0; i+1 < len(files); i += 2 {
		s.want(s.do("PUT", "/v1/cases/"+k.ID+"/files/"+files[i], files[i+1]), http.StatusCreated, nil)
	}
	s.want(s.do("POST", "/v1/cases/"+k.ID+"/diagnose", ""), http.StatusAccepted, nil)
	if _, err := s.desk.Result(context.Background(), k.ID); err != nil {
		s.t.Fatal(err)
	}
	return k
}

// dial opens a connection, for requests that no client would send.
func (s *site) dial() *net.TCPConn {
	s.t.Helper()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

func indented(t testing.TB, v any) string {
	t.Helper()
	var b bytes.Buffer
	if err := writeJSON(&b, v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
