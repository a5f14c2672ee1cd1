package tfevent

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/format/textline"
)

// A FileName is what the name of an event file states:
//
//	events.out.tfevents.<seconds since 1970>.<host>[.<pid>.<counter>][<suffix>]
//
// TensorFlow 1 writes no pid and counter. A host name may have dots.
type FileName struct {
	Start int64 // seconds since 1970; 0 unknown
	Host  string
	PID   string
}

// ParseName reads the base name of a slash path. ok reports whether it is one of an
// event file, which for TensorBoard is any that has "tfevents" in it.
func ParseName(name string) (n FileName, ok bool) {
	_, rest, ok := strings.Cut(path.Base(name), "tfevents")
	parts := strings.Split(strings.TrimPrefix(rest, "."), ".")
	secs, err := strconv.ParseUint(parts[0], 10, 40)
	if err != nil || len(parts) < 2 {
		return n, ok
	}
	n.Start = int64(secs)
	parts = parts[1:]
	address := len(parts) == 4 && !slices.ContainsFunc(parts, func(s string) bool { return !number32(s) })
	// The last two numbers are pid and counter, unless they are the end of an address.
	for end := len(parts); end >= 3 && !address; end-- {
		if number32(parts[end-1]) && number32(parts[end-2]) {
			n.Host, n.PID = textline.OneLine(strings.Join(parts[:end-2], "."), 256), parts[end-2]
			return n, ok
		}
	}
	n.Host = textline.OneLine(strings.Join(parts, "."), 256)
	return n, ok
}

func number32(s string) bool {
	_, err := strconv.ParseUint(s, 10, 32)
	return err == nil
}

// Writer names who wrote the file: host.pid, as far as it is known.
func (n FileName) Writer() string {
	if n.PID == "" {
		return n.Host
	}
	return n.Host + "." + n.PID
}
