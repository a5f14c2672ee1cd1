// Package store keeps trials and what was done with their incidents. The truth is one
// append-only file for each trial and for each act, so that any number of processes on any
// number of hosts, also over NFS, write without a lock: no file has two writers. Everything
// else, incidents and the index among it, is made from them and can be made again.
//
//	STORE/trials/YYYY-MM/ID/record.jsonl   the records of a trial, one a line
//	STORE/trials/YYYY-MM/ID/output.log     what its command printed
//	STORE/acts/YYYY-MM/ID.jsonl            one act
//
// A line is a record in JSON, a tab, and its CRC-32C in eight hexadecimal digits. A record is
// committed when its line is complete; what stands behind the last complete line was being
// written when its writer ended.
package store

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"

	"github.com/inquest-dev/inquest/internal/incident"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A Store is a folder of trials and acts. Its methods may be called concurrently, by any
// number of processes.
type Store struct {
	dir string
}

// Open returns the store in dir, which need not exist: it is made by the first thing written.
func Open(dir string) *Store { return &Store{dir: dir} }

// Dir is its folder.
func (s *Store) Dir() string { return s.dir }

// A Writer appends the records of one trial. It is the only writer of its file. Its methods
// may be called concurrently.
type Writer struct {
	file *os.File
	seq  int
	err  error
	dir  string
}

// Begin makes the folder and the file of a trial and commits its first record; t has its ID and
// Begun. The folder is open for t's log. Nothing waits for a disk; see Sync. With an error nothing
// of the trial is in the store.
func (s *Store) Begin(t incident.Trial) (*Writer, error) {
	dir := s.TrialDir(t)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("begin trial: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "record.jsonl"), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("begin trial: %w", err)
	}
	w := &Writer{file: f, dir: dir}
	return w, w.Put(incident.Record{At: t.Begun, Kind: incident.RecordBegun, Begun: &t})
}

// TrialDir is the folder of a trial.
func (s *Store) TrialDir(t incident.Trial) string {
	month := t.Begun
	if len(month) > 7 {
		month = month[:7]
	}
	return filepath.Join(s.dir, "trials", month, t.ID)
}

// Dir is the folder of the trial.
func (w *Writer) Dir() string { return w.dir }

// Put commits a record; it sets its Seq.
func (w *Writer) Put(r incident.Record) error {
	r.Seq = w.seq
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	b = fmt.Appendf(b, "\t%08x\n", crc32.Checksum(b, castagnoli))
	if _, err := w.file.Write(b); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	w.seq++
	return nil
}

// Sync waits until what was put is on the disk.
func (w *Writer) Sync() error { return w.file.Sync() }

// Close ends the writing.
func (w *Writer) Close() error { return w.file.Close() }
