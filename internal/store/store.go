// Package store keeps trials and what was done with their incidents. The truth is one
// append-only file for each trial and for each act, so that any number of processes on any
// number of hosts, also over NFS, write without a lock: no file has two writers. Everything
// else, incidents and the index among it, is made from them and can be made again.
//
//	STORE/trials/YYYY-MM/ID/record.jsonl        the records of a trial, one a line
//	STORE/trials/YYYY-MM/ID/record-SEQ.json.gz  a record that is too large for a line
//	STORE/trials/YYYY-MM/ID/output.log          what its command printed
//	STORE/acts/YYYY-MM/ID.jsonl                 one act, and ID-0.json.gz where it is large
//	STORE/index.sqlite                          the index; see index.go
//
// A line is a record in JSON, a tab, and its CRC-32C in eight hexadecimal digits. A record is
// committed when its line is complete; what stands behind the last complete line was being
// written when its writer ended. A line that ends with "!" was cut short by a failed write,
// as on a full disk, and is followed by what its writer wrote next.
//
// Folders have mode 0700, files 0600. Links in a store are not followed.
package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/inquest-dev/inquest/internal/incident"
)

// A Store is a folder of trials and acts. Its methods may be called concurrently, by any
// number of processes.
type Store struct {
	dir string
}

// Open returns the store in dir, which need not exist: it is made by the first thing written.
func Open(dir string) *Store { return &Store{dir: dir} }

// Dir is its folder.
func (s *Store) Dir() string { return s.dir }

// Names of a trial's files.
const (
	recordFile = "record.jsonl"
	logFile    = "output.log"
)

// A Writer appends the records of one trial. It is the only writer of its file. Its methods
// may be called concurrently.
type Writer struct {
	dir string

	mu     sync.Mutex
	file   *os.File
	seq    int
	torn   bool // the last write ended within a line
	synced bool // the folder's entry is on the disk
}

// Begin makes the folder and the file of a trial and commits its first record; t has its ID and
// Begun. The folder is open for t's log. Nothing waits for a disk; see Sync. With an error nothing
// of the trial is in the store.
func (s *Store) Begin(t incident.Trial) (*Writer, error) {
	if !isID(t.ID) {
		return nil, fmt.Errorf("begin trial: %q is no id of a trial", t.ID)
	}
	if monthOf(t.Begun) == noMonth {
		return nil, fmt.Errorf("begin trial: %q is no time", t.Begun)
	}
	dir := s.TrialDir(t)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("begin trial: %w", err)
	}
	name := filepath.Join(dir, recordFile)
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("begin trial: %w", err)
	}
	w := &Writer{file: f, dir: dir}
	if err := w.Put(incident.Record{At: t.Begun, Kind: incident.RecordBegun, Begun: &t}); err != nil {
		f.Close()
		os.Remove(name)
		os.Remove(attachedName(filepath.Join(dir, "record"), 0))
		os.Remove(dir)
		return nil, fmt.Errorf("begin trial: %w", err)
	}
	return w, nil
}

// isID reports whether s may name a folder or a file of a store: letters, digits and ._- and
// none of these first.
func isID(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return 0 < len(s) && len(s) <= 128
}

// noMonth is the folder of what has no time.
const noMonth = "0000-00"

// monthOf is the folder for what happened at a time in RFC 3339.
func monthOf(at string) string {
	if len(at) < len("2006-01-02T") || at[4] != '-' || at[7] != '-' {
		return noMonth
	}
	for _, c := range at[:4] + at[5:7] {
		if c < '0' || c > '9' {
			return noMonth
		}
	}
	return at[:7]
}

// TrialDir is the folder of a trial.
func (s *Store) TrialDir(t incident.Trial) string {
	return filepath.Join(s.dir, "trials", monthOf(t.Begun), filepath.Base(t.ID))
}

// Dir is the folder of the trial.
func (w *Writer) Dir() string { return w.dir }

// Put commits a record; it sets its Seq. With an error the record is not in the store, and
// another may be put: what a failed write left is never taken for a record, nor joined with
// the next one. A record of more than maxInline bytes is written beside the file and named in
// it; one of more than maxRecord bytes is refused.
func (w *Writer) Put(r incident.Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.Seq = w.seq
	b, err := encode(r, filepath.Join(w.dir, "record"))
	if err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	if w.torn {
		b = append([]byte("!\n"), b...)
	}
	n, err := w.file.Write(b)
	if err != nil {
		w.torn = w.torn || n > 0
		return fmt.Errorf("write record: %w", err)
	}
	w.torn = false
	w.seq++
	return nil
}

// Sync waits until what was put is on the disk.
func (w *Writer) Sync() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.file.Sync()
	if err == nil && !w.synced {
		syncDir(w.dir)
		syncDir(filepath.Dir(w.dir))
		w.synced = true
	}
	return err
}

// syncDir asks that a folder's entries be on the disk. Not every file system can be asked.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		d.Sync()
		d.Close()
	}
}

// Close ends the writing.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.file.Close()
}

// errNotRegular is for what is not a file where one should be.
var errNotRegular = errors.New("not a regular file")

// openRegular opens a regular file that no link stands for.
func openRegular(name string) (*os.File, os.FileInfo, error) {
	before, err := os.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, nil, errNotRegular
	}
	f, err := os.OpenFile(name, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return nil, nil, err
	}
	after, err := f.Stat()
	if err == nil && !os.SameFile(before, after) {
		err = errNotRegular
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, after, nil
}
