package web

import (
	"fmt"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
)

var units = []string{"bytes", "KiB", "MiB", "GiB", "TiB"}

// byteCount says n bytes as a person does.
func byteCount(n int64) string {
	v, u := float64(n), 0
	for v >= 1024 && u < len(units)-1 {
		v /= 1024
		u++
	}
	if u == 0 {
		return plural(int(n), "byte")
	}
	return fmt.Sprintf("%.1f %s", v, units[u])
}

// plural is n and the noun: 1 file, 2 files.
func plural(n int, noun string) string { return evidence.Several(int64(n), noun) }

// when is a time of a case, RFC 3339 in UTC, as a person reads it.
func when(rfc string) string {
	t, err := time.Parse(time.RFC3339, rfc)
	if err != nil {
		return rfc
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}
