package record

import (
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/redact"
)

// Bounds of what is kept of an environment.
const (
	maxValue     = 512 // bytes of a value
	maxVariables = 512
)

// Variables that matter for training, by how their names begin and by their names.
var (
	tellingPrefixes = []string{
		"CUDA_", "CUDNN_", "CUBLAS_", "NVIDIA_", "NCCL_", "UCX_", "UCC_", "FI_", "OFI_", "GLOO_", "SHARP_", "NVSHMEM_", "NVTE_", "RCCL_", "ROCM_", "HIP_", "HSA_", "ROCR_", "MIOPEN_", "AMD_", "GPU_", "ONEAPI_", "CCL_", "SYCL_", "ZE_",
		"TORCH", "PYTORCH_", "INDUCTOR_", "TRITON_", "ATEN_", "C10_", "FUNCTORCH_", "KINETO_", "XLA_", "JAX_", "LIBTPU_", "TPU_", "PJRT_", "TF_", "TENSORFLOW_", "KERAS_", "FLAX_",
		"HF_", "HUGGINGFACE_", "TRANSFORMERS_", "DATASETS_", "TOKENIZERS_", "ACCELERATE_", "FSDP_", "DEEPSPEED_", "DS_", "MEGATRON_", "BNB_", "BITSANDBYTES_", "FLASH_ATTENTION_", "XFORMERS_", "VLLM_", "UNSLOTH_", "NEMO_", "PL_", "LIGHTNING_", "DDP_",
		"WANDB_", "MLFLOW_", "TENSORBOARD_", "COMET_", "NEPTUNE_", "CLEARML_", "TRACKIO_", "SWANLAB_", "AIM_", "DVCLIVE_",
		"SLURM_", "PBS_", "LSB_", "FLUX_", "OMPI_", "PMIX_", "PMI_", "PALS_", "JSM_", "I_MPI_", "MPICH_", "TORCHELASTIC_", "PET_", "RAY_", "KUBERNETES_", "JOB_COMPLETION_", "AZUREML_", "SM_",
		"OMP_", "KMP_", "MKL_", "OPENBLAS_", "BLIS_", "VECLIB_", "GOTO_", "NUMEXPR_", "NUMBA_", "MALLOC_", "TCMALLOC_", "MIMALLOC_", "GLIBC_", "ARROW_", "PYTHON", "CONDA_", "UV_", "PIP_", "VIRTUAL_ENV", "LD_", "DYLD_",
	}
	tellingNames = []string{
		"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT", "NPROC_PER_NODE", "NNODES", "HOSTNAME", "TMPDIR", "TEMP", "XDG_CACHE_HOME", "PATH", "SHELL", "LANG", "LC_ALL", "CONTAINER", "container", "SINGULARITY_CONTAINER", "APPTAINER_CONTAINER", "TRAINING_JOB_NAME", "CUBLAS_WORKSPACE_CONFIG", "NO_PROXY", "no_proxy", "HTTPS_PROXY", "https_proxy", "EAGER_IMPORT", "MAX_JOBS",
	}
)

// telling are the variables that matter for training, their values bounded and without secrets.
// Of names that say that a value is secret the whole value is masked.
func telling(vars variables) map[string]string {
	names := make([]string, 0, 64)
	for name := range vars {
		if matters(name) && len(name) <= 128 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) > maxVariables {
		names = names[:maxVariables]
	}
	out := make(map[string]string, len(names))
	for _, name := range names {
		out[name] = maskVariable(name, vars[name])
	}
	return out
}

func matters(name string) bool {
	if slices.Contains(tellingNames, name) {
		return true
	}
	for _, p := range tellingPrefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// secretWords stand, between low lines, in names of variables that hold a secret.
var secretWords = []string{"TOKEN", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASSPHRASE", "PASS", "PWD", "CREDENTIAL", "CREDENTIALS", "APIKEY", "KEY", "COOKIE", "AUTH", "AUTHORIZATION", "SESSION", "SIGNATURE", "DSN"}

// maskVariable is the value of a variable without secrets. A path, a number and a switch are no
// secret, whatever the name.
func maskVariable(name, value string) string {
	secret := false
	for w := range strings.FieldsFuncSeq(strings.ToUpper(name), func(r rune) bool { return r == '_' || r == '-' || r == '.' }) {
		secret = secret || slices.Contains(secretWords, w)
	}
	if secret && !plainValue(value) {
		return redact.Mask
	}
	a := maskArgument(name + "=" + value)
	return bounded(strings.TrimPrefix(a, name+"="), maxValue)
}

// plainValue reports whether a value is too short or too plain to be a secret.
func plainValue(v string) bool {
	switch strings.ToLower(v) {
	case "", "0", "1", "true", "false", "yes", "no", "on", "off", "none":
		return true
	}
	return strings.HasPrefix(v, "/") && !strings.Contains(v, "//")
}

// allocatorVariables set the frameworks' allocators of device memory.
var allocatorVariables = []string{"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTORCH_NO_HIP_MEMORY_CACHING", "XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_ALLOCATOR", "XLA_CLIENT_MEM_FRACTION", "TF_GPU_ALLOCATOR", "TF_FORCE_GPU_ALLOW_GROWTH", "TF_GPU_MEMORY_FRACTION"}

// allocator is the settings of the allocators as NAME=value, in a fixed order.
func allocator(vars variables) string {
	var set []string
	for _, n := range allocatorVariables {
		if v, ok := vars[n]; ok {
			set = append(set, n+"="+bounded(redact.Text(v), maxValue))
		}
	}
	return strings.Join(set, " ")
}
