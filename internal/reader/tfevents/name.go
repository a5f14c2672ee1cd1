package tfevents

import (
	"path"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/reader"
)

// A fileName is what the name of an event file states:
//
//	events.out.tfevents.<seconds since 1970>.<host>[.<pid>.<counter>][<suffix>]
//
// TensorFlow 1 writes no pid and counter. A host name may have dots.
type fileName struct {
	ok    bool // it is one of an event file: all that TensorBoard looks at
	start float64
	host  string
	pid   string
}

func parseName(p string) fileName {
	_, rest, ok := strings.Cut(path.Base(p), "tfevents")
	n := fileName{ok: ok}
	parts := strings.Split(strings.TrimPrefix(rest, "."), ".")
	secs, err := strconv.ParseUint(parts[0], 10, 40)
	if err != nil || len(parts) < 2 {
		return n
	}
	n.start = float64(secs)
	parts = parts[1:]
	// The last two numbers are pid and counter, unless they are the end of an address.
	for end := len(parts); end >= 3; end-- {
		if number(parts[end-1]) && number(parts[end-2]) && !(end == 4 && number(parts[0]) && number(parts[1])) {
			n.host, n.pid = strings.Join(parts[:end-2], "."), parts[end-2]
			return n
		}
	}
	n.host = strings.Join(parts, ".")
	return n
}

func number(s string) bool {
	_, err := strconv.ParseUint(s, 10, 32)
	return err == nil
}

// describe fills in what the path of the file says of the run.
func (f *file) describe(p string) {
	run := &f.rec.Run
	if run.Folder = path.Dir(p); run.Folder != "." {
		run.Name = path.Base(run.Folder)
	}
	n := parseName(p)
	run.Started = reader.StampAt(n.start)
	run.Writer = textline.OneLine(n.host, 256)
	if n.pid != "" {
		run.Writer += "." + n.pid
	}
}
