#!/usr/bin/env bash
# Measures what metric lines cost on this machine.
#
#   scripts/bench/metrics.sh [-n ROUNDS] [-l LOG] [-b BINARY]
#
#   -n ROUNDS  rounds; the least figure of all counts (20)
#   -l LOG     a log to diagnose as well, in turn with wc -l
#   -b BINARY  the inquest to do that with (built here otherwise)
#
# The first table gives nanoseconds for a line of each format once it is found, and
# for a number of each form; the least of all rounds is the one that other
# processes disturbed least. With a log, the second gives the median of
# the CPU time (user + system) and of its ratio to wc -l in the same round, with
# GOMAXPROCS=1 and a warm page cache. Needs bash, awk and go.
set -euo pipefail
export LC_ALL=C

rounds=20 log='' binary=''
while getopts 'n:l:b:h' option; do
	case $option in
	n) rounds=$OPTARG ;;
	l) log=$(realpath "$OPTARG") ;;
	b) binary=$(realpath "$OPTARG") ;;
	*)
		sed -n '2,/^set /{s/^# \{0,1\}//;/^set /d;p}' "$0"
		[ "$option" = h ] && exit 0 || exit 2
		;;
	esac
done
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

go test -c -o "$dir/ranklog.test" ./internal/reader/ranklog
"$dir/ranklog.test" -test.run '^$' -test.bench '^Benchmark(MetricLine|Number)$' -test.benchtime 4096x -test.count "$((8 * rounds))" -test.cpu 1 |
	awk '/^Benchmark/ { sub(/^Benchmark/, "", $1); if (!($1 in least)) order[++n] = $1; if (!($1 in least) || $3 < least[$1]) least[$1] = $3 }
		END { for (i = 1; i <= n; i++) printf "%-24s %8.1f ns\n", order[i], least[order[i]] }'

[ -n "$log" ] || exit 0
if [ -z "$binary" ]; then
	binary=$dir/inquest
	go build -o "$binary" ./cmd/inquest
fi
# cpu COMMAND… prints the seconds of user and system time of a command.
cpu() {
	local TIMEFORMAT='%U %S'
	{ time "$@" >/dev/null 2>/dev/null; } 2>&1 | awk '{ print $1 + $2 }'
}
wc -l "$log" >/dev/null
for ((i = 0; i < rounds; i++)); do
	w=$(cpu wc -l "$log")
	d=$(GOMAXPROCS=1 cpu "$binary" diagnose "$log")
	echo "$w $d"
done | awk '
	function median(a, n) { asort_(a, n); return a[int((n + 1) / 2)] }
	function asort_(a, n,  i, j, x) { for (i = 2; i <= n; i++) { x = a[i]; for (j = i - 1; j > 0 && a[j] > x; j--) a[j + 1] = a[j]; a[j + 1] = x } }
	$1 > 0 { w[++n] = $1; d[n] = $2; r[n] = $2 / $1 }
	END { printf "\nwc -l %.3f s, diagnose %.3f s, ratio %.2f (medians of %d)\n", median(w, n), median(d, n), median(r, n), n }'
