#!/usr/bin/env bash
# Makes the logs under testdata/runs again: every folder there is one small job
# that fails (or ends well) for real on a machine without a GPU.
#
#   scripts/make-runs.sh ENV [NAME...]
#
# ENV is a folder for the virtual environments; those that exist are kept. A job's
# make.sh runs in a fresh folder beside its make.py (as train.py) and leaves its
# logs in $OUT. The host is called node1 for the job's time; paths are replaced afterwards.
# Needs root: for that name, for jobs that mount a tmpfs, for a memory cgroup (v1).
# not-compiled-with-cuda needs a CPU build of PyTorch beside it: Debian's
# python3-torch. Line numbers and steps may move a little; case.yaml says what must
# then be true, and `go test ./internal/engine -run TestRuns -update-runs` writes
# want.txt anew.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
env=$(mkdir -p "$1" && cd "$1" && pwd)
shift

if [ ! -x "$env/venv/bin/torchrun" ]; then
  python3.11 -m venv "$env/venv"
  "$env/venv/bin/pip" install --only-binary :all: torch==2.8.0 transformers==4.57.1 accelerate==1.11.0 \
    lightning==2.5.5 safetensors==0.8.0 numpy==2.4.6 wandb==0.31.0
fi
if [ ! -x "$env/v5/bin/python" ]; then # transformers 5 over the packages of the first
  python3.11 -m venv "$env/v5"
  (cd "$env"/venv/lib/python3.11/site-packages && pwd) > "$env/v5/lib/python3.11/site-packages/base.pth"
  "$env/v5/bin/pip" install --only-binary :all: transformers==5.24.0
fi
if [ ! -x "$env/jax/bin/python" ]; then
  python3.11 -m venv "$env/jax"
  "$env/jax/bin/pip" install --only-binary :all: jax==0.10.2 keras==3.15.1 tensorflow-cpu==2.21.0
fi

export BIN=$env/venv/bin BIN5=$env/v5/bin BINJ=$env/jax/bin
export CUDA_VISIBLE_DEVICES="" TF_ENABLE_ONEDNN_OPTS=0 PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1 WANDB_MODE=offline
echo "127.0.0.1 localhost node1" > "$env/hosts"
[ $# -gt 0 ] || set -- $(cd "$here/testdata/runs" && ls)
for name in "$@"; do
  from=$here/testdata/runs/$name
  [ -f "$from/make.sh" ] || continue
  job=$env/jobs/$name
  rm -rf "$job" && mkdir -p "$job"
  [ ! -f "$from/make.py" ] || cp "$from/make.py" "$job/train.py"
  rm -rf "$from/input" && mkdir -p "$from/input"
  echo "$name" >&2
  (cd "$job" && OUT=$from/input timeout 180 unshare -um bash -c '
    mount --bind "$2" /etc/hosts && hostname node1 && . "$1"' job "$from/make.sh" "$env/hosts") || true
  find "$from/input" -type f -name '*.log' -o -type f -name '*.txt' -o -type f -name '*.json' | while read -r f; do
    sed -i -e "s#$job#/home/user/$name#g" -e "s#$from/input#/home/user/$name#g" -e "s#$from/#/home/user/#g" -e "s#$env/#/opt/env/#g" \
      -e "s#$HOME/#/home/user/#g" "$f"
  done
done
