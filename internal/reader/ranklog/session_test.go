package ranklog_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/reader/ranklog"
	"github.com/inquest-dev/inquest/internal/reader/readertest"
)

func read(t testing.TB, text string) *reader.Collector {
	t.Helper()
	c, err := readertest.Read(context.Background(), ranklog.New(plan), nil, "job.log", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// brief lists events as "kind@line", with launch, rank and marks where they say
// something.
func brief(c *reader.Collector) string {
	var out []string
	for _, e := range c.Events {
		s := fmt.Sprintf("%s@%d", e.Kind, e.Span.Line)
		if e.Who.Launch > 0 {
			s += fmt.Sprintf(" launch=%d", e.Who.Launch)
		}
		if e.Who.Rank != evidence.None {
			s += fmt.Sprintf(" rank=%d", e.Who.Rank)
		}
		if e.Quoted {
			s += " quoted"
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

func TestEvents(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"glued behind a bar", "12%|#2 | 3/25 [00:01<00:07,  1.23s/it]Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    x()\nValueError: no\n",
			"exception@4"},
		{"source that names an error", "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    except RuntimeError('CUDA out of memory. Tried to allocate 2.00 GiB'):\nValueError: no\n",
			"exception@4"},
		{"a frame alone", "x\ny\nz\nw\n  File \"a.py\", line 1, in f\n    raise RuntimeError('[Errno 28] No space left on device')\n",
			""},
		{"printed, then raised", "ERROR: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 8.00 GiB total capacity; 7.00 GiB already allocated; 1.00 GiB free; 7.50 GiB reserved in total by PyTorch)\nTraceback (most recent call last):\n  File \"a.py\", line 1, in f\n    g()\nRuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 8.00 GiB total capacity; 7.00 GiB already allocated; 1.00 GiB free; 7.50 GiB reserved in total by PyTorch)\n",
			"device_oom@1; device_oom@5 quoted"},
		{"exit codes", "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    sys.exit(3)\nSystemExit: 3\n",
			"process_exit@4"},
		{"through a process prefix and a logger", "(Worker_TP1 pid=77) ERROR 03-04 05:06:07 [run.py:12] Traceback (most recent call last):\n(Worker_TP1 pid=77) ERROR 03-04 05:06:07 [run.py:12]   File \"a.py\", line 1, in f\n(Worker_TP1 pid=77) ERROR 03-04 05:06:07 [run.py:12]     g()\n(Worker_TP1 pid=77) ERROR 03-04 05:06:07 [run.py:12] ValueError: no\n",
			"exception@4"},
		{"jax placeholder", "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    g()\njax.errors.SimplifiedTraceback: For simplicity, JAX has removed its internal frames.\n",
			""},
		{"other writers between", "[rank0]: Traceback (most recent call last):\n[rank1]: Traceback (most recent call last):\n[rank0]:   File \"a.py\", line 1, in f\n[rank1]:   File \"b.py\", line 2, in g\n[rank1]:     g()\n[rank0]:     f()\n[rank1]: KeyError: 'b'\n[rank0]: ValueError: a\nend\n",
			"exception@8 rank=0; exception@7 rank=1"},
		{"a pattern over two lines", "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=5\n164000, NumelOut=5164000, Timeout(ms)=600000) ran for 600011 milliseconds before timing out.\n",
			"collective_timeout@1 rank=1"},
		{"a pattern cut inside a word", "size mismatch for head.we\night: copying a param from check\npoint\n",
			"checkpoint_bad@1"},
		{"banners of several ranks are one launch", "[rank0]: ***** Running training *****\n[rank0]: step 1 loss 2.5\n[rank1]: ***** Running training *****\n[rank1]: step 1 loss 2.5\n",
			"launch@1 rank=0; launch@3 rank=1"},
		{"a second run", "***** Running training *****\nstep 10 loss 2.5\nstep 20 loss 2.4\n***** Running training *****\nstep 10 loss 2.6\n",
			"launch@1; launch@4 launch=1"},
		{"stopped, started again and resumed", "step 10 loss 2.5\nslurmstepd: error: *** JOB 5 ON c1 CANCELLED AT 2026-05-01T10:00:00 DUE TO PREEMPTION ***\nResuming from checkpoint ckpt/step10\nstep 20 loss 2.4\n",
			"preempted@2; resume@3 launch=1"},
		{"a resume that no stop came before", "step 10 loss 2.5\nResuming from checkpoint ckpt/step10\nstep 20 loss 2.4\n",
			"resume@2"},
		{"the scheduler's count of restarts", "step 10 loss 2.5\n== run on c2, restart count 1 ==\nstep 10 loss 2.5\n",
			"launch@2 launch=1"},
		{"data preparation is no run", "***** Running training *****\nMap: 100%|####| 90/90 [00:01<00:00, 80.1it/s]\n***** Running training *****\n",
			"launch@1; launch@3"},
		{"a traceback belongs to the launch before", "[rank3]: Traceback (most recent call last):\n[rank3]:   File \"a.py\", line 1, in f\n[rank3]:     f()\n[rank3]: ValueError: a\nstep 5 loss 2.5\n$ python fit.py\nstep 1 loss 2.5\n",
			"exception@4 rank=3; launch@6 launch=1"},
		{"assignments start no run", "+ CUDA_HOME=/opt/cuda\n+ python -c 'print(1)'\n+ CUDA_VISIBLE_DEVICES=0 python fit.py\n",
			"launch@3"},
		{"the pid tells the rank", "h1:50:60 [1] NCCL INFO comm 0x1 rank 5 nranks 8 cudaDev 1 busId 3000 - Init COMPLETE\n[Sending]\nh1:50:61 [1] x.cc:1 NCCL WARN [Errno 28] No space left on device\n",
			"disk_full@3 rank=5; rank_info@1 rank=5"},
	} {
		if got := brief(read(t, c.text)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// A terminal of 80 columns cut the lines of this traceback.
func TestWrappedFrames(t *testing.T) {
	c := read(t, "Traceback (most recent call last):\n"+
		"  File \"/opt/env/lib/python3.11/site-packages/torch/nn/modules/activation/__init__.p\n"+
		"y\", line 7, in call\n"+
		"    return self.a_function_with_a_long_name(first_argument, second_argument, third_ar\n"+
		"gument)\n"+
		"ValueError: no\n")
	if len(c.Events) != 1 || len(c.Events[0].Stack) != 1 || c.Events[0].Stack[0].File != "/opt/env/lib/python3.11/site-packages/torch/nn/modules/activation/__init__.py" {
		t.Errorf("%s", readertest.Dump(c))
	}
}

func TestFacts(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"  micro_batch_size ................................ 2\n", "run.batch=2"},
		{"Namespace(batch_size=4, lr=1e-05, mixed_precision='bf16', resume_from_checkpoint=None, path='a, b')\n", "run.batch=4 run.lr=1e-05 run.precision=bf16 run.resumed=false"},
		{"TrainingArguments(\nbf16=False,\nfp16=True,\noptim=adamw_torch,\n)\nlr=5\n", "run.precision=fp16 run.optimizer=adamw_torch"},
		{"gradient_accumulation_steps: 8\n\"gradient_checkpointing\": true,\n", "run.accumulation=8 run.checkpointing=true"},
		{"DeepSpeedEngine configuration:\n  zero_optimization_stage ...... 3\n", "run.zero_stage=3"},
		{"  json = {\n    \"train_micro_batch_size_per_gpu\": 2, \n    \"zero_optimization\": {\n        \"stage\": 2\n    }\n}\n", "run.batch=2 run.zero_stage=2"},
		{"For debugging consider passing CUDA_LAUNCH_BLOCKING=1.\ntry setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.\n", ""},
		{"{'PYTORCH_CUDA_ALLOC_CONF': 'max_split_size_mb:128'}\n", "run.alloc_conf=max_split_size_mb:128"},
		{"declare -x PYTORCH_ALLOC_CONF=\"backend:native\"\n", "run.alloc_conf=backend:native"},
		{"+ torchrun --nproc-per-node 8 --nnodes=2 x.py --distributed-timeout-minutes 10\n", "dist.timeout_s=600 run.world=16"},
		{"torch version 2.9.1\n", "run.torch=2.9.1"},
		{"step 3 loss 2.5\nseq_length: 4096\n", ""},
		{"Batch size per device = 2 | Gradient accumulation steps = 8\nData Parallel GPUs = 1 | Total batch size (2 x 8 x 1) = 16\n", "run.batch=2 run.accumulation=8 run.world=1"},
	} {
		var got []string
		for _, f := range read(t, c.text).Facts {
			if !strings.HasPrefix(f.Name, "setting.") {
				got = append(got, f.Name+"="+f.Value.String())
			}
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.text, s, c.want)
		}
	}
}

// A line that repeats thousands of times leaves a bounded number of events, the
// last one among them.
func TestBounds(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "step %d: ran out of memory, skipping batch\n", i)
	}
	c := read(t, b.String())
	if n := len(c.Events); n < 3 || n > 300 {
		t.Fatalf("%d events", n)
	}
	if last := c.Events[len(c.Events)-1].Span.Line; last != 5000 {
		t.Errorf("the last event is that of line %d", last)
	}
	deep := "Traceback (most recent call last):\n" + strings.Repeat("  File \"r.py\", line 3, in f\n    f()\n", 90) + "  File \"r.py\", line 9, in last\n    boom()\nRecursionError: too deep\n"
	c = read(t, deep)
	if len(c.Events) != 1 || len(c.Events[0].Stack) > 64 || c.Events[0].Stack[len(c.Events[0].Stack)-1].Function != "last" {
		t.Errorf("deep stack: %s", readertest.Dump(c))
	}
}

func TestOwnerFromContent(t *testing.T) {
	var b strings.Builder
	for i := range 20 {
		fmt.Fprintf(&b, "2026-05-01 10:00:%02d,100 INFO gpu-4 rank 12: step %d loss 2.5\n", i, i)
	}
	b.WriteString("2026-05-01 10:00:30,100 ERROR gpu-4 rank 12: uncaught exception\nTraceback (most recent call last):\n  File \"x.py\", line 1, in f\n    f()\nValueError: x\n")
	c := read(t, b.String())
	if len(c.Owners) != 1 || c.Owners[0].Rank != 12 || c.Owners[0].Host != "gpu-4" {
		t.Fatalf("owners %+v", c.Owners)
	}
	if len(c.Events) != 1 || c.Events[0].Who.Rank != 12 || c.Events[0].Stamp.Written != "2026-05-01 10:00:30,100" {
		t.Errorf("%s", readertest.Dump(c))
	}
}

// TestAnnounced: an exception that a handler announces has the announcement's time, if the
// same process wrote both.
func TestAnnounced(t *testing.T) {
	const trace = "[rank5]: Traceback (most recent call last):\n[rank5]:   File \"x.py\", line 1, in f\n[rank5]:     f()\n[rank5]: OSError: [Errno 28] No space left on device\n"
	for _, c := range []struct{ above, want string }{
		{"2026-05-01 10:00:30 [c7] rank 5 | exception in writer", "2026-05-01 10:00:30"},
		{"2026-05-01 10:00:30 c7 rank 5: exception during save", "2026-05-01 10:00:30"},
		{"2026-05-01 10:00:30 [c7] rank 4 | exception in writer", ""},
		{"2026-05-01 10:00:30 [c7] rank 5 | writing the checkpoint", ""},
		{"2026-05-01 10:00:30 [c7] rank 5 | no exception handler is set", ""},
	} {
		got := read(t, c.above+"\n"+trace)
		if len(got.Events) != 1 || got.Events[0].Stamp.Written != c.want {
			t.Errorf("%q: %s", c.above, readertest.Dump(got))
		}
	}
}

// TestIntroduced: a process that names its rank, its number on the host and its pid.
func TestIntroduced(t *testing.T) {
	for _, c := range []struct {
		text string
		rank int
	}{
		{"worker of rank 9, pid 4711, on c7-2: RANK=9 LOCAL_RANK=1", 9},
		{"rank 9 pid 4711 is slow", evidence.None},
		{"failed (exitcode: 1) RANK=9 local_rank: 1 (pid: 4711)", evidence.None},
	} {
		rank := evidence.None
		for _, e := range read(t, c.text+"\nstep 1 loss 2.5\n").Events {
			if e.Kind == evidence.RankInfo && e.Who.PID == 4711 {
				rank = e.Who.Rank
			}
		}
		if rank != c.rank {
			t.Errorf("%q: rank %d", c.text, rank)
		}
	}
}

func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.log")
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	r := ranklog.New(plan)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := readertest.Read(context.Background(), r, nil, "job.log", data)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range c.Events {
			spec := evidence.SpecOf(e.Kind)
			if spec == nil {
				t.Fatalf("kind %s", e.Kind)
			}
			for n := range e.Attrs {
				if spec.Attr(n) == nil {
					t.Fatalf("%s: attribute %s", e.Kind, n)
				}
			}
			if !utf8.ValidString(e.Text) {
				t.Fatalf("text %q", e.Text)
			}
			if s := e.Span; s.Kind == "text" && (s.Offset < 0 || s.Offset+s.Length > int64(len(data))) {
				t.Fatalf("span %+v of %d bytes", s, len(data))
			}
		}
	})
}

// TestStepOfRank: an event of a rank has the step of the last line before it,
// however few points of a long log are kept.
func TestStepOfRank(t *testing.T) {
	var log, teed strings.Builder
	last := 0
	for i := range 3000 {
		last = 7 * i
		line := fmt.Sprintf(" iteration %8d/  500000 | consumed samples: %12d | elapsed time per iteration (ms): 812.3 | learning rate: 1.499000E-04 | lm loss: 2.345678E+00 | grad norm: 1.234 |\n", last, i)
		log.WriteString(line)
		teed.WriteString(fmt.Sprintf("[Rank %d] ", i%3) + line)
	}
	const oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.25 GiB. GPU 3 has a total capacity of 39.39 GiB of which 512.00 MiB is free."
	for _, tt := range []struct {
		text string
		rank int
		want int
	}{
		{log.String() + oom + "\n", 5, last},
		{teed.String() + "[Rank 1] " + oom + "\n", evidence.None, last - 7},
	} {
		for _, n := range []int{1, 2000} {
			c := reader.NewShare(n)
			a := evidence.Artifact{Path: "job.log", Owner: evidence.Owner{Rank: tt.rank, LocalRank: evidence.None, Basis: "file name"}}
			in := reader.Input{Artifact: a, Size: int64(len(tt.text)), Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(tt.text)), nil }}
			if err := ranklog.New(plan).Read(context.Background(), in, c); err != nil {
				t.Fatal(err)
			}
			if len(c.Events) != 1 || c.Events[0].Step != int64(tt.want) {
				t.Errorf("rank %d, one of %d: events %+v, want step %d", tt.rank, n, c.Events, tt.want)
			}
		}
	}
}
