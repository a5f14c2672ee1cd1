package artifact

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
)

func TestOwnerOf(t *testing.T) {
	const uid = "0f9a1c52-77aa-4b1e-9c3d-5d1f0a2b3c4d"
	for place, want := range map[string]string{
		"train.log":                                 "",
		"log.txt.rank3":                             "rank 3 (file name log.txt.rank3)",
		"log.txt.rank3.gz":                          "rank 3 (file name log.txt.rank3.gz)",
		"rank_0003.log":                             "rank 3 (file name rank_0003.log)",
		"run/rank0/out":                             "rank 0 (folder rank0)",
		"nemo_log_globalrank-3_localrank-1.txt":     "rank 3 local 1 (file name nemo_log_globalrank-3_localrank-1.txt)",
		"local_rank_2.log":                          "local 2 (file name local_rank_2.log)",
		"node_rank_1/rank_9.log":                    "rank 9 (file name rank_9.log)",
		"mp_rank_00_model_states":                   "",
		"20310506_010203_gpua017_device3_rank3.log": "rank 3 host gpua017 (file name 20310506_010203_gpua017_device3_rank3.log)",
		"nccl_trace_rank_5":                         "rank 5 (file name nccl_trace_rank_5)",
		"ranking3.log":                              "",
		"frank3.log":                                "",
		"rank99999999999.log":                       "",
		"D/88120_ab12_x9z/attempt_1/3/stderr.log":   "job 88120 attempt attempt_1 local 3 (folder 3, folder attempt_1, folder 88120_ab12_x9z)",
		"D/none_ab12_x9z/attempt_0/0/error.json":    "attempt attempt_0 local 0 (folder 0, folder attempt_0)",
		"7/stderr.log":                              "",
		"ranks/3.log":                               "rank 3 (file name 3.log)",
		"slurm-7312.out":                            "job 7312 (file name slurm-7312.out)",
		"slurm-7312_4.out":                          "job 7312_4 (file name slurm-7312_4.out)",
		"slurm-7312.3.err":                          "job 7312 rank 3 (file name slurm-7312.3.err)",
		"slurm-7312-node07.out":                     "job 7312 host node07 (file name slurm-7312-node07.out)",
		"run_7312_3.err":                            "job 7312 rank 3 (file name run_7312_3.err)",
		"pretrain-20561299.err":                     "job 20561299 (file name pretrain-20561299.err)",
		"pretrain-20310506.err":                     "",
		"pretrain_20561299_short.err":               "job 20561299 (file name pretrain_20561299_short.err)",
		"20310506.log":                              "",
		"llama_2048_8.log":                          "",
		"train.o55123":                              "job 55123 (file name train.o55123)",
		"train.e55123.7":                            "job 55123.7 (file name train.e55123.7)",
		"job_91/out.txt":                            "job 91 (folder job_91)",
		"jobid-4412.log":                            "job 4412 (file name jobid-4412.log)",
		"661234/train.log":                          "job 661234 (folder 661234)",
		"node0.log":                                 "host node0 (file name node0.log)",
		"train-nodes.log":                           "",
		"hosts.txt":                                 "",
		"node-b.log":                                "host node-b (file name node-b.log)",
		"node1_worker.log":                          "host node1 (file name node1_worker.log)",
		"node3-logs/out.txt":                        "host node3 (folder node3-logs)",
		"job-node3/out.txt":                         "host node3 (folder job-node3)",
		"lost-node3-of-8/out.txt":                   "",
		"host_kern.log":                             "",
		"multi-node-8.log":                          "",
		"dmesg_trn-0455.txt":                        "host trn-0455 (file name dmesg_trn-0455.txt)",
		"dmesg_xid79.log":                           "",
		"nvidia-smi.csv":                            "",
		"ip-10-2-0-17/app.log":                      "host ip-10-2-0-17 (folder ip-10-2-0-17)",
		"10.2.0.17.log":                             "host 10.2.0.17 (file name 10.2.0.17.log)",
		"dgx-012/rank_8.log":                        "rank 8 host dgx-012 (file name rank_8.log, folder dgx-012)",
		"bert-worker-0.log":                         "host bert-worker-0 (file name bert-worker-0.log)",
		"bert-trainer-0-1-x7k2p/main.log":           "host bert-trainer-0-1-x7k2p (folder bert-trainer-0-1-x7k2p)",
		"pods/team_bert-worker-1_" + uid + "/pytorch/0.log":     "host bert-worker-1 (folder team_bert-worker-1_" + uid + ")",
		"bert-2_team_main-" + strings.Repeat("ab", 32) + ".log": "host bert-2 (file name bert-2_team_main-" + strings.Repeat("ab", 32) + ".log)",
		"retry_4gpu.log":                    "",
		"restart-2/train.log":               "attempt restart-2 (folder restart-2)",
		"slurm-7312/attempt_1/2/stdout.log": "job 7312 attempt attempt_1 local 2 (folder 2, folder attempt_1, folder slurm-7312)",
		"all.tar.gz/job_55/rank_1.log":      "job 55 rank 1 (file name rank_1.log, folder job_55)",
		"gpu0.csv":                          "",
		"wandb/run-20310506_010203-ab12cd34/files/output.log":    "",
		"lightning_logs/version_3/metrics.csv":                   "",
		"outputs/2031-05-06/01-02-03/train.log":                  "",
		"logs/worker-4f2a9b-01000000-99.out":                     "",
		"session_2031-05-06_01-02-03_123456_99/logs/raylet.out":  "",
		"tb/rank_2/events.out.tfevents.1930000000.trn7.4411.0.v": "rank 2 (folder rank_2)",
	} {
		o := ownerOf(place)
		var got []string
		if o.Job != "" {
			got = append(got, "job "+o.Job)
		}
		if o.Attempt != "" {
			got = append(got, "attempt "+o.Attempt)
		}
		if o.Rank != evidence.None {
			got = append(got, fmt.Sprint("rank ", o.Rank))
		}
		if o.LocalRank != evidence.None {
			got = append(got, fmt.Sprint("local ", o.LocalRank))
		}
		if o.Host != "" {
			got = append(got, "host "+o.Host)
		}
		if o.Basis != "" {
			got = append(got, "("+o.Basis+")")
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s:\n got %s\nwant %s", place, s, want)
		}
	}
}

func TestJobs(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]int // hour of modification
		want  string
	}{
		{"one without an id", map[string]int{"a.log": 1, "b.log": 2}, `
			job "" named together 2h: a.log b.log
			`},
		{"ids decide, not times", map[string]int{"slurm-900.out": 9, "slurm-1000.out": 1, "slurm-1000.err": 1}, `
			job "1000" file name slurm-1000.err 1h: slurm-1000.err slurm-1000.out
			job "900" file name slurm-900.out 9h: slurm-900.out
			`},
		{"beside one job", map[string]int{"slurm-7.out": 1, "gpu.csv": 2, "d/rank_0.log": 3}, `
			job "7" file name slurm-7.out 3h: d/rank_0.log gpu.csv slurm-7.out
			`},
		{"beside two jobs", map[string]int{"slurm-7.out": 1, "slurm-8.out": 1, "gpu.csv": 5}, `
			job "8" file name slurm-8.out 1h: slurm-8.out | gpu.csv
			job "7" file name slurm-7.out 1h: slurm-7.out | gpu.csv
			`},
		{"run folders", map[string]int{"run_2/a.log": 5, "run_10/a.log": 6, "run_10/d/b.log": 1}, `
			job "run/run_10" run folder run_10 6h: run_10/a.log run_10/d/b.log
			job "run/run_2" run folder run_2 5h: run_2/a.log
			`},
		{"dated folders", map[string]int{"2031-05-06/01-02-03/a.log": 9, "2031-05-06/02-02-03/a.log": 3, "2031-05-07/00-00-01/a.log": 1}, `
			job "run/2031-05-07" run folder 2031-05-07 1h: 2031-05-07/00-00-01/a.log
			job "run/2031-05-06/02-02-03" run folder 02-02-03 3h: 2031-05-06/02-02-03/a.log
			job "run/2031-05-06/01-02-03" run folder 01-02-03 9h: 2031-05-06/01-02-03/a.log
			`},
		{"one run folder is no split", map[string]int{"run_1/a.log": 1, "b.log": 2}, `
			job "" named together 2h: b.log run_1/a.log
			`},
		{"run folders with ids", map[string]int{"run_1/slurm-5.out": 1, "run_1/d/rank_0.log": 1, "run_2/slurm-6.out": 2, "run_2/gpu.csv": 1}, `
			job "6" file name slurm-6.out 2h: run_2/gpu.csv run_2/slurm-6.out
			job "5" file name slurm-5.out 1h: run_1/d/rank_0.log run_1/slurm-5.out
			`},
		{"tracker's folders beside the log", map[string]int{"train.log": 3, "wandb/run-20310506_010203-aa/output.log": 1, "wandb/run-20310506_020203-bb/output.log": 2}, `
			job "" named together 3h: train.log wandb/run-20310506_010203-aa/output.log wandb/run-20310506_020203-bb/output.log
			`},
		{"tracker's folders alone", map[string]int{"wandb/run-20310506_010203-aa/output.log": 2, "wandb/run-20310506_020203-bb/output.log": 1}, `
			job "run/wandb/run-20310506_020203-bb" run folder run-20310506_020203-bb 1h: wandb/run-20310506_020203-bb/output.log
			job "run/wandb/run-20310506_010203-aa" run folder run-20310506_010203-aa 2h: wandb/run-20310506_010203-aa/output.log
			`},
		{"ranks, hosts and attempts are no jobs", map[string]int{"node0/rank_0.log": 1, "node1/rank_8.log": 1, "attempt_1/0/stderr.log": 2}, `
			job "" named together 2h: attempt_1/0/stderr.log node0/rank_0.log node1/rank_8.log
			`},
		{"the only id anywhere", map[string]int{"a/slurm-5.out": 1, "b/rank_0.log": 1}, `
			job "5" file name slurm-5.out 1h: a/slurm-5.out b/rank_0.log
			`},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := map[string]string{}
			for name := range c.files {
				files[name] = "log line"
			}
			dir := tree(t, files)
			for name, hour := range c.files {
				if err := os.Chtimes(filepath.Join(dir, name), at(hour), at(hour)); err != nil {
					t.Fatal(err)
				}
			}
			t.Chdir(filepath.Dir(dir))
			r := walk(t, Options{}, "run")
			var b strings.Builder
			last := -1
			for _, j := range r.Jobs {
				fmt.Fprintf(&b, "job %q %s %dh:", j.ID, j.Basis, j.Newest.UTC().Hour())
				for _, i := range j.Files {
					fmt.Fprintf(&b, " %s", strings.TrimPrefix(r.Files[i].Path, "run/"))
				}
				for _, i := range j.Shared {
					fmt.Fprintf(&b, " | %s", strings.TrimPrefix(r.Files[i].Path, "run/"))
				}
				if j.Files[0] <= last {
					t.Errorf("files of job %q begin at %d", j.ID, j.Files[0])
				}
				last = j.Files[len(j.Files)-1]
				b.WriteByte('\n')
			}
			check(t, b.String(), c.want)
		})
	}
}

func TestJobsAfterTheLimit(t *testing.T) {
	dir := tree(t, map[string]string{"slurm-1.out": "log line", "slurm-2.out": "log line", "slurm-3.out": "#strong"})
	r := walk(t, Options{MaxFiles: 2}, dir)
	if len(r.Jobs) != 2 || r.Jobs[0].ID != "3" || r.Jobs[1].ID != "2" || r.Jobs[1].Files[0] != 1 {
		t.Errorf("%+v", r.Jobs)
	}
}

func TestNameTime(t *testing.T) {
	for name, want := range map[string]time.Time{
		"20310506_010203":                 time.Date(2031, 5, 6, 1, 2, 3, 0, time.UTC),
		"run-20310506_010203-ab":          time.Date(2031, 5, 6, 1, 2, 3, 0, time.UTC),
		"x/2031-05-06/01-02-03":           time.Date(2031, 5, 6, 1, 2, 3, 0, time.UTC),
		"2031-05-06":                      time.Date(2031, 5, 6, 0, 0, 0, 0, time.UTC),
		"run_1":                           {},
		"session_2031-05-06_01-02-03_9_9": time.Date(2031, 5, 6, 1, 2, 3, 0, time.UTC),
	} {
		if got, ok := nameTime(name); !got.Equal(want) || ok == want.IsZero() {
			t.Errorf("%s: %v, %v", name, got, ok)
		}
	}
}
