#!/usr/bin/env bash
# Tries inquest mcp with a second, independent client, and the skill with the reference
# validator; see README.md beside this file.
#
#     scripts/mcp/run.sh INQUEST [FOLDER] [MIB] [PYTHON]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
inquest=$(realpath "$1")
work=${2:-}
mib=${3:-1024}
python=${4:-${PYTHON:-}}
if [ -z "$work" ]; then
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
fi
mkdir -p "$work"
work=$(realpath "$work")
if [ -z "$python" ]; then
	python=$work/venv/bin/python
	if ! { python3 -m venv "$work/venv" && timeout 600 "$python" -m pip install -q -r "$here/requirements.txt"; } >"$work/pip.txt" 2>&1; then
		tail -n 3 "$work/pip.txt"
		exit 75
	fi
fi
"$python" -m skills_ref.cli validate "$root/skills/inquest"
XDG_STATE_HOME=$work/state "$python" "$here/check.py" "$inquest" "$root" "$work" "$mib"
