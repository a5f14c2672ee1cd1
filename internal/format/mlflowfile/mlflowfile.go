// Package mlflowfile reads the metric files of MLflow's file store
// (mlflow/store/tracking/file_store.py, 1.8 to 3.17): one line for each logged value,
//
//	milliseconds since 1970, value, step
//
// separated by one space. The step may be missing, which means 0. Python prints the value:
// nan, inf, -inf, 1e-05. MLflow itself refuses a whole file for one torn line.
package mlflowfile

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// RunFolder is what the folder of a run is called.
var RunFolder = lazyre.New(`^[0-9a-f]{32}$`)

// InRun splits the slash path of a file of a run into the run's folder, which is named by
// an id, and the file's path below it: metrics/KEY, params/KEY, tags/KEY, where a key may hold
// slashes.
func InRun(p string) (dir, rest string, ok bool) {
	return split(p, func(parts []string) bool { return len(parts) > 0 && RunFolder.MatchString(parts[len(parts)-1]) })
}

// Below is InRun also for a folder of any name, as one that was copied has: of several that
// it may be the innermost.
func Below(p string) (dir, rest string, ok bool) {
	if dir, rest, ok = InRun(p); !ok {
		dir, rest, ok = split(p, func([]string) bool { return true })
	}
	return dir, rest, ok
}

func split(p string, run func(folders []string) bool) (dir, rest string, ok bool) {
	parts := strings.Split(p, "/")
	for i := len(parts) - 2; i >= 0; i-- {
		if slices.Contains([]string{"metrics", "params", "tags"}, parts[i]) && run(parts[:i]) {
			return strings.Join(parts[:i], "/"), strings.Join(parts[i:], "/"), true
		}
	}
	return "", "", false
}

// Key is the name of a series from the key of its metric, on one line and within bounds.
func Key(key string) string { return textline.OneLine(key, 512) }

// Name is an id or name of a run, on one line and within bounds.
func Name(name string) string { return textline.OneLine(name, 200) }

// maxLine bounds a line; what MLflow writes has some fifty bytes.
const maxLine = 64 << 10

// What is wrong with a line.
var (
	ErrTorn   = errors.New("is cut off")
	ErrLine   = errors.New("is no metric")
	ErrZeros  = errors.New("is filled with zeros")
	ErrLength = errors.New("is longer than 64 KiB")
)

// A Line is one line of a metric file.
type Line struct {
	Raw    []byte // with its end; of one over the bound only the beginning
	Number int64  // from 1
	Offset int64
	Length int64

	Millis int64
	Value  float64
	Step   int64
	Err    error // why it is no value; nil for one
}

// A Reader reads the lines of a metric file.
type Reader struct {
	in     *bufio.Reader
	line   Line
	offset int64
}

// NewReader returns a reader of r.
func NewReader(r io.Reader) *Reader { return &Reader{in: bufio.NewReaderSize(r, maxLine)} }

// Next returns the next line, which is valid until the call after, and io.EOF behind the
// last. Blank lines are returned as well, without a value: their Err is ErrLine.
func (r *Reader) Next() (*Line, error) {
	l := &r.line
	raw, err := r.in.ReadSlice('\n')
	l.Raw, l.Offset, l.Length, l.Err = raw, r.offset, int64(len(raw)), nil
	if errors.Is(err, bufio.ErrBufferFull) {
		l.Raw = bytes.Clone(raw)
		l.Err = ErrLength
		for errors.Is(err, bufio.ErrBufferFull) {
			raw, err = r.in.ReadSlice('\n')
			l.Length += int64(len(raw))
		}
	}
	r.offset += l.Length
	l.Number++
	switch {
	case err != nil && err != io.EOF:
		return nil, err
	case l.Length == 0:
		return nil, io.EOF
	case l.Err != nil:
	case err == io.EOF:
		l.Err = ErrTorn
		if bytes.Trim(raw, "\x00") == nil || raw[len(raw)-1] == 0 {
			l.Err = ErrZeros
		}
	default:
		l.parse()
	}
	return l, nil
}

// parse reads the two or three fields of a line.
func (l *Line) parse() {
	b := bytes.TrimRight(l.Raw, "\r\n")
	if l.Offset == 0 {
		b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	}
	if bytes.IndexByte(b, 0) >= 0 {
		l.Err = ErrZeros
		return
	}
	at, rest, ok := bytes.Cut(b, []byte(" "))
	value, step, steps := bytes.Cut(rest, []byte(" "))
	l.Err = ErrLine
	var err error
	if l.Millis, err = strconv.ParseInt(string(at), 10, 64); err != nil || !ok {
		return
	}
	if l.Value, err = strconv.ParseFloat(string(value), 64); err != nil && !errors.Is(err, strconv.ErrRange) {
		return
	}
	l.Step = 0
	if steps {
		if l.Step, err = strconv.ParseInt(string(step), 10, 64); err != nil {
			return
		}
	}
	l.Err = nil
}
