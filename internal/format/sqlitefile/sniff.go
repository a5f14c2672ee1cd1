package sqlitefile

import (
	"encoding/binary"
	"strings"
)

// TablesIn returns the names of tables that the first bytes of a database show, in lower
// case. The list of tables begins on page 1, of which the first bytes hold the newest
// entries of a small list and none of one that takes several pages: whole says
// that the list is complete.
func TablesIn(head []byte) (names map[string]bool, whole bool) {
	if len(head) < headerLen+8 || string(head[:16]) != Magic {
		return nil, false
	}
	size, err := pageSizeOf(head)
	if err != nil || head[headerLen] != 13 {
		return nil, false
	}
	names = map[string]bool{}
	page := head[:min(len(head), size)]
	cells := int(binary.BigEndian.Uint16(page[headerLen+3:]))
	whole = len(page) == size
	for i := range cells {
		at := headerLen + 8 + 2*i
		if at+2 > len(page) {
			return names, false
		}
		c := int(binary.BigEndian.Uint16(page[at:]))
		if c >= len(page) {
			whole = false
			continue
		}
		cell := page[c:]
		n, k := varint(cell)
		_, m := varint(cell[k:])
		if k == 0 || m == 0 || n == 0 {
			continue
		}
		kind, name := entry(cell[k+m:])
		if kind == "table" {
			names[strings.ToLower(name)] = true
		}
	}
	return names, whole
}

// entry reads the first two texts of a record whose end may be missing.
func entry(rec []byte) (kind, name string) {
	end, n := varint(rec)
	if n == 0 || end > uint64(len(rec)) || end < uint64(n) {
		return "", ""
	}
	t, k := varint(rec[n:end])
	u, _ := varint(rec[uint64(n+k):end])
	if t < 13 || u < 13 || t&u&1 == 0 {
		return "", ""
	}
	a, b := (t-13)/2, (u-13)/2
	if a > uint64(len(rec))-end || b > uint64(len(rec))-end-a {
		return "", ""
	}
	return string(rec[end : end+a]), string(rec[end+a : end+a+b])
}

// Companion reports whether a slash path is that of a file which SQLite keeps beside a
// database, and returns the database's.
func Companion(path string) (db string, ok bool) {
	for _, suffix := range [...]string{"-wal", "-shm", "-journal"} {
		if db, ok := strings.CutSuffix(path, suffix); ok && db != "" && !strings.HasSuffix(db, "/") {
			return db, true
		}
	}
	return "", false
}
