package ranklog

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/scan"
)

// A metricLog collects what metrics finds.
type metricLog struct {
	events []evidence.Event
	series map[evidence.SeriesKey]*evidence.Series
	facts  []evidence.Fact
	damage []error
}

func (l *metricLog) Event(e evidence.Event) { l.events = append(l.events, e) }
func (l *metricLog) Series(k evidence.SeriesKey) *evidence.Series {
	if s := l.series[k]; s != nil {
		return s
	}
	s := evidence.NewSeries(k)
	l.series[k] = s
	return s
}
func (l *metricLog) Fact(f evidence.Fact)              { l.facts = append(l.facts, f) }
func (l *metricLog) Owner(evidence.Owner)              {}
func (l *metricLog) Damage(_ evidence.Span, err error) { l.damage = append(l.damage, err) }

// metricHits finds the atoms of a line the slow way.
func metricHits(raw []byte, atoms []scan.Atom, hits []scan.Hit) []scan.Hit {
	low := foldASCII(raw)
	for i, a := range atoms {
		text, in := []byte(a.Text), raw
		if a.Fold {
			text, in = foldASCII(text), low
		}
		for from := 0; ; {
			n := bytes.Index(in[from:], text)
			if n < 0 {
				break
			}
			from += n
			if a.Except == nil || !slices.ContainsFunc(a.Except.Behind, func(s string) bool { return bytes.HasSuffix(raw[:from], []byte(s)) }) &&
				!slices.ContainsFunc(a.Except.Before, func(s string) bool { return bytes.HasPrefix(raw[from+len(text):], []byte(s)) }) {
				hits = append(hits, scan.Hit{Off: from, Atom: int32(i)})
			}
			from++
		}
	}
	sort.Slice(hits, func(i, j int) bool { return hits[i].Off < hits[j].Off })
	return hits
}

// foldASCII folds as the scanner does: bytes keep their places.
func foldASCII(b []byte) []byte {
	out := bytes.Clone(b)
	for i, c := range out {
		if c >= 'A' && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return out
}

var rankInPrefix = regexp.MustCompile(`(?i)^\[rank ?(\d+)\]`)

// readMetrics feeds text to a fresh metrics, a restart beginning a new launch.
func readMetrics(text string) *metricLog { return readMetricsSo(text, func(*metrics) {}) }

// readMetricsSo is readMetrics with something done before each line.
func readMetricsSo(text string, before func(*metrics)) *metricLog {
	l := &metricLog{series: map[evidence.SeriesKey]*evidence.Series{}}
	m := newMetrics(l, "job.log")
	atoms := metricAtoms()
	offset, launch := int64(0), 0
	for i, s := range strings.SplitAfter(text, "\n") {
		raw := []byte(strings.TrimSuffix(s, "\n"))
		line := &scan.Line{Number: int64(i + 1), Offset: offset, Length: int64(len(raw)), Text: raw}
		offset += int64(len(s))
		hits := metricHits(raw, atoms, nil)
		if len(hits) == 0 {
			continue
		}
		id := func() (evidence.Who, evidence.Stamp) {
			w := evidence.Nobody()
			if g := rankInPrefix.FindSubmatch(raw); g != nil {
				fmt.Sscan(string(g[1]), &w.Rank)
			}
			return w, evidence.Stamp{Written: "t"}
		}
		before(m)
		if _, again := m.line(raw, line, hits, id, launch); again {
			launch++
		}
	}
	m.end()
	return l
}

// dump prints series and events, one a line, in a fixed order.
func (l *metricLog) dump() string {
	var out []string
	for k, s := range l.series {
		who := ""
		if k.Rank >= 0 {
			who = fmt.Sprintf(" r%d", k.Rank)
		}
		if k.Launch > 0 {
			who += fmt.Sprintf(" launch%d", k.Launch)
		}
		var pts []string
		for _, p := range s.Points() {
			step := "-"
			if p.Step != evidence.None {
				step = fmt.Sprint(p.Step)
			}
			pts = append(pts, fmt.Sprintf("%s:%.6g", step, p.Value))
		}
		out = append(out, fmt.Sprintf("%s %s %s %s%s %s", k.Source, k.Name, k.Phase, k.Trust, who, strings.Join(pts, " ")))
	}
	sort.Strings(out)
	for _, e := range l.events {
		h := ""
		if e.Attrs["hidden"].True() {
			h = " hidden"
		}
		out = append(out, fmt.Sprintf("! %s line %d step %d %s=%s%s", e.Kind, e.Span.Line, e.Step, e.Attrs.Str("metric"), e.Attrs.Str("value"), h))
	}
	for _, f := range l.facts {
		out = append(out, fmt.Sprintf("= %s %s launch%d", f.Name, f.Value, f.Who.Launch))
	}
	return strings.Join(out, "\n")
}

func TestMetricFormats(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"hf", "  0%|          | 0/40 [00:00<?, ?it/s]\r  5%|5         | 2/40 [00:04<01:16,  2.00s/it]\r                     \r{'loss': 1.6228, 'grad_norm': 9.305521011352539, 'learning_rate': 4.94e-06, 'epoch': 0.16}\n" +
			"{'loss': '0.6647', 'grad_norm': 'nan', 'learning_rate': '3.333e-05', 'epoch': '0.08421'}\n", `
hf grad_norm train raw 2:9.30552 -:NaN
hf loss train filtered 2:1.6228 -:0.6647
hf lr train raw 2:4.94e-06 -:3.333e-05
! nonfinite_value line 2 step -1 grad_norm=nan
= setting.total_steps 40 launch0`},
		{"hf zero behind nan norm", "{'loss': 0.71, 'grad_norm': nan, 'learning_rate': 4e-06, 'epoch': 0.1}\n{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 3e-06, 'epoch': 0.2}\n{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 2e-06, 'epoch': 0.3}\n", `
hf grad_norm train raw -:NaN -:NaN -:NaN
hf loss train filtered -:0.71 -:0 -:0
hf lr train raw -:4e-06 -:3e-06 -:2e-06
! nonfinite_value line 1 step -1 grad_norm=nan
! nonfinite_value line 2 step -1 loss=0.0 hidden`},
		{"hf two zeros, no norm", "{'loss': 0.7, 'learning_rate': 4e-06, 'epoch': 0.1}\n{'loss': 0.0, 'learning_rate': 3e-06, 'epoch': 0.2}\n{'loss': 0.0, 'learning_rate': 2e-06, 'epoch': 0.3}\n", `
hf loss train filtered -:0.7 -:0 -:0
hf lr train raw -:4e-06 -:3e-06 -:2e-06
! nonfinite_value line 2 step -1 loss=0.0 hidden`},
		{"hf zero then eval nan", "{'loss': 0.7, 'grad_norm': 1.25, 'epoch': 0.1, 'learning_rate': 4e-06}\n{'loss': 0.0, 'epoch': 0.2}\n{'eval_loss': nan, 'eval_runtime': 2.5, 'epoch': 0.2}\n", `
hf eval_loss eval raw -:NaN
hf grad_norm train raw -:1.25
hf loss train filtered -:0.7 -:0
hf lr train raw -:4e-06
! nonfinite_value line 3 step -1 eval_loss=nan
! nonfinite_value line 2 step -1 loss=0.0 hidden`},
		{"hf zeros with an honest norm", "{'loss': 0.2, 'grad_norm': 0.5, 'learning_rate': 4e-06, 'epoch': 0.1}\n{'loss': 0.0, 'grad_norm': 0.001, 'learning_rate': 3e-06, 'epoch': 0.2}\n{'loss': 0.0, 'grad_norm': 0.001, 'learning_rate': 2e-06, 'epoch': 0.3}\n", `
hf grad_norm train raw -:0.5 -:0.001 -:0.001
hf loss train filtered -:0.2 -:0 -:0
hf lr train raw -:4e-06 -:3e-06 -:2e-06`},
		{"hf grpo", "{'loss': 0.0, 'grad_norm': 0.03, 'learning_rate': 1e-06, 'reward': 0.5, 'kl': 0.001, 'epoch': 0.1}\n{'loss': 0.0, 'grad_norm': 0.04, 'learning_rate': 1e-06, 'reward': 0.5, 'reward_std': nan, 'epoch': 0.2}\n", `
hf grad_norm train raw -:0.03 -:0.04
hf kl train raw -:0.001
hf loss train filtered -:0 -:0
hf lr train raw -:1e-06 -:1e-06
hf reward train raw -:0.5 -:0.5
hf reward_std train raw -:NaN
! nonfinite_value line 2 step -1 reward_std=nan`},
		{"hf deepspeed norm", "[INFO] DeepSpeed info\n{'loss': 0.7, 'grad_norm': 2.1, 'learning_rate': 4e-06, 'epoch': 0.1}\n{'loss': 0.0, 'grad_norm': 1.4142135623730951, 'learning_rate': 3e-06, 'epoch': 0.2}\n", `
hf grad_norm train raw -:2.1 -:1.41421
hf loss train filtered -:0.7 -:0
hf lr train raw -:4e-06 -:3e-06
! nonfinite_value line 3 step -1 loss=0.0 hidden`},
		{"hf eval scores of empty classes", "{'eval_loss': 0.43, 'eval_f1_rare': nan, 'eval_precision_rare': nan, 'epoch': 1.0}\n{'train_runtime': 644.0, 'train_loss': 0.26, 'epoch': 4.0}\n", `
hf eval_f1_rare eval raw -:NaN
hf eval_loss eval raw -:0.43
hf eval_precision_rare eval raw -:NaN
! run_finished line 2 step -1 =`},
		{"hf swift", "{'loss': 0.41, 'grad_norm': 0.9, 'learning_rate': 1e-05, 'memory(GiB)': 2.0, 'epoch': 0.01, 'global_step/max_steps': '7/2046'}\n", `
hf grad_norm train raw 7:0.9
hf loss train filtered 7:0.41
hf lr train raw 7:1e-05
hf memory_reserved train raw 7:2.14748e+09
= setting.total_steps 2046 launch0`},
		{"megatron", " [2031-01-02 03:04:05.678901] iteration      120/  500000 | consumed samples:        30720 | elapsed time per iteration (ms): 812.5 | learning rate: 1.5E-04 | global batch size:   256 | lm loss: 2.5E+00 | loss scale: 1.0 | grad norm: 1.25 | number of skipped iterations:   0 | number of nan iterations:   0 |\n" +
			" iteration      130/  500000 | consumed samples:        33280 | elapsed time per iteration (ms): 812.5 | learning rate: 1.5E-04 | global batch size:   256 | loss scale: 1.0 | grad norm: nan | number of skipped iterations:   0 | number of nan iterations:   0 |\n", `
megatron grad_norm train raw 120:1.25 130:NaN
megatron loss train omitted 120:2.5
megatron loss_scale train raw 120:1 130:1
megatron lr train raw 120:0.00015 130:0.00015
megatron skipped train raw 120:0 130:0
megatron step_time train raw 120:0.8125 130:0.8125
! nonfinite_value line 2 step 130 grad_norm=nan
! loss_omitted line 2 step 130 loss=
= setting.total_steps 500000 launch0`},
		{"megatron scale search", " iteration 10/ 1000 | consumed samples: 40 | elapsed time per iteration (ms): 2 | loss scale: 8388608.0 | number of skipped iterations:  10 | number of nan iterations:   0 |\n iteration 20/ 1000 | consumed samples: 80 | elapsed time per iteration (ms): 2 | lm loss: 1.2E+01 | loss scale: 32768.0 | number of skipped iterations:   8 |\n iteration 30/ 1000 | consumed samples: 80 | elapsed time per iteration (ms): 2 | loss scale: 32.0 | number of skipped iterations:   10 |\n", `
megatron loss train omitted 20:12
megatron loss_scale train raw 10:8.38861e+06 20:32768 30:32
megatron skipped train raw 10:10 20:18 30:28
megatron step_time train raw 10:0.002 20:0.002 30:0.002
= setting.total_steps 1000 launch0`},
		{"megatron validation and memory", " validation loss at iteration 100 | lm loss value: NAN | lm loss PPL: 4.851652E+08 | \n[Rank 7] (after 20 iterations) memory (MB) | allocated: 512.0 | max allocated: 1024.5 | reserved: 2048.0 | max reserved: 2048.0[Rank 6] (after 20 iterations) memory (MB) | allocated: 256.0 | max allocated: 1024.0 | reserved: 2048.0 | max reserved: 2048.0\n", `
megatron eval_loss eval raw 100:NaN
megatron memory_allocated train raw r6 20:2.68435e+08
megatron memory_allocated train raw r7 20:5.36871e+08
megatron memory_reserved train raw r6 20:2.14748e+09
megatron memory_reserved train raw r7 20:2.14748e+09
megatron peak memory_allocated train raw r6 20:1.07374e+09
megatron peak memory_allocated train raw r7 20:1.07427e+09
megatron peak memory_reserved train raw r6 20:2.14748e+09
megatron peak memory_reserved train raw r7 20:2.14748e+09
megatron perplexity eval raw 100:4.85165e+08
! nonfinite_value line 1 step 100 eval_loss=NAN`},
		{"titan", "[rank0]:[titan] 2031-06-21 07:00:20,100 - root - INFO - \x1b[31mstep: 20  \x1b[32mloss:      nan  \x1b[38;2;180;60;0mgrad_norm:  0.3130  \x1b[38;2;54;234;195mmemory: 21.50GiB(27.15%)  \x1b[34mtps: 419,782  \x1b[36mtflops: 390.53  \x1b[35mmfu: 39.61%\x1b[39m\n", `
titan grad_norm train raw r0 20:0.313
titan loss train raw r0 20:NaN
titan memory_fraction train raw r0 20:0.2715
titan peak memory_reserved train raw r0 20:2.30854e+10
! nonfinite_value line 1 step 20 loss=nan`},
		{"lightning", "Epoch 1:  45%|####5     | 450/1000 [01:23<01:41,  5.42it/s, v_num=12, train_loss=nan.0, acc=0.5]\n", `
lightning loss train raw 450:NaN
! nonfinite_value line 1 step 450 loss=nan.0`},
		{"lightning rich", "Epoch 0/9 ━━━━━━━━ 12/100 0:00:03 • 0:00:25 3.51it/s v_num: 0.000 train_loss: 0.512\nEpoch 1/9 ━━━━━━━━ 13/100 0:00:03 • 0:00:25 3.51it/s v_num: 0.000 train_loss: nan\n", `
lightning loss train raw 12:0.512 113:NaN
! nonfinite_value line 2 step 113 loss=nan`},
		{"steps bar", "Steps:   2%|2         | 86/4000 [08:44<6:39:13,  6.12s/it, lr=1e-5, step_loss=0.25]\rSteps:   2%|2         | 87/4000 [08:44<6:39:13,  6.12s/it, lr=1e-5, step_loss=nan]\rSteps:   2%|2         | 88/4000 [08:44<6:39:13,  6.12s/it, lr=1e-5, step_loss=nan]\n", `
tqdm loss train raw 86:0.25 87:NaN 88:NaN
tqdm lr train raw 86:1e-05 87:1e-05 88:1e-05
! nonfinite_value line 1 step 87 loss=nan
= setting.total_steps 4000 launch0`},
		{"bar memory", "Training Epoch 0:   5%|5         | 1100/18400 [1:00:30<15:51:30,  3.29s/it, loss=2.5, acc=0.465, len=2940, alloc=2.0G, rsv=4.0G]\n", `
tqdm loss train raw 1100:2.5
tqdm memory_allocated train raw 1100:2.14748e+09
tqdm memory_reserved train raw 1100:4.29497e+09
tqdm seq_len train raw 1100:2940`},
		{"infinite rate", "  0%|          | 1/40 [00:00<?, inf it/s]\n", ``},
		{"deepspeed", "node-3: [2031-01-30 05:11:08,223] [INFO] [logging.py:96:log_dist] [Rank 0] step=100, skipped=3, lr=[0.0001], mom=[[0.9, 0.95]]\nsteps: 110 loss: nan iter time (s): 0.5 samples/sec: 62.500\nepoch=0/micro_step=200/global_step=120, RunningAvgSamplesPerSec=61.2, CurrSamplesPerSec=60.9, MemAllocated=1.0GB, MaxMemAllocated=2.0GB\n", `
deepspeed lr train raw r0 100:0.0001
deepspeed memory_allocated train raw 120:1.07374e+09
deepspeed peak memory_allocated train raw 120:2.14748e+09
deepspeed skipped train raw r0 100:3
generic loss train raw 110:NaN
generic step_time train raw 110:0.5
! nonfinite_value line 2 step 110 loss=nan`},
		{"deepspeed memory", "MA 1.0 GB         Max_MA 2.0 GB         CA 3.0 GB         Max_CA 4 GB \nCPU Virtual Memory:  used = 8.0 GB, percent = 9.1%\n", `
deepspeed memory_allocated train raw -:1.07374e+09
deepspeed memory_reserved train raw -:3.22123e+09
deepspeed peak memory_allocated train raw -:2.14748e+09
deepspeed peak memory_reserved train raw -:4.29497e+09
generic host_memory train raw -:8.58993e+09`},
		{"nemo", "Training epoch 0, iteration 10/999 | lr: 1.499e-05 | global_batch_size: 512 | global_step: 10 | reduced_train_loss: nan | train_step_timing in s: 3.5 | consumed_samples: 5632\n", `
nemo loss train raw 10:NaN
nemo lr train raw 10:1.499e-05
nemo step_time train raw 10:3.5
! nonfinite_value line 1 step 10 loss=nan`},
		{"nanogpt", "iter 17: loss nan, time 400.00ms, mfu -100.00%\nstep 250: train loss 3.5, val loss 3.25\nstep:125/1770 val_loss:4.5 train_time:12345ms step_avg:nanms\nstep   260/1000 | loss 4.5 (+nanz)| norm 1.25 (+nanz)| lr 6.00e-04\n", `
generic eval_loss eval raw 250:3.25 125:4.5
generic grad_norm train raw 260:1.25
generic loss train raw 250:3.5 260:4.5
generic lr train raw 260:0.0006
nanogpt loss train raw 17:NaN
nanogpt step_time train raw 17:0.4
! nonfinite_value line 1 step 17 loss=nan
= setting.total_steps 1000 launch0`},
		{"fairseq", "2031-01-02 03:04:05 | INFO | train_inner | {\"epoch\": 1, \"update\": 0.12, \"loss\": \"10.5\", \"ppl\": \"923.4\", \"wpb\": \"2\", \"num_updates\": \"100\", \"lr\": \"1.25e-05\", \"gnorm\": \"3.25\", \"loss_scale\": \"128\", \"gb_free\": \"2\"}\n| epoch 001:   100 / 331 loss=12.5, nll_loss=11.25, ppl=2382.1, wps=41022, ups=1, wpb=38110, num_updates=98, lr=1.25e-05, gnorm=2.25, oom=0, loss_scale=16.000\n", `
fairseq grad_norm train omitted 100:3.25 98:2.25
fairseq loss train raw 100:10.5 98:12.5
fairseq loss_scale train raw 100:128 98:16
fairseq lr train raw 100:1.25e-05 98:1.25e-05
fairseq memory_free train raw 100:2.14748e+09
fairseq nll_loss train raw 98:11.25
fairseq perplexity train raw 100:923.4 98:2382.1`},
		{"detectron2", "[01/02 03:04:05 d2.utils.events]:  eta: 1:23:45  iter: 199  total_loss: 1.25  loss_cls: 0.5  time: 0.25  last_time: 0.2300  data_time: 0.0123  last_data_time: 0.0045   lr: 0.02  max_mem: 1024M\n", `
detectron2 loss train smoothed 199:1.25
detectron2 loss_cls train smoothed 199:0.5
detectron2 lr train raw 199:0.02
detectron2 peak memory_allocated train raw 199:1.07374e+09`},
		{"mmengine", "01/02 03:04:05 - mmengine - INFO - Epoch(train)  [2][ 50/1000]  lr: 1.0000e-02  eta: 4 days, 1:23:45  time: 0.5  data_time: 0.0123  memory: 1024  loss: nan  loss_cls: 0.5\n01/02 03:04:05 - mmengine - INFO - Iter(train) [  100/160000]  base_lr: 1e-2 lr: 1e-2  eta: 1:23:45  time: 0.5  data_time: 0.0081  memory: 1024  loss: 1.5\n2031-01-02 03:04:05,678 - mmdet - INFO - Epoch [3][50/1000]\tlr: 1.000e-03, eta: 1:23:45, time: 0.5, data_time: 0.012, memory: 1024, loss: 1.5, grad_norm: 12.5\n", `
mm grad_norm train raw 2050:12.5
mm loss train raw 1050:NaN 100:1.5 2050:1.5
mm loss_cls train raw 1050:0.5
mm lr train raw 1050:0.01 100:0.01 100:0.01 2050:0.001
mm memory_used train raw 1050:1.07374e+09 100:1.07374e+09 2050:1.07374e+09
! nonfinite_value line 1 step 1050 loss=nan
= setting.total_steps 160000 launch0`},
		{"ultralytics", "      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n      2/100      4.0G      1.25        nan      1.5         45        640: 100%|##########| 100/100 [00:30<00:00, 3.25it/s]\n", `
yolo box_loss train smoothed 200:1.25
yolo cls_loss train smoothed 200:NaN
yolo dfl_loss train smoothed 200:1.5
yolo memory_reserved train raw 200:4.29497e+09
! nonfinite_value line 2 step 200 cls_loss=nan`},
		{"timm", "Train: 0 [  50/1251 (  4%)]  Loss: nan (nan)  Time: 0.345s,  742.03/s  (0.401s,  638.40/s)  LR: 1.000e-05  Data: 0.012 (0.045)\n", `
generic loss train raw 50:NaN
generic lr train raw 50:1e-05
! nonfinite_value line 1 step 50 loss=nan`},
		{"composer", "[epoch=1][batch=50/1000]:\n\t Train loss/train/total: 2.5\n\t Train memory/peak_reserved_mem: 4.5\n", `
composer loss train raw 50:2.5
composer peak memory_reserved train raw 50:4.5e+09`},
		{"keras", " 12/100 [==>..] - ETA: 4s - loss: 2.5\b\b\b\b 13/100 - 4s 50ms/step - accuracy: 0.1234 - loss: 2.25\n412/412 - 19s - 46ms/step - auc: 0.6353 - loss: nan - val_auc: nan - val_loss: 0.75 - learning_rate: 1.0e-03\n", `
keras eval_loss eval smoothed -:0.75
keras loss train smoothed -:2.25 -:NaN
keras lr train raw -:0.001
keras step_time train raw -:0.05 -:0.046
! nonfinite_value line 2 step -1 loss=nan`},
		{"maxtext", "completed step: 50, seconds: 0.9, TFLOP/s/device: 301.200, Tokens/s/device: 5311.900, total_weights: 65536, loss: 9.5\nCompleted eval after train step 100, loss=8.5\n\tUsing (GB) 2.0 / 79.1 (15.600506%) on cuda:0\n", `
generic eval_loss eval raw 100:8.5
generic memory_used train raw -:2.14748e+09
maxtext loss train raw 50:9.5
maxtext step_time train raw 50:0.9`},
		{"marian", "[2031-11-11 09:20:11] Ep. 3 : Up. 59000 : Sen. 9,120,000 : Cost 0.375 : Time 116.64s : gNorm 0.5\n", `
marian grad_norm train raw 59000:0.5
marian loss train raw 59000:0.375`},
		{"positional", "[2031-07-21 13:13:02] step 120/600 loss 0.41 lr 2.1e-04 it/s 0.67 (4 ranks)\n[ep 1][it 30][loss nan thr nan][lr 1e-05 bm 1e-06][1.41s]\nit 4410 d_loss nan g_loss nan gp nan\n2031-05-27 09:06:20,806 INFO node-b rank 8: loss 2.44\n1_train_20, nan, [nan, nan]\n", `
generic d_loss train raw 4410:NaN
generic g_loss train raw 4410:NaN
generic gp train raw 4410:NaN
generic loss train raw 120:0.41 30:NaN 20:NaN
generic loss train raw r8 -:2.44
generic lr train raw 120:0.00021 30:1e-05
generic thr train raw 30:NaN
! nonfinite_value line 2 step 30 loss=nan
! nonfinite_value line 3 step 4410 d_loss=nan
= setting.total_steps 600 launch0`},
		{"memory lines", "it 100 d_loss 0.9 memory allocated: 2048.0 MiB\n[mem] valid batch   1/78   allocated 2.00 GiB\n2031 INFO Iteration: 1/1184, epoch 0, Loss: 0.25, Free GPU ram: 1024.0\n[pre] step 1 | loss 11.5 | gnorm 6.5 | lr 1e-07 | 9.89 s | peak alloc 2.0 GiB | peak reserved 3.0 GiB | device free 4.0 GiB\nepoch 0 sent   200 nll 41.25 gpu_mem 1024MiB\n[hostmem] step 20 node anon 2.0 GB of cgroup limit 4.0 GB | shm 0.4 GB\n", `
generic d_loss train raw 100:0.9
generic grad_norm train raw 1:6.5
generic host_memory train raw 20:2.14748e+09
generic loss train raw 1:0.25 1:11.5 -:41.25
generic lr train raw 1:1e-07
generic memory_allocated eval raw 1:2.14748e+09
generic memory_allocated train raw 100:2.14748e+09
generic memory_free train raw 1:1.07374e+09 1:4.29497e+09
generic memory_used train raw -:1.07374e+09
generic peak memory_allocated train raw 1:2.14748e+09
generic peak memory_reserved train raw 1:3.22123e+09
! host_mem_report line 6 step 20 =`},
		{"host memory by its unit", "step 1 loss 2.5 host_rss_gb 1.0\nstep 2 | loss 2.5 | ram_used_mb=2048\nstep 3 | loss 2.5 | RSS (GB): 3.0\nstep 4 loss 2.5 cpu_mem 4.0 GiB\nstep 5 loss 2.5 rss=12.3 ram 7.0\n", `
generic host_memory train raw 1:1.07374e+09 2:2.14748e+09 3:3.22123e+09 4:4.29497e+09
generic loss train raw 1:2.5 2:2.5 3:2.5 4:2.5 5:2.5`},
		{"eval line", "2031-04-15 09:43:02 | INFO | root | [val] default | step 23 | epoch 0 | loss nan | lr 1.00e-05\nvalidate step: 100  loss:  5.5  memory: 2.0GiB(4.0%)  tps: 5,432\n", `
generic eval_loss eval raw 23:NaN
generic lr eval raw 23:1e-05
titan eval_loss eval raw 100:5.5
titan memory_fraction eval raw 100:0.04
titan peak memory_reserved eval raw 100:2.14748e+09
! nonfinite_value line 1 step 23 eval_loss=nan`},
		{"false friends", "iter 1: loss 2.5, ppl inf, acc nan, mIoU: nan, step_avg:nanms\n    loss = 0\n  loss_scale ................... 0\n        \"loss_scale\": 0,\ntorch.OutOfMemoryError: Tried to allocate 2 GiB; memory allocated 3.0 GiB, loss 4\nwandb:                     loss 0.34985\nloss is nan in words\n", `
generic loss train raw 1:2.5`},
		{"restart", "step: 500  loss:  2.5  memory: 2.0GiB(4.0%)  tps: 5\nstep: 600  loss:  2.25  memory: 2.0GiB(4.0%)  tps: 5\nstep:  1  loss:  9.5  memory: 2.0GiB(4.0%)  tps: 5\n", `
titan loss train raw 500:2.5 600:2.25
titan loss train raw launch1 1:9.5
titan memory_fraction train raw 500:0.04 600:0.04
titan memory_fraction train raw launch1 1:0.04
titan peak memory_reserved train raw 500:2.14748e+09 600:2.14748e+09
titan peak memory_reserved train raw launch1 1:2.14748e+09`},
		{"epochs back at their beginning", "{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': 0.1}\n{'loss': 2.25, 'learning_rate': 1e-05, 'epoch': 0.2}\n{'loss': 2.0, 'learning_rate': 1e-05, 'epoch': 0.9}\n{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': 0.1}\n{'loss': 2.25, 'learning_rate': 1e-05, 'epoch': 0.2}\n", `
hf loss train filtered -:2.5 -:2.25 -:2
hf loss train filtered launch1 -:2.5 -:2.25
hf lr train raw -:1e-05 -:1e-05 -:1e-05
hf lr train raw launch1 -:1e-05 -:1e-05`},
		{"epochs of a resumed run", "{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': 0.1}\n{'loss': 2.25, 'learning_rate': 1e-05, 'epoch': 0.2}\n{'loss': 2.0, 'learning_rate': 1e-05, 'epoch': 0.9}\n{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': 0.4}\n", `
hf loss train filtered -:2.5 -:2.25 -:2 -:2.5
hf lr train raw -:1e-05 -:1e-05 -:1e-05 -:1e-05`},
		{"ranks restart together", "[rank0]: step: 500  loss:  2.5\n[rank1]: step: 500  loss:  2.5\n[rank0]: step: 1  loss:  9.5\n[rank1]: step: 1  loss:  9.5\n[rank0]: step: 2  loss:  9.5\n", `
generic loss train raw r0 500:2.5
generic loss train raw r0 launch1 1:9.5 2:9.5
generic loss train raw r1 500:2.5
generic loss train raw r1 launch1 1:9.5`},
		{"no restart inside epochs", "epoch: 0 iter: 10 loss: 2.5\nepoch: 0 iter: 500 loss: 2.5\nepoch: 1 iter: 10 loss: 2.5\nepoch: 1 iter: 500 loss: 2.5\nepoch: 2 iter: 10 loss: 2.5\n", `
generic loss train raw 10:2.5 500:2.5 10:2.5 500:2.5 10:2.5`},
		{"resume overlap is no restart", "step: 500  loss:  2.5\nstep: 600  loss:  2.5\nstep: 550  loss:  2.5\n", `
generic loss train raw 500:2.5 600:2.5 550:2.5`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := readMetrics(c.in).dump(); got != strings.TrimPrefix(c.want, "\n") {
				t.Errorf("got\n%s\nwant%s", got, c.want)
			}
		})
	}
}

func TestParseNumber(t *testing.T) {
	for _, c := range []struct {
		in   string
		want float64
		rest string
	}{
		{"1.5,", 1.5, ","}, {"-3e-05}", -3e-05, "}"}, {"1,218 steps", 1218, " steps"}, {"1,2", 1, ",2"}, {".5", .5, ""}, {"7.", 7, ""}, {"9.305521011352539'", 9.305521011352539, "'"},
		{"2.345678E+00 ", 2.345678, " "}, {"1e999", math.MaxFloat64, ""}, {"12345678901234567890123", 1.2345678901234568e22, ""}, {"x", 0, "x"}, {"-", 0, "-"}, {"1e", 1, "e"}, {"5,432,100", 5432100, ""},
	} {
		v, end := parseNumber([]byte(c.in), 0)
		if v != c.want || c.in[end:] != c.rest {
			t.Errorf("%q: got %v, rest %q", c.in, v, c.in[end:])
		}
	}
	for _, in := range []string{"nan", "nan.0", "-nan", "inf", "inf.0", "-inf.", "+inf", "Infinity", "-infinity", "NAN", "INF", "NaN,", "nan)"} {
		if v, end := parseNonfinite([]byte(in), 0); end == 0 || !notFinite(v) {
			t.Errorf("%q is not taken", in)
		}
	}
	for _, in := range []string{"nanms", "nanz", "info", "infinite", "nan%", "in", "nano", "inf/s", "-"} {
		if _, end := parseNonfinite([]byte(in), 0); end != 0 {
			t.Errorf("%q is taken", in)
		}
	}
}

// Every span, cut from the text again, must give its quote.
func TestMetricSpans(t *testing.T) {
	long := strings.Repeat("Steps:   1%|1         | 5/400 [00:01<00:10,  6.12s/it, loss=0.5]\r", 300) + "Steps:   2%|1         | 6/400 [00:01<00:10,  6.12s/it, loss=nan]\r\n"
	text := "first\n" + long + "{'loss': 0.7, 'learning_rate': 1e-5, 'grad_norm': inf, 'epoch': 0.1}\n"
	l := readMetrics(text)
	if len(l.events) != 2 {
		t.Fatalf("got %d events\n%s", len(l.events), l.dump())
	}
	for _, e := range l.events {
		if got := text[e.Span.Offset : e.Span.Offset+e.Span.Length]; got != e.Span.Quote || len(got) > maxQuote {
			t.Errorf("span gives %q, quote is %q", got, e.Span.Quote)
		}
		if !strings.Contains(e.Span.Quote, e.Attrs.Str("value")) {
			t.Errorf("quote %q lacks the value", e.Span.Quote)
		}
	}
}

func TestMetricSeriesLimit(t *testing.T) {
	var b strings.Builder
	for i := range maxTracks + 50 {
		fmt.Fprintf(&b, "[rank%d]: step: 3 loss: 1.5\n", i)
	}
	l := readMetrics(b.String())
	if len(l.series) != maxTracks || len(l.damage) != 1 {
		t.Errorf("got %d series, damage %v", len(l.series), l.damage)
	}
}

func TestMetricEventsAfterQuiet(t *testing.T) {
	var b strings.Builder
	for i := range 400 {
		v := "1.5"
		if i%20 == 0 || i == 21 {
			v = "nan"
		}
		fmt.Fprintf(&b, "iter %d: loss %s, time 3.00ms\n", i, v)
	}
	if n := len(readMetrics(b.String()).events); n != maxTrackEvents {
		t.Errorf("got %d events, want %d", n, maxTrackEvents)
	}
}
