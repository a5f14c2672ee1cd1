package timeline

import (
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// at makes an artifact of one event that is about who.
func at(path, kind string, who evidence.Who, e evidence.Event) Source {
	s := source(path, kind, "", evidence.None, e)
	s.Events[0].Who = who
	return s
}

func on(host string) evidence.Who {
	w := evidence.Nobody()
	w.Host = host
	return w
}

// TestPods: a machine's failure is the machine's, also where the event names the pod on
// it; a kill that the machine records meets the rank of the pod by its process.
func TestPods(t *testing.T) {
	place := evidence.Event{Kind: evidence.JobRecord, Attrs: evidence.Attrs{"nodes": evidence.TextOf("metal-4")}}
	rank := on("m-worker-0")
	rank.Rank, rank.PID = 3, 777
	killed := on("metal-4")
	killed.PID = 777
	tl := Build([]Source{
		at("pods.txt", "kube", on("m-worker-0"), place),
		at("events.txt", "kube", on("m-worker-0"), evidence.Event{Kind: evidence.NodeFailure}),
		at("m.log", "ranklog", rank, evidence.Event{Kind: evidence.RankInfo}),
		at("node.txt", "kube", killed, evidence.Event{Kind: evidence.HostOOMKill}),
	})
	if h := tl.Items[1].Who.Host; h != "metal-4" {
		t.Errorf("the failed machine is %q", h)
	}
	if r := tl.Items[3].Who.Rank; r != 3 {
		t.Errorf("the killed process is of rank %d", r)
	}
	if h := tl.Seat(3).Host; h != "m-worker-0" {
		t.Errorf("rank 3 is on %q", h)
	}
	if tl.Elsewhere(tl.Items[3]) {
		t.Error("the pod's own node is called another's")
	}
	other := on("metal-9")
	tl = Build([]Source{at("pods.txt", "kube", on("m-worker-0"), place), at("node.txt", "kube", other, evidence.Event{Kind: evidence.HostOOMKill})})
	if !tl.Elsewhere(tl.Items[1]) {
		t.Error("a node without a pod of the job is taken for its own")
	}
	two := place
	two.Attrs = evidence.Attrs{"nodes": evidence.TextOf("metal-5")}
	tl = Build([]Source{at("a", "kube", on("p"), place), at("b", "kube", on("p"), two), at("c", "kube", on("p"), evidence.Event{Kind: evidence.NodeFailure})})
	if h := tl.Items[2].Who.Host; h != "p" {
		t.Errorf("of two machines %q was taken", h)
	}
}

// TestSeatsByNumber: a local rank leads to the rank where the launch and the hosts on
// both sides show that the hosts' numbers are their places, and not otherwise.
func TestSeatsByNumber(t *testing.T) {
	build := func(per, world, low, high int) int {
		rank := func(host string, r int) evidence.Who {
			w := on(host)
			w.Rank = r
			return w
		}
		failed := on("m-worker-2")
		failed.LocalRank = 1
		s := []Source{
			at("a", "ranklog", rank("m-worker-1", low), evidence.Event{Kind: evidence.PeerClosed}),
			at("b", "ranklog", rank("m-worker-3", high), evidence.Event{Kind: evidence.PeerClosed}),
			at("c", "ranklog", failed, evidence.Event{Kind: evidence.Exited}),
		}
		s[0].Facts = []evidence.Fact{{Name: "setting.nproc_per_node", Value: evidence.TextOf(string(rune('0' + per)))}, {Name: "run.world", Value: evidence.IntOf(int64(world))}}
		return Build(s).Items[2].Who.Rank
	}
	for _, x := range []struct {
		name                         string
		per, world, low, high, wants int
	}{
		{"between two that fit", 4, 16, 4, 13, 9},
		{"one does not fit", 4, 16, 8, 13, evidence.None},
		{"numbers that letters order otherwise", 4, 64, 4, 13, evidence.None},
		{"one host", 4, 4, 0, 1, evidence.None},
	} {
		if r := build(x.per, x.world, x.low, x.high); r != x.wants {
			t.Errorf("%s: rank %d, want %d", x.name, r, x.wants)
		}
	}
}

// TestFailedNodes: the node that the scheduler calls gone is the failed one, if it is of
// the job, the only one and of that time.
func TestFailedNodes(t *testing.T) {
	when := func(minute int) evidence.Stamp {
		return evidence.Stamp{Time: time.Date(2026, 6, 1, 8, minute, 0, 0, time.UTC), Written: "x", Clock: "wall", Error: time.Second}
	}
	gone := func(host, reason string, minute int) Source {
		return at(host+".txt", "slurm", on(host), evidence.Event{Kind: evidence.NodeState, Stamp: when(minute), Attrs: evidence.Attrs{"reason": evidence.TextOf(reason)}})
	}
	for _, x := range []struct {
		name  string
		nodes []Source
		want  string
	}{
		{"of the job", []Source{gone("q-003", "Not responding", 1)}, "q-003"},
		{"another reason", []Source{gone("q-003", "fan speed", 1)}, ""},
		{"not of the job", []Source{gone("q-009", "Not responding", 1)}, ""},
		{"two", []Source{gone("q-003", "Not responding", 1), gone("q-002", "Node unexpectedly rebooted", 1)}, ""},
		{"long ago", []Source{gone("q-003", "Not responding", -300)}, ""},
	} {
		s := append([]Source{
			at("sacct.txt", "slurm", evidence.Nobody(), evidence.Event{Kind: evidence.JobRecord, Attrs: evidence.Attrs{"nodes": evidence.TextOf("q-[001-004]")}}),
			at("job.out", "ranklog", evidence.Nobody(), evidence.Event{Kind: evidence.NodeFailure, Stamp: when(2)}),
		}, x.nodes...)
		if h := Build(s).Items[1].Who.Host; h != x.want {
			t.Errorf("%s: %q, want %q", x.name, h, x.want)
		}
	}
}

func TestHostLists(t *testing.T) {
	for _, x := range []struct {
		list, host string
		in         bool
		n          int
	}{
		{"q-[001-004,007]", "q-007", true, 5},
		{"q-[001-004,007]", "q-7", false, 5},
		{"login1,q-[01-02]-ib", "q-02-ib", true, 3},
		{"login1,q-[01-02]-ib", "login1", true, 3},
		{"q-[001", "q-001", true, 0},
		{"", "q", false, 0},
		{"q-[1-99999999]", "r", false, 0},
	} {
		if got := inList(x.list, x.host); got != x.in {
			t.Errorf("%s in %s: %v", x.host, x.list, got)
		}
		if n := nodesOf(x.list); n != x.n {
			t.Errorf("%s has %d hosts, want %d", x.list, n, x.n)
		}
	}
}
