package store

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/incident"
)

// childEnv makes the test binary a process that writes into a store: its value is the folder,
// the id of the trial and how many records are put, between tabs; 0 is without end, -1 is
// childFull.
const childEnv = "INQUEST_TEST_STORE_CHILD"

func TestMain(m *testing.M) {
	if v := os.Getenv(childEnv); v != "" {
		f := strings.Split(v, "\t")
		n, _ := strconv.Atoi(f[2])
		run := func() error { return child(f[0], f[1], n) }
		if n < 0 {
			run = func() error { return childFull(f[0], f[1]) }
		}
		if err := run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child begins a trial and puts records, acts among them; each that is committed is reported
// in a line: "put N" or "act ID".
func child(dir, id string, records int) error {
	s := Open(dir)
	t, _ := failedTrial(1, "f")
	t.ID = id
	w, err := s.Begin(t)
	if err != nil {
		return err
	}
	fmt.Println("begun")
	for n := 0; records == 0 || n < records; n++ {
		samples := []incident.Sample{{Seconds: float64(n), Resident: int64(n)}}
		if n%17 == 16 { // too large for a line
			for range 3000 {
				samples = append(samples, incident.Sample{Seconds: float64(n), Devices: []incident.DeviceSample{{Index: 1}}})
			}
		}
		if err := w.Put(incident.Record{Kind: incident.RecordSamples, Samples: samples}); err != nil {
			return err
		}
		fmt.Println("put", n)
		if n%5 == 4 {
			a, err := s.Act(incident.Act{Incident: "i-0", Kind: incident.ActNote, Text: strings.Repeat("x", n*97%40_000)})
			if err != nil {
				return err
			}
			fmt.Println("act", a.ID)
		}
		if n%7 == 6 {
			if _, err := s.List(context.Background()); err != nil {
				return err
			}
		}
	}
	return w.Close()
}

func childCommand(dir, id string, records int) *exec.Cmd {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childEnv+"="+strings.Join([]string{dir, id, strconv.Itoa(records)}, "\t"))
	c.Stderr = os.Stderr
	return c
}

// acknowledged is what a child reported.
type acknowledged struct {
	begun bool
	puts  int
	acts  []string
}

func (a *acknowledged) line(s string) {
	kind, arg, _ := strings.Cut(s, " ")
	switch kind {
	case "begun":
		a.begun = true
	case "put":
		n, _ := strconv.Atoi(arg)
		a.puts = n + 1
	case "act":
		a.acts = append(a.acts, arg)
	}
}

// check reports what of it the store does not have.
func (a *acknowledged) check(t *testing.T, s *Store, id string, acts map[string]bool) {
	t.Helper()
	for _, x := range a.acts {
		if !acts[x] {
			t.Errorf("%s: act %s was committed and is not there", id, x)
		}
	}
	if !a.begun {
		return
	}
	r, err := s.Trial(id)
	if err != nil {
		t.Errorf("%s: %v", id, err)
		return
	}
	seen := map[float64]bool{}
	for _, x := range r.Trial.Samples {
		seen[x.Seconds] = true
	}
	for n := range a.puts {
		if !seen[float64(n)] {
			t.Errorf("%s: record %d of %d was committed and is not there; %q", id, n, a.puts, r.Trial.Problems)
			return
		}
	}
	if r.Trial.Scenario == "" {
		t.Errorf("%s: its first record is lost", id)
	}
}

func actsOf(t *testing.T, s *Store) (*Contents, map[string]bool) {
	t.Helper()
	c, err := s.Contents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, a := range c.Acts {
		ids[a.ID] = true
	}
	return c, ids
}

// TestKilled ends writers with SIGKILL at random moments: all that was committed is there, and
// the store is readable, with an index as good as one made anew.
func TestKilled(t *testing.T) {
	const stores, points = 4, 50 // of each
	for i := range stores {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			killed(t, uint64(i), points)
		})
	}
}

// killed ends as many writers into one store as there are points.
func killed(t *testing.T, seed uint64, points int) {
	if testing.Short() {
		points = 5
	}
	s := Open(t.TempDir())
	type end struct {
		id  string
		ack acknowledged
	}
	ends := make([]end, points)
	rnd := rand.New(rand.NewPCG(seed, 2))
	for i := range ends {
		id := fmt.Sprintf("t20261130-killed-%04d", i)
		c := childCommand(s.Dir(), id, 0)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		// After so many lines, and then somewhere between that and the next ones.
		lines, more := rnd.IntN(40), time.Duration(rnd.IntN(3000))*time.Microsecond
		ends[i].id = id
		in := bufio.NewScanner(out)
		for n := 0; n < lines && in.Scan(); n++ {
			ends[i].ack.line(in.Text())
		}
		timer := time.AfterFunc(more, func() { c.Process.Kill() })
		for in.Scan() {
			ends[i].ack.line(in.Text())
		}
		timer.Stop()
		c.Process.Kill()
		c.Wait()
	}
	c, acts := actsOf(t, s)
	puts, torn := 0, 0
	for i := range ends {
		ends[i].ack.check(t, s, ends[i].id, acts)
		puts += ends[i].ack.puts
	}
	for _, x := range c.Trials {
		if len(x.Problems) > 0 {
			torn++
		}
	}
	if len(c.Problems) > 0 {
		t.Errorf("problems: %q", c.Problems)
	}
	l, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again, err := s.List(t.Context()); err != nil || !reflect.DeepEqual(l, again) {
		t.Errorf("the index differs from one made anew: %v", err)
	}
	t.Logf("%d writers killed, %d records and %d acts committed, %d trials with a torn record", points, puts, len(acts), torn)
}

// TestConcurrentProcesses lets ten processes write and list at once.
func TestConcurrentProcesses(t *testing.T) {
	s := Open(t.TempDir())
	const processes, records = 10, 60
	acks := make([]acknowledged, processes)
	var wg sync.WaitGroup
	for i := range processes {
		wg.Go(func() {
			c := childCommand(s.Dir(), fmt.Sprintf("t20261130-beside-%04d", i), records)
			out, err := c.Output()
			if err != nil {
				t.Errorf("writer %d: %v", i, err)
			}
			for l := range strings.Lines(string(out)) {
				acks[i].line(strings.TrimSpace(l))
			}
		})
	}
	wg.Wait()
	c, acts := actsOf(t, s)
	for i := range acks {
		if acks[i].puts != records {
			t.Errorf("writer %d put %d of %d records", i, acks[i].puts, records)
		}
		acks[i].check(t, s, fmt.Sprintf("t20261130-beside-%04d", i), acts)
	}
	if len(c.Trials) != processes || len(c.Acts) != processes*records/5 || len(c.Problems) > 0 {
		t.Errorf("%d trials, %d acts, problems %q", len(c.Trials), len(c.Acts), c.Problems)
	}
	left, _ := filepath.Glob(filepath.Join(s.Dir(), indexTemp+"*"))
	if len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
