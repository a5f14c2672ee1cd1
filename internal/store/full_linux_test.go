package store

import (
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/inquest-dev/inquest/internal/incident"
)

// childFull puts records into a file that may not grow beyond a limit until one fails, then
// raises the limit, as a disk that somebody cleaned, and puts more.
func childFull(dir, id string) error {
	signal.Ignore(syscall.SIGXFSZ)
	s := Open(dir)
	t, _ := failedTrial(1, "f")
	t.ID = id
	w, err := s.Begin(t)
	if err != nil {
		return err
	}
	fmt.Println("begun")
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 20_000, Max: old.Max}); err != nil {
		return err
	}
	put := 0
	one := func() error {
		err := w.Put(incident.Record{Kind: incident.RecordSamples, Samples: []incident.Sample{{Seconds: float64(put)}}})
		if err == nil {
			fmt.Println("put", put)
			put++
		}
		return err
	}
	for err == nil {
		err = one()
	}
	for range 3 { // it stays full
		if one() == nil {
			return fmt.Errorf("a record was put where nothing fits")
		}
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	for range 5 {
		if err := one(); err != nil {
			return err
		}
	}
	return w.Close()
}

// TestFullDisk fills a disk within a record: what was committed before and after is there.
func TestFullDisk(t *testing.T) {
	s := Open(t.TempDir())
	c := childCommand(s.Dir(), "t20261130-full", -1)
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	var a acknowledged
	for l := range strings.Lines(string(out)) {
		a.line(strings.TrimSpace(l))
	}
	if a.puts < 10 {
		t.Fatalf("%d records", a.puts)
	}
	a.check(t, s, "t20261130-full", nil)
	r, err := s.Trial("t20261130-full")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Trial.Samples) != a.puts || !strings.Contains(strings.Join(r.Trial.Problems, "\n"), "its writing failed") {
		t.Errorf("%d samples, want %d; problems %q", len(r.Trial.Samples), a.puts, r.Trial.Problems)
	}
}
