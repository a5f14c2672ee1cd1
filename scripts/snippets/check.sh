#!/usr/bin/env bash
# Looks the Python of the encyclopedia's entries up in a Python that has torch: every name
# of a module's must exist there, every call take its arguments, and what says that it runs
# on a CPU is run. Packages that are not installed are named and left out.
#
#   scripts/snippets/check.sh [PYTHON]
#
# PYTHON may also stand in the environment, under that name. Exit status 75: PYTHON has no torch.
set -euo pipefail
python=${1:-${PYTHON:-}}
[ -n "$python" ] || { sed -n '2,8p' "$0" >&2; exit 2; }
python=$(command -v "$python") || { echo "no Python at $python" >&2; exit 2; }
case $python in /*) ;; *) python=$PWD/$python ;; esac
cd "$(dirname "$0")/../.."
"$python" -c 'import torch' 2>/dev/null || { echo "$python has no torch" >&2; exit 75; }
INQUEST_PYTHON=$python go test ./internal/catalog -run 'TestSnippetsPython$' -count=1 -v
