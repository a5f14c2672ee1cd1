package record

import (
	"strings"
	"sync"
)

// A wrapper is a program that runs another one, which its command line names behind its own
// options.
type wrapper struct {
	// takes are the options, separated by commas, that have their value in the next word; an
	// option that joins it with = is passed as every other.
	takes string
	// sub are the sub-commands that run another program; "" where the program itself does.
	sub string
	// skipWords is how many words stand before the command: the duration of timeout, the mask
	// of taskset, the image of a container.
	skipWords int
	script    bool   // it runs a Python script, not a command, unless
	binary    string // one of these options stands before
	module    string // options behind which a module stands, as of python -m
	launcher  bool   // it starts processes of a job
	set       bool   // NAME=value may stand before the command
}

const (
	torchrunTakes   = "--nnodes,--nproc-per-node,--nproc_per_node,--rdzv-backend,--rdzv_backend,--rdzv-endpoint,--rdzv_endpoint,--rdzv-id,--rdzv_id,--rdzv-conf,--rdzv_conf,--max-restarts,--max_restarts,--monitor-interval,--monitor_interval,--start-method,--start_method,--role,--log-dir,--log_dir,-r,--redirects,-t,--tee,--local-ranks-filter,--local_ranks_filter,--node-rank,--node_rank,--master-addr,--master_addr,--master-port,--master_port,--local-addr,--local_addr,--logs-specs,--logs_specs,--numa-binding,--numa_binding,--signals-to-handle,--signals_to_handle,--event-log-handler,--event_log_handler,--virtual-local-rank"
	accelerateTakes = "--config_file,--config-file,--num_processes,--num-processes,--num_machines,--num-machines,--num_cpu_threads_per_process,--num-cpu-threads-per-process,--mixed_precision,--mixed-precision,--dynamo_backend,--dynamo-backend,--dynamo_mode,--dynamo-mode,--gpu_ids,--gpu-ids,--machine_rank,--machine-rank,--main_process_ip,--main-process-ip,--main_process_port,--main-process-port,--same_network,--tee,-t,--log_dir,--log-dir,--role,--rdzv_backend,--rdzv-backend,--rdzv_conf,--rdzv-conf,--max_restarts,--max-restarts,--monitor_interval,--monitor-interval,--deepspeed_config_file,--deepspeed-config-file,--zero_stage,--zero-stage,--offload_optimizer_device,--offload-optimizer-device,--offload_param_device,--offload-param-device,--offload_optimizer_nvme_path,--offload_param_nvme_path,--gradient_accumulation_steps,--gradient-accumulation-steps,--gradient_clipping,--gradient-clipping,--zero3_init_flag,--zero3-init-flag,--zero3_save_16bit_model,--zero3-save-16bit-model,--deepspeed_hostfile,--deepspeed_exclusion_filter,--deepspeed_inclusion_filter,--deepspeed_multinode_launcher,--deepspeed_moe_layer_cls_names,--fsdp_offload_params,--fsdp_min_num_params,--fsdp_sharding_strategy,--fsdp_auto_wrap_policy,--fsdp_transformer_layer_cls_to_wrap,--fsdp_backward_prefetch,--fsdp_state_dict_type,--fsdp_forward_prefetch,--fsdp_use_orig_params,--fsdp_cpu_ram_efficient_loading,--fsdp_sync_module_states,--fsdp_activation_checkpointing,--fsdp_version,--fsdp_reshard_after_forward,--megatron_lm_tp_degree,--megatron_lm_pp_degree,--megatron_lm_num_micro_batches,--megatron_lm_sequence_parallelism,--megatron_lm_recompute_activations,--megatron_lm_use_distributed_optimizer,--megatron_lm_gradient_clipping,--fp8_backend,--fp8_format,--tpu_name,--tpu_zone,--vm,--env,--main_training_function,--downcast_bf16,--aws_access_key_id,--aws_secret_access_key,--local_ranks_filter,--num_neuron_cores"
	deepspeedTakes  = "-H,--hostfile,-i,--include,-e,--exclude,--num_nodes,--min_elastic_nodes,--max_elastic_nodes,--num_gpus,--master_port,--master_addr,--node_rank,--launcher,--launcher_args,--autotuning,--bind_core_list,--elastic_training,--ssh_port,--venv_script,--enable_each_rank_log"
	srunTakes       = "-A,--account,-n,--ntasks,-N,--nodes,-c,--cpus-per-task,-p,--partition,-t,--time,-J,--job-name,-o,--output,-e,--error,-i,--input,-w,--nodelist,-x,--exclude,-G,--gpus,-q,--qos,-C,--constraint,-d,--dependency,-D,--chdir,-m,--distribution,-r,--relative,-T,--threads,-W,--wait,-M,--clusters,-B,--extra-node-info,-S,--core-spec,-I,-E,-b,--begin,-L,--licenses,--gres,--mem,--mem-per-cpu,--mem-per-gpu,--gpus-per-node,--gpus-per-task,--gpus-per-socket,--gpu-bind,--gpu-freq,--cpu-bind,--cpu-freq,--mem-bind,--mpi,--ntasks-per-node,--ntasks-per-gpu,--ntasks-per-core,--ntasks-per-socket,--cpus-per-gpu,--export,--container-image,--container-mounts,--container-workdir,--container-name,--container-env,--container-save,--network,--reservation,--jobid,--job,--het-group,--pack-group,--kill-on-bad-exit,--signal,--hint,--switches,--tmp,--uid,--gid,--prolog,--epilog,--task-prolog,--task-epilog,--multi-prog,--open-mode,--profile,--comment,--mail-user,--mail-type,--nice,--threads-per-core,--tres-per-task,--tres-bind,--acctg-freq,--bcast,--deadline,--exclude,--slurmd-debug,--sockets-per-node,--cores-per-socket,--wckey,--priority,--propagate"
	mpirunTakes     = "-n,-np,--np,-c,-H,--host,-host,-hosts,--hosts,-hostfile,--hostfile,-machinefile,--machinefile,-f,-x,-N,--npernode,-npernode,-ppn,--ppn,-perhost,--map-by,-map-by,--bind-to,-bind-to,--rank-by,-rank-by,--prefix,-prefix,-wdir,--wdir,-wd,-envlist,-launcher,-bootstrap,--output-filename,-output-filename,--timeout,-timeout,--report-uri,--display,--rankfile,-rankfile,-rf,--cpu-set,--tune,--hetero-nodes-file,-iface,--depth,--cpu-bind,-d,--personality,--npersocket"
	dockerTakes     = "-e,--env,--env-file,-v,--volume,--mount,-w,--workdir,-u,--user,--name,--gpus,--network,--net,--shm-size,--ipc,--pid,-m,--memory,--memory-swap,--cpus,--cpuset-cpus,--ulimit,-p,--publish,-h,--hostname,--entrypoint,--runtime,--device,--cap-add,--security-opt,-l,--label,--add-host,--restart,--tmpfs,--platform,--cgroup-parent,--log-driver,--log-opt,--pull,--group-add,--userns,--stop-timeout,--oom-score-adj,--pids-limit"
	singTakes       = "-B,--bind,--env,--env-file,-H,--home,-W,--workdir,--pwd,--cwd,-o,--overlay,-S,--scratch,--app,--hostname,--network,--apply-cgroups,--mount,--nvccli"
	uvTakes         = "--with,--with-editable,--with-requirements,-p,--python,--env-file,--extra,--group,--no-group,--only-group,--no-extra,--package,--project,--directory,--index,--default-index,-i,--index-url,--extra-index-url,-f,--find-links,--config-file,--cache-dir,--color,-P,--upgrade-package,--index-strategy,--resolution,--prerelease,--refresh-package,--link-mode,--isolated-dir,--python-platform,--exclude-newer,-w,--script-metadata"
)

// wrappers by the name of their program. These tables are made at their first use.
var wrappers = sync.OnceValue(func() map[string]wrapper {
	return map[string]wrapper{
		"env":               {takes: "-u,--unset,-C,--chdir,-S,--split-string", set: true},
		"nohup":             {},
		"setsid":            {},
		"stdbuf":            {takes: "-i,-o,-e,--input,--output,--error"},
		"time":              {takes: "-f,--format,-o,--output"},
		"nice":              {takes: "-n,--adjustment"},
		"ionice":            {takes: "-c,--class,-n,--classdata"},
		"chrt":              {takes: "-T,-P,-D", skipWords: 1},
		"taskset":           {takes: "", skipWords: 1},
		"numactl":           {takes: "-i,-m,-N,-C,-p,-P,-w,--interleave,--membind,--cpunodebind,--physcpubind,--preferred,--preferred-many,--weighted-interleave"},
		"timeout":           {takes: "-k,--kill-after,-s,--signal", skipWords: 1},
		"prlimit":           {takes: ""},
		"systemd-run":       {launcher: true, takes: "-p,--property,-u,--unit,--slice,--description,-E,--setenv,--working-directory,-d,--uid,--gid,--nice"},
		"sudo":              {takes: "-u,--user,-g,--group,-h,--host,-p,--prompt,-C,-r,-t,-T,-D,--chdir", set: true},
		"doas":              {takes: "-u,-C"},
		"exec":              {takes: "-a"},
		"command":           {},
		"unbuffer":          {},
		"caffeinate":        {takes: "-t,-w"},
		"catchsegv":         {},
		"xvfb-run":          {takes: "-n,--server-num,-s,--server-args,-f,--auth-file,-e,--error-file,-w,--wait"},
		"strace":            {takes: "-e,-o,-p,-s,-S,-u,-E,-a,-O,-P,-I,-b,-X,-U"},
		"ltrace":            {takes: "-e,-o,-p,-s,-u,-l,-n,-a,-A,-D,-F,-x"},
		"gdb":               {takes: "-x,-ex,-iex,-ix,-d,-cd,-batch-silent"},
		"cuda-gdb":          {takes: "-x,-ex,-iex,-ix,-d,-cd"},
		"valgrind":          {},
		"heaptrack":         {takes: "-o,--output"},
		"perf":              {sub: "record,stat,trace", takes: "-e,-o,-F,--call-graph,-c,-C,--output,-D,-I"},
		"nsys":              {sub: "profile,launch,start", takes: "-o,--output,-t,--trace,-s,--sample,-c,--capture-range,-b,--backtrace,-d,--duration,-y,--delay,-e,--env-var,-f,--force-overwrite,-w,--show-output,-x,--stop-on-exit,-p,-n,--inherit-environment,--kill,--python-sampling-frequency,-k,--session-new,--capture-range-end,--stats,--gpu-metrics-devices"},
		"ncu":               {takes: "-o,--export,-k,--kernel-name,-c,--launch-count,-s,--launch-skip,--set,--section,--metrics,--target-processes,--nvtx-include,-i,-f,--kernel-id,--replay-mode,--clock-control,--log-file"},
		"nvprof":            {takes: "-o,--export-profile,--log-file,-f,--metrics,--events"},
		"rocprof":           {takes: "-i,-o,-d,--timestamp,-t"},
		"rocprofv3":         {takes: "-i,-o,-d,--output-format"},
		"compute-sanitizer": {takes: "--tool,--log-file,--save,--launch-timeout,--target-processes,--kernel-name,--max-connections,--print-limit"},
		"cuda-memcheck":     {takes: "--tool,--log-file,--save"},
		"inquest":           {sub: "run,boundary,verify", takes: "--store,--timeout,--every,--vary,--incident,--runs,--checkpoint,--keep-product,--find,--allow-writes,--log"},
		"py-spy":            {sub: "record,top", takes: "-o,--output,-r,--rate,-d,--duration,-f,--format"},
		"scalene":           {script: true, takes: "--outfile,--cpu-percent-threshold,--profile-interval"},
		"kernprof":          {script: true, takes: "-o,--outfile,-s,--setup,-p,--prof-mod,-u"},
		"viztracer":         {script: true, takes: "-o,--output_file,--tracer_entries,--max_stack_depth", module: "-m"},
		"memray":            {sub: "run", script: true, takes: "-o,--output,-p,--live-port", module: "-m"},
		"coverage":          {sub: "run", script: true, takes: "--source,--rcfile,--omit,--include,--data-file,--context,--concurrency", module: "-m,--module"},
		"conda":             {sub: "run", takes: "-n,--name,-p,--prefix,--cwd"},
		"mamba":             {sub: "run", takes: "-n,--name,-p,--prefix,--cwd"},
		"micromamba":        {sub: "run", takes: "-n,--name,-p,--prefix,--cwd,-a,--attach,-r,--root-prefix,-e,--env"},
		"poetry":            {sub: "run", takes: "-C,--directory,-P,--project"},
		"pipenv":            {sub: "run", takes: "--python"},
		"pdm":               {sub: "run", takes: "-p,--project,-s,--site-packages"},
		"hatch":             {sub: "run", takes: "-e,--env,-p,--project"},
		"rye":               {sub: "run"},
		"pixi":              {sub: "run", takes: "-e,--environment,--manifest-path,-p,--platform"},
		"uv":                {sub: "run", takes: uvTakes, module: "-m,--module"},
		"direnv":            {sub: "exec", skipWords: 1},
		"dotenv":            {sub: "run", takes: "-f,--file"},
		"doppler":           {sub: "run", takes: "-p,--project,-c,--config"},
		"singularity":       {sub: "exec,run", takes: singTakes, skipWords: 1},
		"apptainer":         {sub: "exec,run", takes: singTakes, skipWords: 1},
		"docker":            {sub: "run", takes: dockerTakes, skipWords: 1, launcher: true},
		"podman":            {sub: "run", takes: dockerTakes, skipWords: 1, launcher: true},
		"nerdctl":           {sub: "run", takes: dockerTakes, skipWords: 1, launcher: true},
		"enroot":            {sub: "start", takes: "-c,--conf,-e,--env,-m,--mount", skipWords: 1},
		"ssh":               {takes: "-p,-i,-l,-o,-F,-J,-L,-R,-D,-W,-b,-c,-E,-m,-O,-Q,-S,-w,-B", skipWords: 1, launcher: true},
		"srun":              {takes: srunTakes, launcher: true},
		"sbatch":            {takes: srunTakes + ",-a,--array,--wrap,-H", launcher: true},
		"salloc":            {takes: srunTakes, launcher: true},
		"mpirun":            {takes: mpirunTakes, launcher: true},
		"mpiexec":           {takes: mpirunTakes, launcher: true},
		"mpiexec.hydra":     {takes: mpirunTakes, launcher: true},
		"orterun":           {takes: mpirunTakes, launcher: true},
		"prterun":           {takes: mpirunTakes, launcher: true},
		"prun":              {takes: mpirunTakes, launcher: true},
		"aprun":             {takes: "-n,-N,-d,-S,-L,-e,-cc,-j,-m", launcher: true},
		"jsrun":             {takes: "-n,--nrs,-a,--tasks_per_rs,-c,--cpu_per_rs,-g,--gpu_per_rs,-r,--rs_per_host,-d,--launch_distribution,-b,--bind,-l,--latency_priority,-p,--np,-E,--env,-h,--chdir,-m,--memory_per_rs,-K,-o,-k,--stdio_stdout,--stdio_stderr,-e,--smpiargs", launcher: true},
		"flux":              {sub: "run,submit", takes: "-n,--ntasks,-N,--nodes,-c,--cores-per-task,-g,--gpus-per-task,-t,--time-limit,--env,-o,--setopt,--output,--error,-q,--queue", launcher: true},
		"bsub":              {takes: "-n,-q,-J,-o,-e,-W,-R,-P,-gpu,-M,-m,-nnodes,-alloc_flags", launcher: true},
		"qsub":              {takes: "-N,-q,-l,-o,-e,-A,-v,-W,-M,-m,-P,-J", launcher: true},
		"horovodrun":        {takes: "-np,--num-proc,-H,--hosts,-hostfile,--hostfile,-p,--ssh-port,--network-interfaces,--min-np,--max-np,--slots-per-host,--start-timeout,--fusion-threshold-mb,--cycle-time-ms,--timeline-filename,--output-filename,--config-file,-i,--ssh-identity-file,--host-discovery-script,--reset-limit,--log-level", launcher: true},
		"torchrun":          {script: true, takes: torchrunTakes, module: "-m,--module", binary: "--no-python", launcher: true},
		"torchrun-hpc":      {script: true, takes: "-N,-n,-l,-p,-u,--nodes,--procs-per-node", launcher: true},
		"accelerate":        {sub: "launch", script: true, takes: accelerateTakes, module: "-m,--module", binary: "--no-python", launcher: true},
		"accelerate-launch": {script: true, takes: accelerateTakes, module: "-m,--module", binary: "--no-python", launcher: true},
		"deepspeed":         {script: true, takes: deepspeedTakes, module: "--module", binary: "--no-python", launcher: true},
		"ds":                {script: true, takes: deepspeedTakes, module: "--module", binary: "--no-python", launcher: true},
		"colossalai":        {sub: "run", script: true, takes: "-H,--host,--hostfile,--include,--exclude,--num_nodes,--nproc_per_node,--master_port,--master_addr,--extra_launch_args,--ssh-port,--include", module: "-m", launcher: true},
		"composer":          {script: true, takes: "-n,--nproc,--world_size,--base_rank,--node_rank,--master_addr,--master_port,--stdout,--stderr", module: "-m,--module_mode", binary: "-c,--command-mode", launcher: true},
		"ray":               {sub: "job", takes: "--address,--working-dir,--runtime-env,--runtime-env-json,--submission-id,--entrypoint-num-cpus,--entrypoint-num-gpus,--entrypoint-memory,--log-style", skipWords: 1, launcher: true},
		"fabric":            {sub: "run", script: true, takes: "--accelerator,--strategy,--devices,--num-nodes,--node-rank,--main-address,--main-port,--precision", launcher: true},
		"debugpy":           {script: true, takes: "--listen,--connect,--configure-subProcess,--log-to,--adapter-access-token", module: "-m"},
		"cprofile":          {script: true, takes: "-o,-s", module: "-m"},
		"pdb":               {script: true, takes: "-c", module: "-m"},
		"plain-module":      {script: true, module: "-m"},
	}
})

// moduleWrappers are modules that are such programs when run with -m.
var moduleWrappers = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"torch.distributed.run":              "torchrun",
		"torch.distributed.launch":           "torchrun",
		"accelerate.commands.launch":         "accelerate-launch",
		"accelerate.commands.accelerate_cli": "accelerate",
		"accelerate":                         "accelerate",
		"deepspeed":                          "deepspeed",
		"deepspeed.launcher.runner":          "deepspeed",
		"deepspeed.launcher.launch":          "deepspeed",
		"horovod.runner.launch":              "horovodrun",
		"composer.cli.launcher":              "composer",
		"debugpy":                            "debugpy",
		"cProfile":                           "cprofile",
		"profile":                            "cprofile",
		"pdb":                                "pdb",
		"ipdb":                               "pdb",
		"coverage":                           "coverage",
		"memray":                             "memray",
		"scalene":                            "scalene",
		"viztracer":                          "viztracer",
		"trace":                              "plain-module",
		"torch.utils.bottleneck":             "plain-module",
		"torch.backends.xeon.run_cpu":        "plain-module",
		"kernprof":                           "kernprof",
		"lightning":                          "fabric",
	}
})

// commanders are programs that do several things: how many words of theirs say which.
var commanders = sync.OnceValue(func() map[string]int {
	return map[string]int{
		"llamafactory-cli": 1, "axolotl": 1, "litgpt": 1, "tune": 2, "swift": 1, "xtuner": 1, "trl": 1, "autotrain": 1, "yolo": 2, "vllm": 1, "sglang": 1,
		"lightning": 1, "nemo": 2, "megatron": 1, "oumi": 1, "unsloth": 1, "tlt": 1, "mmengine": 1, "mim": 2, "make": 1, "just": 1, "task": 1, "dvc": 2, "kedro": 1, "snakemake": 0, "lerobot-train": 0, "ns-train": 1, "fairseq-train": 0, "wandb": 1, "ray": 1, "accelerate": 1, "uv": 1, "poetry": 1, "conda": 1, "docker": 1, "git": 1, "go": 1, "cargo": 1, "npm": 2, "inquest": 1,
	}
})

// skipOptions returns words from the first that is no option.
func skipOptions(words []string, takes string) []string {
	for i := 0; i < len(words); i++ {
		a := words[i]
		if a == "--" {
			return words[i+1:]
		}
		if len(a) < 2 || a[0] != '-' {
			return words[i:]
		}
		if !strings.Contains(a, "=") && has(takes, a) {
			i++
		}
	}
	return nil
}

// skip returns what a wrapper runs, and whether that is a module. words stand behind its name.
//
// An option that is not known may have a value in the next word or not. Where a Python script
// is expected, the next word is taken for a value unless it looks like a script.
func (x wrapper) skip(words []string) (rest []string, module bool) {
	left := x.skipWords
	for i := 0; i < len(words); i++ {
		a := words[i]
		switch {
		case a == "--":
			rest := words[i+1:]
			if left > len(rest) {
				return nil, false
			}
			return rest[left:], false
		case len(a) > 1 && a[0] == '-':
			name, _, joined := strings.Cut(a, "=")
			switch {
			case has(x.module, name) && x.module != "":
				if joined {
					return append([]string{a[len(name)+1:]}, words[i+1:]...), true
				}
				// A flag of torchrun: what is run is a module then, behind further options.
				rest, _ := wrapper{takes: x.takes, script: x.script}.skip(words[i+1:])
				return rest, len(rest) > 0
			case joined:
			case has(x.takes, a):
				i++
				// mpirun -x NAME value and the like have one value; -mca has two.
			case a == "-mca" || a == "--mca" || a == "-gmca" || a == "--gmca" || a == "--prtemca" || a == "--pmixmca" || a == "-genv" || a == "-env":
				i += 2
			case x.script && i+1 < len(words) && strings.HasPrefix(a, "--") && !flagOption(a) && !strings.HasPrefix(words[i+1], "-") && !isScript(words[i+1]) && anyScript(words[i+2:]):
				i++
			}
		case x.set && isAssignment(a):
		case left > 0:
			left--
		default:
			return words[i:], false
		}
	}
	return nil, false
}

// flagOption reports whether an option of a launcher of scripts is known to have no value.
func flagOption(a string) bool {
	switch strings.ReplaceAll(a, "_", "-") {
	case "--standalone", "--no-python", "--run-path", "--multi-gpu", "--cpu", "--tpu", "--mps", "--use-deepspeed", "--use-fsdp", "--use-megatron-lm", "--use-xpu", "--quiet", "--debug", "--use-cpu",
		"--no-local-rank", "--force-multi", "--save-pid", "--bind-cores-to-rank", "--use-env", "--enable-cpu-affinity", "--no-ssh", "--verbose", "--version", "--help", "--native", "--live", "--branch", "--parallel-mode":
		return true
	}
	return false
}

// anyScript reports whether one of words looks like a script.
func anyScript(words []string) bool {
	for _, w := range words {
		if isScript(w) {
			return true
		}
	}
	return false
}

// elsewhere reports whether what a launcher starts need not be a process below it: a service
// starts it, on this host or another.
func elsewhere(launcher string) bool {
	return has("srun,sbatch,salloc,docker,podman,nerdctl,ssh,bsub,qsub,ray,flux,jsrun,aprun,systemd-run", launcher)
}
