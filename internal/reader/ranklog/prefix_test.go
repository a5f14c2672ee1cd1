package ranklog

import (
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// who builds the expected identity.
func who(f func(*evidence.Who)) evidence.Who {
	w := evidence.Nobody()
	if f != nil {
		f(&w)
	}
	return w
}

func rank(n int) evidence.Who  { return who(func(w *evidence.Who) { w.Rank = n }) }
func local(n int) evidence.Who { return who(func(w *evidence.Who) { w.LocalRank = n }) }

func TestPeel(t *testing.T) {
	plain := framing{}
	srun := framing{srun: true, srunRank: true}
	node := framing{srun: true}
	tee := framing{tee: true}
	hosts := framing{hosts: map[string]bool{"n1": true, "n2": true}}
	bracket := framing{bracket: true}
	short := framing{short: true}
	pods := framing{pods: map[string]bool{"fit-0": true}}
	for _, c := range []struct {
		f     framing
		line  string
		rest  string
		who   evidence.Who
		time  string // as written, "" for none
		level byte
	}{
		// Ranks and hosts.
		{plain, "[default3]:loading", "loading", local(3), "", 0},
		{plain, "[default3]:  File", "  File", local(3), "", 0},
		{plain, "[rank3]: Traceback", "Traceback", rank(3), "", 0},
		{plain, "[rank3]:   File \"x\"", "  File \"x\"", rank(3), "", 0},
		{tee, "[rank3]:  File \"x\"", "  File \"x\"", local(3), "", 0},
		{tee, "[rank1]:[rank5]: Traceback", "Traceback", who(func(w *evidence.Who) { w.Rank, w.LocalRank = 5, 1 }), "", 0},
		{plain, "[default1]:[rank5]: oh", "oh", who(func(w *evidence.Who) { w.Rank, w.LocalRank = 5, 1 }), "", 0},
		{plain, "[rank3]:[rank3]: Traceback", "Traceback", rank(3), "", 0},
		{plain, "[11]:text", "text", rank(11), "", 0},
		{plain, "[1,3]<stderr>:text", "text", rank(3), "", 0},
		{plain, "[1,2]:text", "text", rank(2), "", 0},
		{plain, "[prterun-h1-77@1,4]<stdout>: text", "text", rank(4), "", 0},
		{bracket, "[3] text", "text", rank(3), "", 0},
		{short, "[r12] text", "[r12] text", rank(12), "", 0},
		{plain, "[3] text", "[3] text", who(nil), "", 0},
		{plain, "[pod/fit-0/pytorch] text", "text", who(func(w *evidence.Who) { w.Host = "fit-0" }), "", 0},
		{plain, "[pod/fit-0/pytorch] 2026-01-02T03:04:05.5Z text", "text", who(func(w *evidence.Who) { w.Host = "fit-0" }), "2026-01-02T03:04:05.5Z", 0},
		{pods, "fit-0 pytorch text", "text", who(func(w *evidence.Who) { w.Host = "fit-0" }), "", 0},
		{pods, "fit-0 pytorch 2026-01-02T03:04:05.5Z text", "text", who(func(w *evidence.Who) { w.Host = "fit-0" }), "2026-01-02T03:04:05.5Z", 0},
		{pods, "fit-9 pytorch text", "fit-9 pytorch text", who(nil), "", 0},
		{plain, "fit-0 pytorch text", "fit-0 pytorch text", who(nil), "", 0},
		{srun, " 3: text", "text", rank(3), "", 0},
		{srun, "P0  3: text", "text", rank(3), "", 0},
		{node, "1: [rank9]: text", "text", rank(9), "", 0},
		{node, "1: text", "text", who(nil), "", 0},
		{plain, "3: text", "3: text", who(nil), "", 0},
		{hosts, "n2: text", "text", who(func(w *evidence.Who) { w.Host = "n2" }), "", 0},
		{hosts, "RuntimeError: text", "RuntimeError: text", who(nil), "", 0},
		{plain, "(TrainWorker pid=77, ip=10.1.2.3) text", "text", who(func(w *evidence.Who) { w.PID, w.Host = 77, "10.1.2.3" }), "", 0},
		{plain, "(EngineCore_DP0 pid=12) ERROR 03-04 05:06:07 [core.py:1] text", "text", who(func(w *evidence.Who) { w.PID = 12 }), "03-04 05:06:07", 'E'},
		{plain, "(raylet) text", "text", who(nil), "", 0},
		{plain, "(not a prefix) text", "(not a prefix) text", who(nil), "", 0},
		{plain, "wandb: text", "text", who(nil), "", 0},
		{plain, "worker-1  | text", "text", who(func(w *evidence.Who) { w.Host = "worker-1" }), "", 0},
		{plain, "algo-1-k3x9z | text", "text", who(func(w *evidence.Who) { w.Host = "algo-1-k3x9z" }), "", 0},
		{plain, "node7 [stderr] text", "text", who(func(w *evidence.Who) { w.Host = "node7" }), "", 0},
		{plain, "h9:55:66 [2] NCCL INFO text", "NCCL INFO text", who(func(w *evidence.Who) { w.Host, w.PID, w.Device = "h9", 55, 2 }), "", 0},
		{plain, "h9:55:66 [2] x.cc:9 NCCL WARN text", "x.cc:9 NCCL WARN text", who(func(w *evidence.Who) { w.Host, w.PID, w.Device = "h9", 55, 2 }), "", 0},
		{plain, "[rank: 2] Seed set", "[rank: 2] Seed set", rank(2), "", 0},
		{plain, "[Rank 4] text", "[Rank 4] text", rank(4), "", 0},
		{plain, "[RANK 4] text", "[RANK 4] text", rank(4), "", 0},
		{plain, "[PG ID 0 PG GUID 0(default_pg) Rank 6] text", "[PG ID 0 PG GUID 0(default_pg) Rank 6] text", rank(6), "", 0},
		{plain, "[PG ID 3 PG GUID 3(tp) Rank 1] text", "[PG ID 3 PG GUID 3(tp) Rank 1] text", who(nil), "", 0},

		// Loggers.
		{plain, "[2026-01-02 03:04:05,678] [INFO] [loss_scaler.py:188:update_scale] msg", "msg", who(nil), "2026-01-02 03:04:05,678", 'I'},
		{plain, "[2026-01-02 03:04:05,678] [INFO] [utils.py:1:log_dist] [Rank 0] msg", "[Rank 0] msg", rank(0), "2026-01-02 03:04:05,678", 'I'},
		{plain, "[INFO|trainer.py:2405] 2026-01-02 03:04:05,678 >> msg", "msg", who(nil), "2026-01-02 03:04:05,678", 'I'},
		{plain, "[WARNING|2026-01-02 03:04:05] llamafactory.x.y:310 >> msg", "msg", who(nil), "2026-01-02 03:04:05", 'W'},
		{plain, "[titan] 2026-01-02 03:04:05,678 - root - INFO - msg", "msg", who(nil), "2026-01-02 03:04:05,678", 'I'},
		{plain, "[NeMo W 2026-01-02 03:04:05 module:123] msg", "msg", who(nil), "2026-01-02 03:04:05", 'W'},
		{plain, "2026-01-02 03:04:05 | INFO | train_inner | msg", "msg", who(nil), "2026-01-02 03:04:05", 'I'},
		{plain, "[01/02 03:04:05 d2.utils.events]: msg", "msg", who(nil), "01/02 03:04:05", 0},
		{plain, "[01/02 03:04:05] d2.utils ERROR: msg", "msg", who(nil), "01/02 03:04:05", 'E'},
		{plain, "01/02 03:04:05 - mmengine - INFO - msg", "msg", who(nil), "01/02 03:04:05", 'I'},
		{plain, "2026-01-02 03:04:05,678 - mmdet - INFO - msg", "msg", who(nil), "2026-01-02 03:04:05,678", 'I'},
		{plain, "01/02/2026 03:04:05 - INFO - __main__ -   msg", "  msg", who(nil), "01/02/2026 03:04:05", 'I'},
		{plain, "[2026-01-02 03:04:05,678] [INFO] [axolotl.a.b] [PID:12] [RANK:3] msg", "msg", who(func(w *evidence.Who) { w.PID, w.LocalRank = 12, 3 }), "2026-01-02 03:04:05,678", 'I'},
		{plain, "INFO 01-02 03:04:05 [core.py:69] msg", "msg", who(nil), "01-02 03:04:05", 'I'},
		{plain, "INFO 01-02 03:04:05 core.py:69] msg", "msg", who(nil), "01-02 03:04:05", 'I'},
		{plain, "[2026-01-02 03:04:05 DP0 TP1] msg", "msg", who(nil), "2026-01-02 03:04:05", 0},
		{plain, "[rank0]:[E102 03:04:05.678901234 ProcessGroupNCCL.cpp:607] [Rank 0] msg", "[Rank 0] msg", rank(0), "102 03:04:05.678901234", 'E'},
		{plain, "[E ProcessGroupNCCL.cpp:737] [Rank 1] msg", "[Rank 1] msg", rank(1), "", 'E'},
		{plain, "W0102 03:04:05.678000 123456 torch/distributed/run.py:757] msg", "msg", who(func(w *evidence.Who) { w.PID = 123456 }), "0102 03:04:05.678000", 'W'},
		{plain, "2026-01-02 03:04:05.678901: W tensorflow/core/bfc_allocator.cc:497] msg", "msg", who(nil), "2026-01-02 03:04:05.678901", 'W'},
		{plain, "[2026-01-02 03:04:05,678] torch.distributed.elastic: [WARNING] msg", "msg", who(nil), "2026-01-02 03:04:05,678", 'W'},
		{plain, "ERROR:torch.distributed.elastic.multiprocessing.api:failed", "failed", who(nil), "", 'E'},
		{plain, "2026-01-02 03:04:05,678 ERROR h-2 rank 8: uncaught", "h-2 rank 8: uncaught", who(func(w *evidence.Who) { w.Rank, w.Host = 8, "h-2" }), "2026-01-02 03:04:05,678", 'E'},
		{plain, "[337533.314407] NVRM: msg", "NVRM: msg", who(nil), "337533.314407", 0},
		{plain, "[  +0.000018] Out of memory", "Out of memory", who(nil), "", 0},
		{plain, "[task 2026-01-02T03:04:05.678Z] msg", "msg", who(nil), "2026-01-02T03:04:05.678Z", 0},
		{plain, "Jan 12 03:04:05 n-4 start-worker msg", "n-4 start-worker msg", who(func(w *evidence.Who) { w.Host = "n-4" }), "Jan 12 03:04:05", 0},
		{plain, "[Sun Feb 23 16:24:18 2025] msg", "msg", who(nil), "Sun Feb 23 16:24:18 2025", 0},
		{plain, "Jan  2 03:04:05 h1 kernel: [ 12.345678] msg", "msg", who(func(w *evidence.Who) { w.Host = "h1" }), "Jan  2 03:04:05", 0},
		{plain, "2026-01-02T03:04:05.123456789Z msg", "msg", who(nil), "2026-01-02T03:04:05.123456789Z", 0},
		{plain, "RuntimeError: CUDA error", "RuntimeError: CUDA error", who(nil), "", 0},
		{plain, "ERROR: something", "ERROR: something", who(nil), "", 0},
		{plain, "", "", who(nil), "", 0},
	} {
		h := head0()
		n := c.f.peel(c.line, &h)
		if got := c.line[n:]; got != c.rest {
			t.Errorf("%q: message %q, want %q", c.line, got, c.rest)
		}
		if h.who != c.who {
			t.Errorf("%q: from %+v, want %+v", c.line, h.who, c.who)
		}
		if h.stamp.Written != c.time {
			t.Errorf("%q: time %q, want %q", c.line, h.stamp.Written, c.time)
		}
		if h.level != c.level {
			t.Errorf("%q: level %q, want %q", c.line, h.level, c.level)
		}
	}
}

// TestPodTally: stern's prefixes are recognised by many lines, not by one.
func TestPodTally(t *testing.T) {
	for _, c := range []struct {
		lines []string
		want  int
	}{
		{[]string{"fit-0 pytorch step 1", "fit-1 pytorch step 1", "fit-0 pytorch step 2", "fit-1 pytorch step 2"}, 2},
		{[]string{"fit-0 pytorch step 1", "fit-1 pytorch step 1"}, 0},
		{[]string{"auto-regressive decoding is on", "auto-regressive decoding is off", "auto-regressive model loaded ok", "auto-regressive model saved ok"}, 0},
		{[]string{"fit-0 pytorch a", "step 2 loss 3", "fit-0 pytorch b", "fit-0 pytorch c", "fit-0 pytorch d"}, 0},
	} {
		var p podTally
		for _, l := range c.lines {
			p.add(l)
		}
		if got := len(p.of(len(c.lines))); got != c.want {
			t.Errorf("%q: %d pods, want %d", c.lines, got, c.want)
		}
	}
}
