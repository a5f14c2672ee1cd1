#!/usr/bin/env bash
# Measures how fast TensorBoard event files are read, beside TensorBoard's own Python loader, on this machine.
#
#   scripts/bench/tfevents.sh [-n ROUNDS] [-s SCALARS] [-d DIR] [FILE...]
#
#   -n ROUNDS   rounds; the readers run once in each, in turn (3)
#   -s SCALARS  of the generated files: simple values, as torch writes them, and tensors (1000000)
#   -d DIR      where these are made, and kept; otherwise a temporary folder, removed at the end
#   FILE        measure these instead
#
# Ours checks all checksums, finds the series, and keeps what a diagnosis needs, on one processor. The yardsticks are
# event_file_loader, which decodes the events and does nothing with them, and EventAccumulator, which keeps all
# scalars (size_guidance 0). The table gives medians of millions of scalars for each second of CPU (user + system time
# of the whole process less that of one that only starts), and the median of the ratios of the rounds; the page
# cache is warm. Judge by the ratios. Needs bash, go and a python3 with tensorboard (PYTHON names another).
set -euo pipefail
export LC_ALL=C

rounds=3 scalars=1000000 dir='' python=${PYTHON:-python3}
while getopts 'n:s:d:h' option; do
	case $option in
	n) rounds=$OPTARG ;;
	s) scalars=$OPTARG ;;
	d) dir=$OPTARG ;;
	*)
		sed -n '2,/^set /{s/^# \{0,1\}//;/^set /d;p}' "$0"
		[ "$option" = h ] && exit 0 || exit 2
		;;
	esac
done
shift $((OPTIND - 1))
files=()
for f in "$@"; do files+=("$(realpath "$f")"); done
if ! "$python" -c 'import tensorboard' 2>/dev/null; then
	echo 'tfevents.sh: skipped: the tensorboard package is the yardstick and is not installed' >&2
	exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -n "$dir" ]; then
	mkdir -p "$dir"
	dir=$(realpath "$dir")
else
	dir=$work
fi
cd "$(dirname "$0")/../.."

go test -c -o "$work/tfevents.test" ./internal/reader/tfevents
if [ ${#files[@]} -eq 0 ]; then
	for kind in simple tensor; do
		file=$dir/$kind-$scalars.tfevents
		[ -e "$file" ] || TFEVENTS_MAKE=$file TFEVENTS_KIND=$kind TFEVENTS_SCALARS=$scalars "$work/tfevents.test" -test.run '^TestMakeFile$' >/dev/null
		files+=("$file")
	done
fi
"$python" - "$rounds" "$work/tfevents.test" "${files[@]}" <<'PY'
import os, re, statistics, subprocess, sys, tempfile

rounds, ours = int(sys.argv[1]), sys.argv[2]
LOAD = """import collections, sys
from tensorboard.backend.event_processing import event_file_loader as l
collections.deque(l.LegacyEventFileLoader(sys.argv[1]).Load(), 0)"""
KEEP = """import sys
from tensorboard.backend.event_processing import event_accumulator as a
a.EventAccumulator(sys.argv[1], size_guidance=dict.fromkeys(a.DEFAULT_SIZE_GUIDANCE, 0)).Reload()"""


def measure(args, **env):
    with tempfile.TemporaryFile() as out:
        p = subprocess.Popen(args, stdout=out, stderr=subprocess.DEVNULL, env={**os.environ, **env})
        _, status, used = os.wait4(p.pid, 0)
        out.seek(0)
        text = out.read().decode()
    if status:
        sys.exit("tfevents.sh: %s failed: %s" % (args[0], text))
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, text


def own(name):
    return measure([ours, "-test.v", "-test.run", "^TestReadFile$"], TFEVENTS=name, GOMAXPROCS="1")


def python(code, name):
    return measure([sys.executable, "-c", code, name])


print("load average %.1f %.1f %.1f on %d processors" % (*os.getloadavg(), os.cpu_count()))
print("%-24s %9s   %s" % ("file", "scalars", "million scalars a second of CPU: ours / loader = ratio / accumulator = ratio; peak MiB: ours / accumulator"))
empty = tempfile.NamedTemporaryFile(suffix=".tfevents")
for name in sys.argv[3:]:
    with open(name, "rb") as f:
        while f.read(1 << 20):
            pass
    rows, n = [], 0
    for _ in range(rounds):
        row = []
        for run in (own, lambda x: python(LOAD, x), lambda x: python(KEEP, x)):
            idle, full = run(empty.name), run(name)
            if run is own:
                n = int(re.search(r"(\d+) scalars", full[2]).group(1))
            row.append((n / max(full[0] - idle[0], 1e-6) / 1e6, full[1]))
        rows.append(row)
    speed = [statistics.median(r[i][0] for r in rows) for i in range(3)]
    ratio = [statistics.median(r[0][0] / r[i][0] for r in rows) for i in (1, 2)]
    peak = [statistics.median(r[i][1] for r in rows) for i in (0, 2)]
    print("%-24s %9d   %.2f / %.4f = %.0fx / %.4f = %.0fx; %.0f / %.0f" % (os.path.basename(name)[-24:], n, speed[0], speed[1], ratio[0], speed[2], ratio[1], *peak))
print("load average %.1f %.1f %.1f" % os.getloadavg())
PY
