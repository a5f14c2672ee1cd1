package redact

import (
	"strings"
	"sync"
)

// What stays in text that leaves the machine, because it names nobody: words of the field, of
// files and folders that every project has, well-known libraries, and public addresses.

// common are words of which names of files and folders may be made and still say nothing of
// whose they are.
var common = setOf(`
a ab abs accelerate accum accumulate accumulation activation actor adam adamw algo all alloc allocated allocator amp and api app apps apptainer
arch args artifact artifacts asr assets async att attempt attention attn audio auto autograd awq backend backup backward base baseline
baselines batch batches bench benchmark benchmarks bert best beta bf16 bfloat16 bias bin blob block blocks bnb boot bs bucket build c cache
caches calib callback callbacks cast cfg chat check checkpoint checkpoints chunk ckpt ckpts class cli client clip cloud cls cluster cmd
code codebase collate collective collator command common comm compile compute conda conf config configs container containers content context conv convert
core cpp cpu critic cross csrc ctx cu cublas cuda cudnn custom cv cwd d data dataloader dataloaders dataset datasets date ddp debug decode
decoder deep deepspeed default demo dense deploy dev device devices diff diffusion dim dir dist distributed distill docs download dp dpo
driver dropout dtype dummy dump dumps dynamic e ema embed embedding embeddings encoder end engine entry env envs epoch epochs err error errors
etc eval evaluate evaluation events example examples exe exec experiment experiments experimental exp expert experts export ext extras f fast feature features
ffn file files final finetune finetuning flash flow folder for forward fp fp16 fp32 fp8 framework from fsdp full func function fused gather gen
generate generation generator git global gpt gpu gpus grad gradient gradients grpo group h hardware head heads helper helpers hf hidden home host
hosts hub huggingface hydra i id idx image images img imagenet in index infer inference info init input inputs install int int8 internal io ipc
item iter iteration iterations job jobs json jsonl kernel kernels key kl kv l label labels lang language large last latest launch launcher launchers layer
layers lib lib64 libs light lightning linear lit llama llm llms load loader local locks log logger logging logits logs lora loss losses lr m machine
main make map mask math matmul max mem memory merge message meta metadata metric metrics micro min mini mix mixed mlp mnt model modeling models
module modules moe monitor mp mpi multi multiprocess n name nccl net network networks new nn no node nodes norm notebook notebooks null num numpy
o of old one online offline op ops opt optim optimizer optimizers or out output outputs p packages pad parallel param params parse part patch
path pipe pipeline pipelines pkg plan plot plugin plugins policy pool pos post ppo pre precision predict preprocess preprocessing pretrain pretrained print
process processed processor prod profile profiler profiling program project projects prompt proxy pt pth py python pytorch q queue r rag rand random rank ranks raw
ray rdzv read reader recipe recipes ref reference reg registry release report repo repos reproduce request res reserved resnet result results resume reward rl rlhf
root rot run runner runners runs runtime s sample sampler samples sampling save saved scale sched schedule scheduler scheduling schema scratch script
scripts sdk search sec seed segment segments select self seq sequence server service set setting settings setup sft shape shard sharded shards share
shared shell shm shuffle single singularity site size slurm small snapshot snapshots software source spawn speech split splits src srun ssd
stable stage start state states stats status std stderr stdin stdout step steps storage store strategy stream style submit submission sub
summary sweep sweeps sync sys system t table task tasks tb temp template templates tensor tensorboard tensors test tests text tf tfevents thread time tmp to
token tokenizer tokenizers tokens tool tools torch torchelastic torchrun total tp trace traces track tracker train trained trainer trainers training transform transformer
transformers transforms trial trials triton tune tuning tutorial tutorials type types u update use user users usr util utils v val valid validate
validation value values var venv version versions video vision vit vllm vlm vocab volume volumes w wandb warmup weight weights win wikitext with work
worker workers working workspace workspaces world wrap wrapper x xla y yaml z zero zero1 zero2 zero3 zip mnist cifar cifar10 cifar100 coco openwebtext c4 pile
megatron nemo mamba qwen mistral mixtral gemma falcon bloom t5 clip whisper unet vae gan dit sd sdxl yolo swin segformer deit dino beit wav2vec hubert rope rmsnorm
layernorm softmax gelu relu silu swiglu lm causal masked next prev simple tiny medium big huge xl xxl hello oom nan leak crash failing broken fix fixed first second
miniconda miniconda3 anaconda anaconda3 mambaforge miniforge miniforge3 conda3 micromamba pyenv poetry pip uv wheels downloads documents desktop library
application support nvidia amd rocm intel hip tpu opencl oneapi jovyan ubuntu kaggle colab sagemaker azureml databricks gcp aws azure spool slurmd slurm_script lustre gpfs nfs fsx efs
s3 gs hdfs dbfs nvme raid disk disks drive archive archives backups public private group groups team teams lab labs staging prod production proj prj homes
allocate allocating allocation allocations attempted failure failures failed killed killing process processes running waiting memory exception exceptions traceback
unable cannot could connection refused reset closed abort aborted watchdog communicator barrier reduce scatter broadcast available unavailable required missing
unexpected invalid illegal access address segmentation fault bus illegal instruction stopped starting started finished complete completed interrupted cancelled
preempted limit exceeded usage capacity reserved fragmentation expandable requested warning warnings information notice deprecated future research science learning
intelligence computing scientific analysis engineering development physics biology chemistry medical health security finance
smi dmesg sacct scontrol squeue sinfo syslog journal journalctl kern messages retry retries spy gdb strace top htop ps free df vmstat ibstat nvlink dcgm dcgmi xid ecc bug interface events
kubectl describe pod pods previous rerun restart before after again pid pids memory cuobjdump lspci numa topo flight recorder faulthandler stack stacks trainer_state watchdog heartbeat
node_log error_file pyspy slurmctld health rocm amdsmi bugreport cgroup oom_kill meminfo limits ulimit console stdio std joblog logfile
inquest inquests record records boundary verify baseline overfit ablation ablations sanity smoke unit integration e2e conftest manage wsgi setup
`)

// people are account names that every such machine has.
var people = setOf(`root user users admin administrator ubuntu debian centos fedora ec2-user runner jovyan nobody daemon www-data sagemaker-user azureuser opc cloud-user
vagrant docker slurm munge nvidia jupyter coder vscode node postgres mysql git ray airflow hadoop spark test guest default public shared all me you none null unknown system
unset true false name owner group assistant tool human bot model`)

// libraries are packages whose files are public; what stands below them stays as it is.
var libraries = setOf(`arrow aten c10 c10d tensorpipe gloo ucx nccl cutlass cub thrust torch torchvision torchaudio torchtext torchdata torchao torchtune torchtitan torchrec torchmetrics torchelastic functorch triton transformers accelerate
deepspeed lightning pytorch_lightning lightning_fabric lightning_utilities fairscale fairseq fairseq2 megatron megatron_core transformer_engine apex nemo flash_attn flash_attn_interface
xformers bitsandbytes peft trl datasets evaluate diffusers tokenizers safetensors sentencepiece huggingface_hub timm monai mmcv mmengine mmdet mmseg detectron2 fvcore
iopath hydra omegaconf numpy scipy pandas sklearn matplotlib pil cv2 wandb tensorboard tensorboardx tensorflow keras tf_keras jax jaxlib flax optax orbax haiku t5x maxtext
colossalai horovod ray vllm sglang tensorrt tensorrt_llm onnx onnxruntime composer streaming llmfoundry axolotl unsloth unsloth_zoo verl openrlhf mlflow comet_ml
neptune clearml aim swanlab dvclive trackio click typer fire absl tqdm rich yaml requests urllib3 aiohttp asyncio concurrent multiprocessing threading importlib runpy pickle
json logging socket subprocess http ssl pyarrow polars duckdb fsspec s3fs gcsfs psutil pynvml nvidia cupy numba dask distributed einops gradio fastapi uvicorn pydantic
starlette pytest pluggy _pytest ipykernel ipython jupyter_client notebook traitlets tornado zmq submitit dask_cuda cudf cuml rmm ninja cffi setuptools pip wheel pkg_resources
open_clip clip whisper espnet speechbrain gymnasium gym stable_baselines3 torch_geometric dgl ogb spconv kornia albumentations webdataset ffcv mosaicml`)

// roots are first segments of absolute paths that say nothing of whose the machine is.
var roots = setOf(`home users usr lib lib64 bin sbin proc sys dev etc boot run var opt tmp root mnt media data datasets dataset scratch work workspace content kaggle nfs lustre gpfs
fsx shared share project projects storage efs ssd nvme raid volumes volume dbfs srv app code src cluster hdd disk beegfs weka vast ceph cephfs s3 gcs gs gfs net global local apps
software models checkpoints output outputs logs log results private cm install sw ptmp pscratch localscratch slurm export raid0 fast tank zfs panfs bb pfs hpc opt databricks inquest`)

// systemRoots are those below which all names are the system's.
var systemRoots = setOf(`usr lib lib64 bin sbin proc sys dev etc boot run`)

// publicHosts are sites and, below them, folders that everybody knows; a sub-domain counts as its
// site. An address below one that is listed with a slash must begin with what follows it.
var publicHosts = strings.Fields(`pytorch.org docs.pytorch.org docs.nvidia.com developer.nvidia.com nvidia.com docs.wandb.ai docs.python.org python.org pypi.org files.pythonhosted.org docs.ray.io docs.mosaicml.com
huggingface.co/docs huggingface.co/transformers github.com/pytorch github.com/huggingface github.com/nvidia github.com/NVIDIA github.com/microsoft github.com/deepspeedai github.com/Lightning-AI github.com/vllm-project github.com/google github.com/jax-ml
github.com/openai github.com/ray-project github.com/Dao-AILab github.com/facebookresearch github.com/bitsandbytes-foundation github.com/TimDettmers github.com/numpy github.com/inquest-dev github.com/triton-lang github.com/tensorflow github.com/wandb github.com/mlflow
docs.github.com stackoverflow.com lightning.ai/docs pytorch-lightning.readthedocs.io readthedocs.io www.tensorflow.org tensorflow.org jax.readthedocs.io numpy.org scipy.org arxiv.org en.wikipedia.org slurm.schedmd.com kubernetes.io docs.docker.com
docs.anaconda.com conda.anaconda.org repo.anaconda.com www.python.org wandb.me docs.aws.amazon.com cloud.google.com learn.microsoft.com errors.pydantic.dev download.pytorch.org rocm.docs.amd.com ollama.com vllm.ai docs.vllm.ai www.deepspeed.ai deepspeed.ai json-schema.org www.w3.org www.apache.org apache.org opensource.org gnu.org example.com example.org`)

// services are hosts that many use: their name stays, what is below it does not.
var services = strings.Fields(`github.com gitlab.com bitbucket.org huggingface.co wandb.ai api.wandb.ai hf.co app.neptune.ai comet.com www.comet.com swanlab.cn app.clear.ml s3.amazonaws.com storage.googleapis.com kaggle.com www.kaggle.com docker.io ghcr.io quay.io nvcr.io gcr.io public.ecr.aws discuss.pytorch.org forums.developer.nvidia.com localhost`)

// topLevels are last labels of names of hosts; riskyLevels are those that are also words of code.
var (
	topLevels   = setOf(`com org edu gov mil int de fr uk ch cn jp kr nl se no fi dk pl cz at be es pt it eu us ca au nz br mx ru in sg hk tw il za ae sa tr gr ie hu ro internal lan intra intranet corp hpc cluster cloud private domain ac home arpa dev`)
	riskyLevels = setOf(`net local io ai co me to is id app info tech run live grid node svc`)
)

// extensions are endings of names of files, which stay.
var extensions = setOf(`py pyc pyx pyi ipynb sh bash zsh slurm sbatch c cc cpp cxx cu cuh h hpp hip rs go js ts java scala jl lua r rb pl
yaml yml json jsonl json5 toml ini cfg conf env txt md rst csv tsv log out err stdout stderr xml html
pt pth bin safetensors ckpt ckp onnx gguf npz npy h5 hdf5 pkl pickle msgpack parquet arrow feather tfrecord tfrecords lmdb mdb db sqlite wandb tfevents idx mds
gz zst xz bz2 zip tar tgz lz4 so dll dylib a o whl egg lock pid sock tmp bak part index
jpg jpeg png gif bmp webp tiff wav mp3 flac ogg mp4 avi mkv mov nii dcm model vocab bpe spm zarr trace nsys-rep qdrep prof core dmp`)

// A set is a set of words, made at its first use.
type set struct {
	words string
	once  sync.Once
	m     map[string]bool
}

func setOf(words string) *set { return &set{words: words} }

func (s *set) has(word string) bool {
	s.once.Do(func() {
		s.m = map[string]bool{}
		for _, w := range strings.Fields(s.words) {
			s.m[w] = true
		}
	})
	return s.m[word]
}
