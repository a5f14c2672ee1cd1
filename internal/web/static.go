package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"

	"github.com/inquest-dev/inquest/internal/report"
)

// types are the files that are served, by their endings.
var types = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// A static serves files that come with the program; those that framed reports need are report/….
// Their paths hold a hash of their content, so that a browser keeps them for good and a new
// version has new ones.
type static struct {
	paths map[string]string // of a name
	files map[string]*file  // by path
}

type file struct {
	kind   string
	plain  []byte
	zipped func() []byte
}

func newStatic() (*static, error) {
	s := &static{paths: map[string]string{}, files: map[string]*file{}}
	err := fs.WalkDir(assets, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || types[path.Ext(name)] == "" {
			return err
		}
		b, err := assets.ReadFile(name)
		if err == nil {
			s.add(strings.TrimPrefix(name, "assets/"), b)
		}
		return err
	})
	for name, text := range report.PartFiles() {
		s.add("report/"+name, []byte(text))
	}
	return s, err
}

func (s *static) add(name string, b []byte) {
	sum := sha256.Sum256(b)
	ext := path.Ext(name)
	p := "/static/" + strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:8]) + ext
	s.paths[name] = p
	s.files[p] = &file{types[ext], b, sync.OnceValue(func() []byte { return zip(b) })}
}

// path is where the file of that name is served.
func (s *static) path(name string) (string, error) {
	if p, ok := s.paths[name]; ok {
		return p, nil
	}
	return "", fmt.Errorf("no file %s among the assets", name)
}

func (s *static) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := s.files[r.URL.Path]
	if f == nil {
		http.Error(w, "no such file; reload the page that asked for it", http.StatusNotFound)
		return
	}
	b := f.plain
	w.Header().Set("Vary", "Accept-Encoding")
	if len(b) > worthZipping && takesGzip(r) {
		b = f.zipped()
		w.Header().Set("Content-Encoding", "gzip")
	}
	w.Header().Set("Content-Type", f.kind)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.Write(b)
}

// worthZipping is from how many bytes an answer is compressed: a page that comes through a
// forwarded port over a slow line is a tenth then.
const worthZipping = 2 << 10

func takesGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, q, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			q = strings.TrimPrefix(strings.ReplaceAll(q, " ", ""), "q=")
			v, err := strconv.ParseFloat(q, 64)
			return q == "" || err == nil && v > 0
		}
	}
	return false
}

func zip(b []byte) []byte {
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, 5) // the level is one that there is
	z.Write(b)
	z.Close()
	return out.Bytes()
}

// send writes an answer that is made whole, compressed where that is worth it. Answers with data
// are kept nowhere.
func (s *site) send(w http.ResponseWriter, r *http.Request, status int, kind string, b []byte) {
	h := w.Header()
	if len(b) > worthZipping && takesGzip(r) {
		b = zip(b)
		h.Set("Content-Encoding", "gzip")
	}
	h.Add("Vary", "Accept-Encoding")
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		w.Write(b)
	}
}
