#!/usr/bin/env bash
# Measures how fast memory snapshots are read, beside CPython's pickle.load, on this machine.
#
#   scripts/bench/snapshots.sh [-n ROUNDS] [-e ENTRIES] [-u ENTRIES] [-d DIR] [FILE...]
#
#   -n ROUNDS   rounds; both readers run once in each, in turn (5)
#   -e ENTRIES  of the generated snapshot whose stacks are shared (1000000, about 200 MB; 0 leaves it out)
#   -u ENTRIES  of the one in which nothing is shared (150000, about 380 MB; 0 leaves it out)
#   -d DIR      where these are made, and kept; otherwise a temporary folder, removed at the end
#   FILE        measure these instead
#
# The table gives medians, and the median of the ratios of the rounds. CPU is user + system time and
# peak the resident memory of the whole process; the page cache is warm. Judge by the ratios of
# CPU: wall time is that of a machine with other work. Both only load. Needs bash, python3 and go.
set -euo pipefail
export LC_ALL=C

rounds=5 shared=1000000 unshared=150000 dir=''
while getopts 'n:e:u:d:h' option; do
	case $option in
	n) rounds=$OPTARG ;;
	e) shared=$OPTARG ;;
	u) unshared=$OPTARG ;;
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
if ! command -v python3 >/dev/null; then
	echo 'snapshots.sh: skipped: python3 is the yardstick and is not installed' >&2
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

go test -c -o "$work/memsnap.test" ./internal/reader/memsnap
if [ ${#files[@]} -eq 0 ]; then
	for kind in shared unshared; do
		n=${!kind}
		[ "$n" -gt 0 ] || continue
		[ -e "$dir/$kind-$n.pickle" ] || python3 internal/reader/memsnap/testdata/tools/make.py "$kind" "$dir/$kind-$n.pickle" "$n"
		files+=("$dir/$kind-$n.pickle")
	done
fi
python3 - "$rounds" "$work/memsnap.test" "${files[@]}" <<'PY'
import os, statistics, subprocess, sys, time

rounds, ours = int(sys.argv[1]), sys.argv[2]
LOAD = "import pickle, sys; pickle.load(open(sys.argv[1], 'rb'))"


def measure(args, **env):
    began = time.monotonic()
    p = subprocess.Popen(args, stdout=subprocess.DEVNULL, env={**os.environ, **env})
    _, status, used = os.wait4(p.pid, 0)
    if status:
        sys.exit("snapshots.sh: %s failed" % args[0])
    return time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


print("load average %.1f %.1f %.1f on %d processors" % (*os.getloadavg(), os.cpu_count()))
print("%-28s %8s %22s %22s %24s" % ("file", "MB", "wall s  ours / python", "CPU s  ours / python", "peak MiB  ours / python"))
for name in sys.argv[3:]:
    with open(name, "rb") as f:
        while f.read(1 << 20):
            pass
    both = [(measure([ours, "-test.run", "^TestDecodeFile$"], SNAPSHOT=name), measure([sys.executable, "-c", LOAD, name])) for _ in range(rounds)]
    cells = []
    for i in range(3):
        a, b = (statistics.median(pair[k][i] for pair in both) for k in (0, 1))
        cells.append("%.2f / %.2f = 1/%.1f" % (a, b, statistics.median(y[i] / x[i] for x, y in both)))
    print("%-28s %8.0f %22s %22s %24s" % (os.path.basename(name)[-28:], os.path.getsize(name) / 1e6, *cells))
print("load average %.1f %.1f %.1f" % os.getloadavg())
PY
