#!/usr/bin/env bash
# Uses the pages of inquest serve in a headless Chromium as a person does: scripts/web/scenarios
# says what is done. No request may leave the page's origin, no error may reach the console, no
# page may be wider than its window, and axe-core must find nothing serious or critical on any of
# them, in light and dark. Pictures of all pages are left in WORK/pictures.
#
#     scripts/web/run.sh INQUEST WORK [SCENARIO...]
#
# Without names all scenarios run. PYTHON, in the environment, is an interpreter that has the packages. Exits with 75 where there is no Chromium, or where the packages
# of requirements.txt cannot be installed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
usage="usage: scripts/web/run.sh INQUEST WORK [SCENARIO...]"
inquest=$(realpath "${1:?$usage}")
mkdir -p "${2:?$usage}"
work=$(realpath "$2")
shift 2
if ! browser=$("$here/../browser.sh"); then
	echo "no Chromium here"
	exit 75
fi
python=${PYTHON:-$work/venv/bin/python}
if [ -z "${PYTHON:-}" ] && [ ! -e "$work/venv/complete" ]; then
	if ! { python3 -m venv "$work/venv" && timeout 600 "$python" -m pip install -q -r "$here/requirements.txt"; } >"$work/pip.txt" 2>&1; then
		tail -n 3 "$work/pip.txt"
		exit 75
	fi
	touch "$work/venv/complete"
fi
exec "$python" "$here/check.py" "$browser" "$inquest" "$work" "$@"
