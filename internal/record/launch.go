package record

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/redact"
)

// Launch says which launch a process with this environment is one of, by the variables of the
// launcher that started it: the innermost of several, as of torchrun within a Slurm step. It is
// nil where none says so, or where the process is the only one: a wrapper around srun or
// torchrun, in a batch script or in the shell of an allocation, has the job's variables too, but
// stands outside of what it launches, and whoever runs it again there makes another launch.
//
// Processes with an equal ID belong together. `srun inquest run torchrun …` gives one per host,
// with the number of the Slurm task as its rank, `torchrun … inquest run …` one per rank.
func Launch(env []string) *incident.Launch {
	vars := variables{}
	for _, e := range env {
		if name, v, ok := strings.Cut(e, "="); ok {
			vars[name] = v
		}
	}
	for _, l := range launchers {
		if o := l.read(vars); o != nil {
			return o.launch(l.name, vars)
		}
	}
	return nil
}

type variables map[string]string

// launchers in the order from the innermost to the outermost.
var launchers = []struct {
	name string
	read func(variables) *origin
}{
	{"torchelastic", torchelastic},
	{"openmpi", openMPI},
	{"pals", pals},
	{"flux", flux},
	{"jsrun", jsrun},
	{"pmi", pmi},
	{"slurm", slurm},
	{"kubernetes", kubernetes},
	{"environment", masterAddress},
}

// An origin is what a launcher's variables say.
type origin struct {
	id                []string // what together names the launch
	weak              bool     // a later launch may have the same
	rank, local, size *int
	restart           int
	names             []string // of the variables that say so
}

// readable ids are kept as they are; others, and those with addresses, become a digest, for an
// id stands in names of files and in reports.
func readable(id string) bool {
	for i := range len(id) {
		c := id[i]
		letter := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || strings.IndexByte("_.+-", c) < 0) {
			return false
		}
	}
	return id != "" && len(id) <= 64
}

func (o *origin) launch(launcher string, vars variables) *incident.Launch {
	l := &incident.Launch{Launcher: launcher, Rank: o.rank, LocalRank: o.local, WorldSize: o.size, Restart: o.restart, Weak: o.weak, Variables: map[string]string{}}
	for _, n := range o.names {
		if v, ok := vars[n]; ok {
			l.Variables[n] = bounded(redact.Text(v), maxValue)
		}
	}
	id := slices.Clone(o.id)
	if o.restart > 0 {
		id = append(id, "r"+strconv.Itoa(o.restart))
	}
	text := strings.Join(id, ".")
	if o.weak || !readable(text) || redact.Text(text) != text {
		sum := sha256.Sum256([]byte(strings.Join(id, "\x00")))
		text = hex.EncodeToString(sum[:8])
	}
	l.ID = launcher + ":" + text
	return l
}

// count reads a number that is not below zero; nil where it is none.
func (v variables) count(names ...string) *int {
	for _, n := range names {
		if i, err := strconv.Atoi(v[n]); err == nil && i >= 0 && i < 1<<24 {
			return &i
		}
	}
	return nil
}

func (v variables) restart(name string) int {
	if n := v.count(name); n != nil {
		return *n
	}
	return 0
}

// several reports whether size is known and more than one.
func several(size *int) bool { return size != nil && *size > 1 }

// job is the id of the scheduler's job around a launch, which makes the launch's own id last.
func (v variables) job() (id, names []string) {
	for _, n := range [...]string{"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "AZUREML_RUN_ID", "TRAINING_JOB_NAME"} {
		if v[n] == "" {
			continue
		}
		id, names = append(id, v[n]), append(names, n)
		if n == "SLURM_JOB_ID" && v.restart("SLURM_RESTART_COUNT") > 0 {
			id, names = append(id, "q"+v["SLURM_RESTART_COUNT"]), append(names, "SLURM_RESTART_COUNT")
		}
		if n == "LSB_JOBID" && v["LSB_JOBINDEX"] != "" && v["LSB_JOBINDEX"] != "0" {
			id, names = append(id, v["LSB_JOBINDEX"]), append(names, "LSB_JOBINDEX")
		}
		return id, names
	}
	return nil, nil
}

// torchelastic is torchrun and what is built upon it (torch/distributed/elastic/agent/server/
// local_elastic_agent.py). Its run id is "none" where none was given. The folder of the error
// files is new for each agent, and so names the launch where there is one agent.
func torchelastic(v variables) *origin {
	run := v["TORCHELASTIC_RUN_ID"]
	if run == "" {
		return nil
	}
	o := &origin{rank: v.count("RANK"), local: v.count("LOCAL_RANK"), size: v.count("WORLD_SIZE"), restart: v.restart("TORCHELASTIC_RESTART_COUNT"),
		names: []string{"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS", "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}}
	o.id = []string{run, v["MASTER_ADDR"] + ":" + v["MASTER_PORT"]}
	switch job, names := v.job(); {
	case v["GROUP_WORLD_SIZE"] == "1" && agentFolder(v["TORCHELASTIC_ERROR_FILE"]) != "":
		o.id, o.names = append(o.id, agentFolder(v["TORCHELASTIC_ERROR_FILE"])), append(o.names, "TORCHELASTIC_ERROR_FILE")
	case job != nil:
		o.id, o.names = append(o.id, job...), append(o.names, names...)
		o.weak = run == "none"
	default:
		o.weak = len(run) < 32 // not the UUID of --standalone; people give 1 and 100 again and again
	}
	return o
}

// agentFolder is what .../torchelastic_RANDOM/RUN_RANDOM/attempt_N/RANK/error.json is below.
func agentFolder(file string) string {
	attempt := path.Dir(path.Dir(file))
	if !strings.HasPrefix(path.Base(attempt), "attempt_") {
		return ""
	}
	return path.Dir(attempt)
}

// openMPI is mpirun of Open MPI, and Slurm where it starts MPI programs through PMIx.
func openMPI(v variables) *origin {
	o := &origin{rank: v.count("OMPI_COMM_WORLD_RANK"), local: v.count("OMPI_COMM_WORLD_LOCAL_RANK"), size: v.count("OMPI_COMM_WORLD_SIZE"),
		names: []string{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_ess_jobid"}}
	if o.rank == nil || !several(o.size) {
		return nil
	}
	for _, n := range [...]string{"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_ess_jobid"} {
		if v[n] != "" {
			o.id = []string{v[n]}
			break
		}
	}
	// Numbers of jobs are made from process numbers, and come again on other hosts and days.
	return o.within(v)
}

// within adds the scheduler's job. Without one, and without an own id, the launch may be taken
// for another one.
func (o *origin) within(v variables) *origin {
	job, names := v.job()
	o.weak = len(o.id) == 0 || len(job) == 0
	o.id, o.names = append(o.id, job...), append(o.names, names...)
	if len(o.id) == 0 {
		if v["MASTER_ADDR"] == "" {
			return nil
		}
		o.id, o.names = []string{v["MASTER_ADDR"] + ":" + v["MASTER_PORT"]}, append(o.names, "MASTER_ADDR", "MASTER_PORT")
	}
	return o
}

// pals is mpiexec of HPE Cray.
func pals(v variables) *origin {
	if v["PALS_APID"] == "" || v.count("PALS_RANKID") == nil {
		return nil
	}
	o := &origin{id: []string{v["PALS_APID"]}, rank: v.count("PALS_RANKID"), local: v.count("PALS_LOCAL_RANKID"), size: v.count("PALS_SIZE", "PMI_SIZE"),
		names: []string{"PALS_APID", "PALS_RANKID", "PALS_LOCAL_RANKID", "PALS_SIZE", "PMI_SIZE"}}
	return o
}

func flux(v variables) *origin {
	o := &origin{id: []string{v["FLUX_JOB_ID"]}, rank: v.count("FLUX_TASK_RANK"), local: v.count("FLUX_TASK_LOCAL_ID"), size: v.count("FLUX_JOB_SIZE"),
		names: []string{"FLUX_JOB_ID", "FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID", "FLUX_JOB_SIZE"}}
	if v["FLUX_JOB_ID"] == "" || o.rank == nil || !several(o.size) {
		return nil
	}
	return o
}

// jsrun is IBM's launcher within LSF.
func jsrun(v variables) *origin {
	o := &origin{rank: v.count("JSM_NAMESPACE_RANK"), local: v.count("JSM_NAMESPACE_LOCAL_RANK"), size: v.count("JSM_NAMESPACE_SIZE"),
		names: []string{"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_SIZE", "PMIX_NAMESPACE"}}
	if o.rank == nil || !several(o.size) {
		return nil
	}
	if v["PMIX_NAMESPACE"] != "" {
		o.id = []string{v["PMIX_NAMESPACE"]}
	}
	return o.within(v)
}

// pmi is Hydra, of MPICH and Intel MPI. PMI_PORT is where its process manager listens.
func pmi(v variables) *origin {
	o := &origin{rank: v.count("PMI_RANK"), local: v.count("MPI_LOCALRANKID"), size: v.count("PMI_SIZE"),
		names: []string{"PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE", "PMI_JOBID", "PMI_PORT"}}
	if o.rank == nil || !several(o.size) || v["SLURM_STEP_ID"] != "" {
		return nil // srun sets PMI_RANK as well, and names its steps
	}
	for _, n := range [...]string{"PMI_JOBID", "PMI_PORT"} {
		if v[n] != "" {
			o.id = []string{v[n]}
			break
		}
	}
	return o.within(v)
}

// slurm is a task of a step (srun(1), "Output environment variables"). A batch script and the
// shell of an allocation have the job's variables and, of a step, none or a number of Slurm's
// own; a step of one task has nobody to belong together with.
func slurm(v variables) *origin {
	job, step := v["SLURM_JOB_ID"], v["SLURM_STEP_ID"]
	n, err := strconv.ParseUint(step, 10, 64)
	if job == "" || err != nil || n >= slurmSpecialSteps {
		return nil
	}
	o := &origin{rank: v.count("SLURM_PROCID"), local: v.count("SLURM_LOCALID"), size: v.count("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"), restart: v.restart("SLURM_RESTART_COUNT"),
		names: []string{"SLURM_CLUSTER_NAME", "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_NODES", "SLURM_NTASKS", "SLURM_RESTART_COUNT", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "SLURM_HET_SIZE", "SLURM_JOB_ID_HET_GROUP_0"}}
	if o.rank == nil || !several(o.size) {
		return nil
	}
	if v["SLURM_HET_SIZE"] != "" && v["SLURM_JOB_ID_HET_GROUP_0"] != "" {
		job = v["SLURM_JOB_ID_HET_GROUP_0"] // each part of the job has a number of its own
	}
	if c := v["SLURM_CLUSTER_NAME"]; c != "" {
		o.id = append(o.id, c)
	}
	o.id = append(o.id, job, step)
	return o
}

// slurmSpecialSteps is where the numbers of steps begin that Slurm makes for itself (slurm.h:
// SLURM_INTERACTIVE_STEP, SLURM_BATCH_SCRIPT, SLURM_EXTERN_CONT, SLURM_PENDING_STEP).
const slurmSpecialSteps = 0xfffffff0

// jobOf is the job of a pod of an indexed job: its name is the job's, the index, and five
// characters.
func jobOf(pod, index string) string {
	i := strings.LastIndexByte(pod, '-')
	if i < 0 || len(pod)-i-1 != 5 {
		return ""
	}
	job, ok := strings.CutSuffix(pod[:i], "-"+index)
	if !ok || index == "" {
		return ""
	}
	return job
}

// kubernetes is an indexed Job, whose pods have their index in the environment, or a PyTorchJob,
// which names the pod of rank 0. A job may be made again under the same name.
func kubernetes(v variables) *origin {
	if v["KUBERNETES_SERVICE_HOST"] == "" && v["JOB_COMPLETION_INDEX"] == "" {
		return nil
	}
	o := &origin{weak: true, rank: v.count("JOB_COMPLETION_INDEX", "RANK", "PET_NODE_RANK"), size: v.count("WORLD_SIZE", "PET_NNODES"),
		names: []string{"HOSTNAME", "JOB_COMPLETION_INDEX", "RANK", "PET_NODE_RANK", "WORLD_SIZE", "PET_NNODES", "MASTER_ADDR", "MASTER_PORT", "PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_RDZV_ENDPOINT"}}
	if job := jobOf(v["HOSTNAME"], v["JOB_COMPLETION_INDEX"]); job != "" {
		o.id = []string{job}
		return o
	}
	if o.rank == nil || !several(o.size) {
		return nil
	}
	for _, n := range [...]string{"PET_RDZV_ENDPOINT", "PET_MASTER_ADDR", "MASTER_ADDR"} {
		if v[n] != "" {
			o.id = []string{v[n], strconv.Itoa(*o.size)}
			return o
		}
	}
	return nil
}

// masterAddress is any launcher that sets what torch.distributed reads (DeepSpeed, accelerate,
// shell loops): where rank 0 listens.
func masterAddress(v variables) *origin {
	o := &origin{weak: true, rank: v.count("RANK"), local: v.count("LOCAL_RANK"), size: v.count("WORLD_SIZE"),
		names: []string{"MASTER_ADDR", "MASTER_PORT", "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "CROSS_RANK", "CROSS_SIZE", "ACCELERATE_MIXED_PRECISION"}}
	if o.rank == nil || !several(o.size) || v["MASTER_ADDR"] == "" {
		return nil
	}
	job, names := v.job()
	o.id = append([]string{v["MASTER_ADDR"] + ":" + v["MASTER_PORT"], strconv.Itoa(*o.size)}, job...)
	o.names = append(o.names, names...)
	return o
}
