package store

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/redact"
)

// maxText bounds the text of an act, in bytes.
const maxText = 64 << 10

// Act stores an act; it gives it an id and the time where it has none, and masks secrets in its
// text. A reader sees the whole act or none of it. The act is on the disk when Act returns.
func (s *Store) Act(a incident.Act) (incident.Act, error) {
	now := time.Now().UTC()
	if a.At == "" {
		a.At = now.Format(time.RFC3339Nano)
	}
	if a.ID == "" {
		var b [5]byte
		rand.Read(b[:])
		a.ID = "a" + now.Format("20060102-150405") + "-" + hex.EncodeToString(b[:])
	}
	if len(a.Text) > maxText {
		return a, fmt.Errorf("store act: a text of %d bytes; at most %d", len(a.Text), maxText)
	}
	a.Text = redact.Text(a.Text)
	if a.Trials == nil {
		a.Trials = []string{}
	}
	if err := s.putAct(a); err != nil {
		return a, fmt.Errorf("store act: %w", err)
	}
	return a, nil
}

func (s *Store) putAct(a incident.Act) error {
	if !isID(a.ID) {
		return fmt.Errorf("%q is no id of an act", a.ID)
	}
	dir := filepath.Join(s.dir, "acts", monthOf(a.At))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	name := filepath.Join(dir, a.ID+".jsonl")
	if _, err := os.Lstat(name); err == nil {
		return fmt.Errorf("act %s: %w", a.ID, os.ErrExist)
	}
	if a.Result != nil {
		r := *a.Result
		r.Trials = append([]incident.Trial(nil), r.Trials...)
		for i := range r.Trials {
			r.Trials[i].Samples = []incident.Sample{}
		}
		a.Result = &r
	}
	b, err := encode(incident.Record{At: a.At, Kind: incident.RecordAct, Act: &a}, filepath.Join(dir, a.ID))
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".act-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	// A link never takes another file's place; not every file system has links.
	if err := os.Link(f.Name(), name); errors.Is(err, os.ErrExist) {
		return err
	} else if err != nil {
		if err := os.Rename(f.Name(), name); err != nil {
			return err
		}
	}
	syncDir(dir)
	return nil
}

func (s *Store) readAct(f *found) (*incident.Act, error) {
	file, _, err := openRegular(f.name(s))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var act *incident.Act
	why := errors.New("it holds no act")
	_, err = readRecords(file, func(r *incident.Record) {
		if r.Attached != nil {
			whole, err := attached(r.Attached, filepath.Dir(f.name(s)))
			if err != nil {
				why = fmt.Errorf("%s: %w", bounded(r.Attached.Name, 80), err)
				return
			}
			r = whole
		}
		if act == nil && r.Act != nil {
			act = r.Act
		}
	})
	if err != nil {
		return nil, err
	}
	if act == nil {
		return nil, why
	}
	act.ID, act.Trials = f.id, list(act.Trials)
	return act, nil
}
