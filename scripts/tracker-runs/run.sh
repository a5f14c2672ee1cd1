#!/usr/bin/env bash
# Trains a tiny model into every experiment tracker at once, with the trackers' own
# packages: a run that ends and is resumed, with steps written twice, and one that is killed and
# resumed; both turn NaN. Then inquest must read from each what was logged, and the trackers' own
# readers must take the repaired copies. A third run is of transformers' Trainer, which
# hides the NaN: inquest must see it.
#
#     scripts/tracker-runs/run.sh INQUEST [FOLDER] [PYTHON]
#
# FOLDER is where all goes (a temporary one that is removed by default). PYTHON, also from the environment, has the packages of
# requirements.txt; without it a virtual environment is made in FOLDER. Exits with 75
# where the packages cannot be installed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
inquest=$(realpath "$1")
work=${2:-}
python=${3:-${PYTHON:-}}
if [ -z "$work" ]; then
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
fi
mkdir -p "$work"
work=$(realpath "$work")
if [ -z "$python" ]; then
	python=$work/venv/bin/python
	if ! { python3 -m venv "$work/venv" && timeout 900 "$python" -m pip install -q -r "$here/requirements.txt"; } >"$work/pip.txt" 2>&1; then
		tail -n 3 "$work/pip.txt"
		exit 75
	fi
fi
checks=$here/../check-repaired
failed=0

train() { # FOLDER OPTIONS...: what the trackers print goes to a file
	local out=$work/$1
	shift
	timeout 300 "$python" "$here/train.py" --out "$out" "$@" >>"$work/train.txt" 2>&1
}

quiet() { # COMMAND...: its output is shown where it fails
	"$@" >"$work/out.txt" 2>&1 || {
		echo "failed: $*"
		tail -n 5 "$work/out.txt"
		failed=1
	}
}

repair() { # RUNS SOURCE CHECK: a copy, and what the tracker's own reader says of it
	local copy=$work/repaired/$1/$2
	mkdir -p "$(dirname "$copy")"
	quiet "$inquest" tracker repair --ended "$work/$1/$2" -o "$copy"
	quiet timeout 120 "$python" "$checks/$3.py" "$work/$1/$2" "$copy"
	[ "$failed" = 1 ] || tail -n 1 "$work/out.txt"
}

train ended --inf-at 12 --to 26
train ended --nan-at 30 --from 20 --to 40
train killed --inf-at 12 --to 40 --kill-at 25 || [ $? = 137 ]
train killed --nan-at 30 --from 20 --to 40

for run in ended killed; do
	echo "== $run"
	python3 "$here/check.py" "$inquest" "$work/$run" || failed=1
	while read -r source check; do
		repair $run "$source" "$check"
	done <<-LIST
		tensorboard tensorboard
		tensorboardx tensorboard
		wandb wandb
		mlflow.db mlflow
		mlruns mlflow
		trackio trackio
		swanlog swanlab
		trainer/trainer_state.json trainer_state
		lightning_logs/run1/version_1/metrics.csv table
		run1.jsonl table
	LIST
done

echo "== hidden by a filter"
timeout 300 "$python" "$here/hf_trainer.py" --out "$work/hidden" --nan-at 25 --report-to tensorboard >>"$work/train.txt" 2>&1
"$inquest" diagnose --format json "$work/hidden/output/trainer_state.json" >"$work/hidden.json"
python3 - "$work/hidden.json" <<'PY' || failed=1
import json, sys
d = json.load(open(sys.argv[1]))
f = d["first_fault"] or sys.exit("no fault seen in the rows of a filtered NaN")
if f["class"] != "nonfinite" or f["step"] not in (25, 26):
    sys.exit(f"{f['class']} at step {f['step']} instead of nonfinite at step 25")
print(f"seen at step {f['step']}: {f['text']}")
PY
exit $failed
