package record

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A fakeProc is a proc file system of plain files.
type fakeProc struct {
	t    testing.TB
	root string
	last int
}

func newFakeProc(t testing.TB) *fakeProc {
	p := &fakeProc{t: t, root: t.TempDir()}
	p.file("loadavg", "0.00 0.00 0.00 1/1 1\n")
	return p
}

func (p *fakeProc) file(name, text string) {
	p.t.Helper()
	full := filepath.Join(p.root, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// process makes a process, whose memory is in KiB.
func (p *fakeProc) process(pid, parent, session int, start uint64, anon, file, shmem int) {
	p.t.Helper()
	p.last++
	p.file("loadavg", fmt.Sprintf("0.00 0.00 0.00 1/1 %d\n", p.last))
	p.file(strconv.Itoa(pid)+"/stat", fmt.Sprintf("%d (a (b) c) S %d %d %d 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 %d 1000 10 18446744073709551615\n", pid, parent, session, session, start))
	p.memory(pid, session, anon, file, shmem)
}

func (p *fakeProc) memory(pid, session, anon, file, shmem int) {
	p.t.Helper()
	rss := anon + file + shmem
	p.file(strconv.Itoa(pid)+"/status", fmt.Sprintf("Name:\ta: b\nState:\tS (sleeping)\nPid:\t%d\nNSsid:\t%d\nVmPeak:\t%8d kB\nVmSize:\t%8d kB\nVmHWM:\t%8d kB\nVmRSS:\t%8d kB\nRssAnon:\t%8d kB\nRssFile:\t%8d kB\nRssShmem:\t%8d kB\nThreads:\t1\n", pid, session, 3*rss, 2*rss, rss+5, rss, anon, file, shmem))
}

func (p *fakeProc) zombie(pid int) {
	p.file(strconv.Itoa(pid)+"/status", "Name:\ta\nState:\tZ (zombie)\n")
}

func (p *fakeProc) remove(pid int) {
	// What is open reads as nothing, as of a process that has ended.
	p.file(strconv.Itoa(pid)+"/status", "")
	os.RemoveAll(filepath.Join(p.root, strconv.Itoa(pid)))
}

func never() bool { return false }

// at looks and returns the members.
func at(t *tree) ([]int, look) {
	t.find(never)
	l := t.memory(never)
	pids := slices.Clone(l.pids)
	slices.Sort(pids)
	return pids, l
}

func TestTree(t *testing.T) {
	p := newFakeProc(t)
	p.process(1, 0, 1, 1, 1000, 0, 0)      // init
	p.process(50, 1, 50, 90, 5000, 0, 0)   // somebody's
	p.process(100, 50, 50, 100, 10, 20, 0) // the command
	tr := newTree(p.root, 100)
	defer tr.close()
	if !tr.begin() {
		t.Fatal("the command was not found")
	}
	expect := func(when string, want ...int) look {
		t.Helper()
		got, l := at(tr)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
		return l
	}
	l := expect("alone", 100)
	if l.memory.resident != 30<<10 || l.space != 60<<10 || l.spaceMark != 90<<10 || l.residentMark != 35<<10 {
		t.Errorf("%+v", l)
	}
	p.process(103, 102, 50, 112, 1, 1, 1) // listed before its parent, by its number
	p.process(102, 100, 50, 111, 1, 1, 1)
	p.process(104, 50, 50, 113, 1, 1, 1) // a neighbour
	expect("children", 100, 102, 103)
	p.zombie(102)
	p.process(103, 1, 50, 112, 1, 1, 1) // adopted by init
	expect("an orphan", 100, 103)
	p.process(105, 103, 105, 120, 1, 1, 1) // leads a session
	expect("a leader", 100, 103, 105)
	p.remove(105)
	p.process(106, 1, 105, 121, 1, 1, 1) // of its session; its parent was never seen
	expect("a member of the session", 100, 103, 106)
	p.process(99, 100, 50, 60, 1, 1, 1) // older than the command: it cannot be its child
	expect("an older process", 100, 103, 106)
	p.process(107, 103, 103, 130, 1, 1, 1)
	p.memory(103, 103, 1, 1, 1) // has become a leader since
	expect("new", 100, 103, 106, 107)
	p.process(108, 1, 103, 131, 1, 1, 1)
	expect("a member of the newer session", 100, 103, 106, 107, 108)
	p.remove(100)
	expect("the command has ended", 103, 106, 107, 108)
	// Nothing is listed while no number was given away.
	scans := tr.scans
	at(tr)
	if tr.scans != scans {
		t.Error("listed without need")
	}
	// A process that was somebody's is looked at again now and then.
	for range rescan {
		p.last++
		p.file("loadavg", fmt.Sprintf("0 0 0 1/1 %d\n", p.last))
		at(tr)
	}
	p.process(104, 103, 50, 140, 1, 1, 1)
	for range rescan {
		p.last++
		p.file("loadavg", fmt.Sprintf("0 0 0 1/1 %d\n", p.last))
		at(tr)
	}
	expect("a number that was given again", 103, 104, 106, 107, 108)
}

func TestTreeTogether(t *testing.T) {
	p := newFakeProc(t)
	p.process(100, 1, 1, 100, 1000, 500, 100)
	p.process(101, 100, 1, 101, 1000, 400, 100)
	p.process(102, 100, 1, 102, 1000, 300, 100)
	tr := newTree(p.root, 100)
	defer tr.close()
	tr.begin()
	if _, l := at(tr); l.memory.resident != (3000+500+300)<<10 {
		t.Errorf("without the host's figures: %d KiB", l.memory.resident>>10)
	}
	// They share what the first one had before it forked: the host has less than they sum up to.
	p.file("meminfo", "MemTotal: 9000 kB\nAnonPages:   1200 kB\nShmem:   150 kB\n")
	if _, l := at(tr); l.memory.resident != (1200+500+150)<<10 {
		t.Errorf("with the host's figures: %d KiB", l.memory.resident>>10)
	}
	p.file("meminfo", "AnonPages: 0 kB\nShmem: 0 kB\n") // a host that does not say
	if _, l := at(tr); l.memory.resident != (3000+500+300)<<10 {
		t.Errorf("with zeros: %d KiB", l.memory.resident>>10)
	}
}

func TestTreeIsBounded(t *testing.T) {
	p := newFakeProc(t)
	p.process(1, 0, 1, 1, 1, 1, 1)
	tr := newTree(p.root, 1)
	defer tr.close()
	tr.begin()
	tr.members = slices.Repeat(tr.members, maxMembers)
	if tr.add(1, stat{start: 1}) {
		t.Error("one more")
	}
	tr.members = tr.members[:1]
	calls := 0
	tr.find(func() bool { calls++; return true })
	if tr.memory(func() bool { return true }); len(tr.members) != 1 {
		t.Error("lost a member")
	}
}

func TestTreeOfOddFiles(t *testing.T) {
	p := newFakeProc(t)
	for i, text := range []string{"", "1", "1 (a", "1 (a) S", "1 (a) S x 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 1\n", "1 (a) S 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 -1 1\n", strings.Repeat("9", 9000)} {
		pid := 10 + i
		p.file(strconv.Itoa(pid)+"/stat", text)
		if tr := newTree(p.root, pid); tr.begin() {
			t.Errorf("%.30q was taken", text)
		}
	}
	if tr := newTree(p.root, 99); tr.begin() {
		t.Error("a process that is not there")
	}
	for _, text := range []string{"VmRSS:", "VmRSS:\t kB\n", "VmRSS:\t99999999999999999999999 kB\n", ":\n::\n", "State:\t", "NSsid:\n", "RssShmem"} {
		if s := parseStatus([]byte(text)); s.rss < 0 {
			t.Errorf("%q: %+v", text, s)
		}
	}
}

func FuzzStatus(f *testing.F) {
	f.Add("Name:\ta\nState:\tZ\nNSsid:\t1\nVmRSS:\t 12 kB\nRssShmem:\t1 kB\n")
	f.Fuzz(func(t *testing.T, text string) {
		s := parseStatus([]byte(text))
		if s.rss < 0 || s.size < 0 || s.hwm < 0 || s.anon < 0 {
			t.Fatalf("%+v", s)
		}
		parseStat([]byte(text))
		cgroupPath(text, 1, "memory")
		cgroupMount(text, 2, "memory")
		unescape(text)
	})
}

// BenchmarkLook is what one look costs, for trees of several sizes in the proc file system of
// a host with 1000 more processes. The numbers of processes change before each, as on a busy
// host.
func BenchmarkLook(b *testing.B) {
	for _, n := range []int{1, 10, 300} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			p := newFakeProc(b)
			for i := range 1000 {
				p.process(10+i, 1, 1, 1, 1, 1, 1)
			}
			for i := range n {
				p.process(5000+i, 5000+i/2, 1, 100+uint64(i), 100, 100, 100)
			}
			tr := newTree(p.root, 5000)
			defer tr.close()
			tr.begin()
			at(tr)
			b.ResetTimer()
			for i := range b.N {
				tr.last = strconv.AppendInt(tr.last[:0], int64(-i), 10)
				at(tr)
			}
			if len(tr.members) != n {
				b.Fatal(len(tr.members))
			}
		})
	}
}
