#!/usr/bin/env bash
# Proves on real trainings that run, boundary, verify and recheck do what they say (prove.py has what is
# proved): with Python alone, again with PyTorch where PYTHON or python3 can import it, and with a real
# CUDA device running out of memory where there is one; and that inquest killed at any moment loses
# nothing that it had kept (killed.py). What is not there is said as skipped.
#
#     scripts/proof/run.sh INQUEST [FOLDER] [PYTHON]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
inquest=$(realpath "$1")
work=${2:-}
python=${3:-${PYTHON:-python3}}
if [ -z "$work" ]; then
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
fi
mkdir -p "$work"
if ! [ -r /proc/self/status ]; then
	echo "skipped: no address space can be limited and measured here"
	exit 75
fi

# Python alone mostly waits, PyTorch mostly computes: both at once.
{
	"$python" "$here/prove.py" "$inquest" "$work/plain" &&
		echo "== inquest killed at random moments" &&
		"$python" "$here/killed.py" "$inquest" "$work/killed" 280
} >"$work/plain.txt" 2>&1 &
plain=$!
torch=no status=0
if "$python" -W ignore -c 'import torch' 2>/dev/null; then
	torch=yes
	"$python" "$here/prove.py" "$inquest" "$work/torch" --engine torch --only memory >"$work/torch.txt" 2>&1 || status=1
fi
wait $plain || status=1
echo "== Python alone"
cat "$work/plain.txt"
if [ $torch = no ]; then
	echo "skipped: PyTorch is not installed"
	exit $status
fi
echo "== PyTorch on the CPU"
cat "$work/torch.txt"
[ $status = 0 ] || exit $status
if "$python" -W ignore -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then
	echo "== PyTorch on a CUDA device"
	"$python" "$here/prove.py" "$inquest" "$work/cuda" --engine torch --device cuda
else
	echo "skipped: no CUDA device"
fi
