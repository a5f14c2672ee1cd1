#!/usr/bin/env bash
# Measures inquest on a job of many ranks beside cat and wc -l, on this machine.
#
#   scripts/bench/ranks.sh [-r RANKS] [-k KIB] [-n ROUNDS] [-l FOLDER] [-d DIR]
#
#   -r RANKS   rank files (1024)
#   -k KIB     size of each (1024)
#   -n ROUNDS  rounds; every command runs once in each, in turn (5)
#   -l FOLDER  measure on this folder of logs instead of a generated one
#   -d DIR     work in DIR and keep it; otherwise a temporary folder, removed at the end
#
# Every log is healthy but one, which ends in an out-of-memory error. The table
# gives medians; the page cache is warm. Judge by the ratios: the seconds are those
# of one machine on one day, and all commands use all of its cores. The verdicts of
# the folder, of its archives and of its evidence must agree. Needs bash, awk, tar, gzip and go; GNU time adds a column
# where it is installed.
set -euo pipefail
export LC_ALL=C

ranks=1024 kib=1024 rounds=5 logs='' dir=''
while getopts 'r:k:n:l:d:h' option; do
	case $option in
	r) ranks=$OPTARG ;;
	k) kib=$OPTARG ;;
	n) rounds=$OPTARG ;;
	l) logs=$(realpath "$OPTARG") ;;
	d) dir=$OPTARG ;;
	*)
		sed -n '2,/^set /{s/^# \{0,1\}//;/^set /d;p}' "$0"
		[ "$option" = h ] && exit 0 || exit 2
		;;
	esac
done

root=$(cd "$(dirname "$0")/../.." && pwd)
if [ -z "$dir" ]; then
	dir=$(mktemp -d)
	trap 'rm -rf "$dir"' EXIT
fi
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
note() { echo "ranks.sh: $*" >&2; }

# generate FOLDER writes the logs: metric lines, collective chatter and messages,
# of each rank its own.
generate() {
	awk -v ranks="$ranks" -v size=$((kib * 1024)) -v folder="$1" 'BEGIN {
		srand(11)
		for (i = 0; i < 4096; i++) noise[i] = rand()
		for (rank = 0; rank < ranks; rank++) {
			out = sprintf("%s/rank_%04d.log", folder, rank)
			n = 0
			for (step = 1; n < size - 400; step++) {
				r = noise[(step * 7 + rank) % 4096]
				v = noise[(step + rank * 13) % 4096]
				if (r < .3) s = sprintf("[rank%d]: {\047loss\047: %.4f, \047grad_norm\047: %.6f, \047learning_rate\047: %.8g, \047epoch\047: %.2f}", rank, 2 + v, v, v / 50000, step / 5000)
				else if (r < .45) s = sprintf("[rank%d]:  iteration %8d/  500000 | consumed samples: %12d | elapsed time per iteration (ms): %.1f | lm loss: %.6E | grad norm: %.3f |", rank, step, step * 1024, 5000 * v, 2 + v, v)
				else if (r < .7) s = sprintf("node-%02d:%d:%d [%d] NCCL INFO Channel %02d/0 : %d[%d] -> %d[%d] via P2P/IPC", rank / 8, 4000 + rank % 8, 5000 + rank % 8, rank % 8, v * 24, v * 8, v * 8, r * 8, r * 8)
				else s = sprintf("2026-03-04 %02d:%02d:%02d,%03d - INFO - trainer - tokens/s=%.1f mem=%.1fGB data_time=%.4fs", step / 3600 % 24, step / 60 % 60, step % 60, v * 1000, v * 99999, v * 80, v)
				print s > out
				n += length(s) + 1
			}
			if (rank == int(ranks * 2 / 3))
				print "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.25 GiB. GPU 3 has a total capacity of 39.39 GiB of which 512.00 MiB is free." > out
			close(out)
		}
	}'
}

if [ -z "$logs" ]; then
	logs=$dir/logs
	if [ ! -d "$logs" ]; then
		note "writing $ranks logs of $kib KiB"
		mkdir "$logs"
		generate "$logs"
	fi
fi
inquest=$dir/inquest
(cd "$root" && CGO_ENABLED=0 go build -o "$inquest" ./cmd/inquest)
cd "$(dirname "$logs")"
folder=$(basename "$logs")
[ -f "$dir/logs.tgz" ] || tar -cf - "$folder" | gzip -1 >"$dir/logs.tgz"

gnutime=''
if command time -f '%M' true >/dev/null 2>&1; then gnutime=yes; else note "GNU time is not installed: no memory column"; fi

# measure ROW COMMAND... runs the command and appends "cpu wall rss_kib" to the
# row's file.
measure() {
	local row=$1 TIMEFORMAT='%U %S %R'
	shift
	{ time { if [ -n "$gnutime" ]; then command time -q -o "$dir/rss" -f %M "$@"; else "$@"; fi >"$dir/$row.out" 2>"$dir/$row.err" || true; }; } 2>"$dir/times"
	[ -n "$gnutime" ] || echo 0 >"$dir/rss"
	awk -v rss="$(tail -1 "$dir/rss")" '{ print $1 + $2, $3, rss }' "$dir/times" >>"$dir/$row.runs"
}

rm -f "$dir"/*.runs
cat "$folder"/* >/dev/null
# shellcheck disable=SC2016 # expanded by the shells that are measured
for ((round = 0; round < rounds; round++)); do
	measure wc sh -c 'cat "$1"/* | wc -l' wc "$folder"
	measure diagnose "$inquest" diagnose --format json "$folder"
	measure gunzip sh -c 'gzip -dc "$1" | wc -l' gunzip "$dir/logs.tgz"
	measure archive "$inquest" diagnose --format json "$dir/logs.tgz"
	measure scan "$inquest" scan "$folder" -o "$dir/logs.inq"
	measure evidence "$inquest" diagnose --format json "$dir/logs.inq"
done

# median FILE COLUMN
median() { sort -n -k"$2,$2" "$1" | awk -v c="$2" '{ v[NR] = $c } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
wc_wall=$(median "$dir/wc.runs" 2)

echo
echo "$(find "$folder" -type f | wc -l) files, $(cat "$folder"/* | wc -c) bytes, $rounds rounds, $(nproc) cores, $(go version | cut -d' ' -f3)"
printf '%-34s %8s %8s %10s %9s  %s\n' what 'CPU s' 'wall s' 'x wc wall' 'peak MiB' goal
row() {
	awk -v name="$2" -v goal="$3" -v cpu="$(median "$dir/$1.runs" 1)" -v wall="$(median "$dir/$1.runs" 2)" -v rss="$(median "$dir/$1.runs" 3)" -v wc="$wc_wall" 'BEGIN {
		printf "%-34s %8.3f %8.3f %10.2f %9s  %s\n", name, cpu, wall, wall / wc, (rss > 0 ? sprintf("%.1f", rss / 1024) : "-"), goal
	}'
}
row wc 'cat * | wc -l' yardstick
row diagnose 'inquest diagnose, the folder' '<= 1.5 x wc; <= 128 MiB'
row gunzip 'gzip -dc | wc -l' yardstick
row archive 'inquest diagnose, one tar.gz' '<= 128 MiB'
row scan 'inquest scan' ''
row evidence 'inquest diagnose, the evidence' ''
echo "evidence: $(stat -c %s "$dir/logs.inq") bytes"

status=0
cmp "$dir/diagnose.out" "$dir/evidence.out" || { note "the evidence says something else than the logs" && status=1; }
fault() { awk '/"first_fault": \{/ { on = 1 } on && /"rank"|"line"/ { print } on && /"time"/ { exit }' "$1"; }
[ "$(fault "$dir/diagnose.out")" = "$(fault "$dir/archive.out")" ] || { note "the archive says something else than the folder" && status=1; }
exit "$status"
