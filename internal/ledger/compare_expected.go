package ledger

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/lazyre"
)

// usualNames are the names of options and variables, as optionKey writes them, that any two runs
// have apart, with the reason.
var usualNames = []struct {
	name *lazyre.Regexp
	why  string
}{
	{lazyre.New(`(?:^|_)(?:master|main_process|rdzv|server|coordinator)_?(?:port|addr|address|ip|endpoint|id)$|^(?:port|rdzv_conf|ray_address|hostfile|nodelist|node_list)$|_port$`), "addresses and ports of one run"},
	{lazyre.New(`(?:^|[_.])(?:log|logs|logging|tensorboard|tb|wandb)_?(?:dir|file|path|folder|prefix|root)?$|(?:^|[_.])(?:output|out|save|checkpoint_save|result|results|work|run|hydra_run|dump|artifact)_?(?:dir|path|folder|file|root)$|^(?:output|out|save|results?|error)$|^hydra\.run\.dir$`), "where one run writes"},
	{lazyre.New(`^(?:hostname|host|pwd|oldpwd|_|shlvl|term|term_.*|columns|lines|display|editor|lang|lc_.*|logname|user|mail|shell|colorterm|ls_colors|ps1|windowid|tty|gpg_.*|ssh_.*|xdg_.*|dbus_.*|vscode_.*|tmux.*|sty|tmp|tmpdir|temp|temp_dir|invocation_id|journal_stream)$`), "of the session that started it"},
	{lazyre.New(`^(?:rank|local_rank|group_rank|role_rank|node_rank|machine_rank|job_completion_index|pod_name|pod_ip|node_name)$|^(?:ompi|pmi|pmix|mpi|mv2|palm|flux|i_mpi)_.*(?:rank|localid|local_id|nodeid|hostname|universe|namespace|server|uri|fd|id|port)$|^pmi_fd$`), "the place of one process in its job"},
	{lazyre.New(`^slurm(?:d)?_.*(?:id|ids|pid|gtids|addr|host|nodelist|nodename|aliases|launch_node|port|time|hostname|ipaddr|comm_host|comm_port|topology_addr.*|submit_dir|cluster_name|user|uid|gid|account|name|script_context|localid|procid|conf|bitmask|working_cluster)$|^slurm_(?:job_gpus|step_gpus|jobid)$`), "the scheduler's names of one job"},
	{lazyre.New(`^(?:pbs|lsb|lsf|sge|job|task|condor|kubernetes|flux|cobalt|aws_batch|azureml|sm|batch)_.*(?:id|name|dir|file|path|host|hosts|port|addr|nodefile|spool.*|workdir|service.*)$|^(?:kubernetes_.*)$`), "the scheduler's names of one job"},
	{lazyre.New(`^torchelastic_(?:run_id|restart_count|error_file|agent_.*|use_agent_store)$|^(?:torchelastic|torch)_.*(?:temp_file|debug_info.*file)$`), "the launcher's names of one start"},
	{lazyre.New(`(?:^|[_.])(?:run|exp|experiment|job|trial|wandb|tb)_?(?:name|id|group|tag|tags|notes)$|^(?:tag|comment|run|job_name|exp)$`), "the name of one run"},
	{lazyre.New(`^inquest_`), "set by this program"},
	{lazyre.New(`^(?:wandb_(?:run_id|name|dir|resume|run_group|service|cache_dir|artifact_dir|data_dir)|mlflow_run_id|comet_experiment_key|clearml_task_id|neptune_custom_run_id|aim_run_hash)$`), "the tracker's name of one run"},
}

// byThisProgram are variables that boundary and verify set so that a trial destroys nothing and
// reports to nobody.
var byThisProgram = lazyre.New(`^(?:wandb|comet|mlflow|neptune|clearml|swanlab|aim|trackio|dvc|hf|huggingface|transformers|tensorboard|dvclive|ray|sacred)_|^(?:tmpdir|tmp|temp|home|torchelastic_error_file|pythonunbuffered|pythonfaulthandler)$`)

var (
	inTemp = lazyre.New(`(?:/tmp|/var/tmp|/dev/shm|/private/tmp|/var/folders|/scratch/slurm[^/\s]*|/local(?:scratch)?/[^/\s]*job[^/\s]*)/[^/\s,:'"]+`)
	dated  = lazyre.New(`\d{4}-\d{2}-\d{2}(?:[T_ -]\d{2}[-:h]?\d{2}(?:[-:m]?\d{2})?(?:[.,]\d+)?Z?)?|\b\d{8}[-_T]\d{4,6}\b|\b1[6-9]\d{8}(?:\.\d+)?\b`)
)

// usual says why a difference between two values counts as none, "" where it counts.
func (c *comparer) usual(key, from, to string) string {
	key = strings.TrimPrefix(key, "launcher\x00")
	for _, u := range usualNames {
		if u.name.MatchString(key) {
			return u.why
		}
	}
	p, q := c.a.own.Replace(from), c.b.own.Replace(to)
	if p == q {
		return "of the trial itself"
	}
	if from == "" || to == "" {
		return ""
	}
	p, q = inTemp.ReplaceAllString(p, "{TMP}"), inTemp.ReplaceAllString(q, "{TMP}")
	if p == q {
		return "a folder for what is temporary"
	}
	if dated.ReplaceAllString(p, "{TIME}") == dated.ReplaceAllString(q, "{TIME}") {
		return "the time of one run"
	}
	return ""
}
