#!/usr/bin/env bash
# Measures how fast inquest reads, beside wc -l and rg, on this machine.
#
#   scripts/bench/scan.sh [-s MIB] [-n ROUNDS] [-f FILES] [-l LOG] [-d DIR]
#
#   -s MIB     size of the generated log (1024)
#   -n ROUNDS  rounds; every command runs once in each, in turn (5)
#   -f FILES   foreign files in the folder that is walked (100000; 0 leaves it out)
#   -l LOG     measure on this log instead of a generated one
#   -w MIB     word-rich text beside the log (96; 0 leaves it out)
#   -d DIR     work in DIR and keep it; otherwise a temporary folder, removed at the end
#
# The table gives medians. CPU is user + system time of the whole process, with
# GOMAXPROCS=1 for Go programs; the page cache is warm. Judge by the ratios: the
# seconds are those of one machine on one day. Rows that end in avx512, avx2 or go
# use those kernels; what the processor lacks is left out. The places of the
# literals are trained first, on other text than is measured. Needs bash, awk and
# go; rg (ripgrep) and GNU time add their columns where they are installed.
set -euo pipefail
export LC_ALL=C

size=1024 rounds=5 files=100000 log='' words=96 dir=''
while getopts 's:n:f:l:w:d:h' option; do
	case $option in
	s) size=$OPTARG ;;
	n) rounds=$OPTARG ;;
	f) files=$OPTARG ;;
	l) log=$(realpath "$OPTARG") ;;
	w) words=$OPTARG ;;
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
note() { echo "scan.sh: $*" >&2; }

# generate MIB OUT writes a log of metric lines, collective chatter and progress
# bars, with a failure now and then: 8 MiB from awk, repeated.
generate() {
	local mib=$1 out=$2 block=$dir/block.log
	awk 'BEGIN {
		srand(7)
		for (step = 1; n < 8388608; step++) {
			r = rand()
			if (r < .3) s = sprintf("{\047loss\047: %.4f, \047grad_norm\047: %.12f, \047learning_rate\047: %.12g, \047epoch\047: %.2f}\n", 2 + rand(), rand(), rand() / 50000, step / 5000)
			else if (r < .45) s = sprintf(" iteration %8d/  500000 | consumed samples: %12d | elapsed time per iteration (ms): %.1f | lm loss: %.6E | grad norm: %.3f |\n", step, step * 1024, 5000 * rand(), 2 + rand(), rand())
			else if (r < .7) s = sprintf("node-%02d:%d:%d [%d] NCCL INFO Channel %02d/0 : %d[%d] -> %d[%d] via P2P/IPC\n", rand() * 64, 4000 + rand() * 9, 5000 + rand() * 9, rand() * 8, rand() * 24, rand() * 8, rand() * 8, rand() * 8, rand() * 8)
			else if (r < .98) s = sprintf("2026-03-04 %02d:%02d:%02d,%03d - INFO - trainer - step=%d tokens/s=%.1f mem=%.1fGB data_time=%.4fs\n", rand() * 24, rand() * 60, rand() * 60, rand() * 1000, step, rand() * 99999, rand() * 80, rand())
			else { s = ""; for (i = 0; i < 30; i++) s = s sprintf("\rEpoch 3:  %2d%%|####      | %d/9000 [%02d:%02d<1:02:03, %5.2fit/s, loss=%.3g]", i, step + i, rand() * 60, rand() * 60, 3 + rand(), 2 + rand()); s = s "\n" }
			printf "%s", s
			n += length(s)
		}
		print "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.25 GiB. GPU 3 has a total capacity of 39.39 GiB of which 512.00 MiB is free."
	}' >"$block"
	for ((i = 0; i < (mib + 7) / 8; i++)); do cat "$block"; done >"$out"
	truncate -s "${mib}M" "$out"
}

generators=$root/../shared/tools/gen
if [ -n "$log" ]; then
	note "log: $log"
else
	log=$dir/big.log
	if [ -f "$log" ]; then
		note "log: $log, made by an earlier run"
	elif [ -f "$generators/gen_logs.py" ] && command -v python3 >/dev/null; then
		note "log: $size MiB by ../shared/tools/gen/gen_logs.py"
		python3 "$generators/gen_logs.py" --out "$log" --size $((size << 20))
	else
		note "log: $size MiB by the small generator in this script (../shared/tools/gen is not here): few templates, so filters look better than on real logs"
		generate "$size" "$log"
	fi
fi

literals=$dir/lit.txt
if [ -f "$generators/patterns.py" ] && command -v python3 >/dev/null; then
	python3 "$generators/patterns.py" "$dir" >/dev/null
	note "literals: $(wc -l <"$literals") by ../shared/tools/gen/patterns.py"
else
	sed -n "s/^ *-\{0,1\} *literal: *//p" "$root"/encyclopedia/lines/*.yaml | sed "s/^'\(.*\)'\$/\1/; s/^\"\(.*\)\"\$/\1/; s/''/'/g" | sort -u >"$literals"
	note "literals: $(wc -l <"$literals") of encyclopedia/lines"
fi
awk 'length($0) >= 8' "$literals" >"$dir/long.txt"

(cd "$root" && go test -c -o "$dir/scan.test" ./internal/scan)
inquest=$dir/inquest
if ! (cd "$root" && CGO_ENABLED=0 go build -o "$inquest" ./cmd/inquest) 2>"$dir/build.err"; then
	note "cmd/inquest does not build; the rows that need it are left out: $(head -1 "$dir/build.err")"
	inquest=''
fi
export GOMAXPROCS=1

# Words: documents, and Python and Go sources, a third each, four times over, because
# starting a process would weigh too much on one copy.
text=$dir/words.txt
if [ "$words" -gt 0 ] && [ ! -f "$text" ]; then
	note "word-rich text: up to $words MiB of /usr/share/doc, Python and Go sources, four times"
	part=$((words * 1048576 / 3))
	sources() { find "$@" -type f -size -1024k -print0 2>/dev/null | sort -z | xargs -0 cat 2>/dev/null | head -c "$part" || true; }
	{
		sources /usr/share/doc ! -name '*.gz'
		sources /usr/lib/python3* -name '*.py'
		sources "$(go env GOROOT)/src" -name '*.go'
	} >"$dir/once.txt"
	cat "$dir/once.txt" "$dir/once.txt" "$dir/once.txt" "$dir/once.txt" >"$text"
	rm "$dir/once.txt"
fi

note "training the places of the literals"
for set in "$literals" "$dir/long.txt"; do
	(cd "$root/internal/scan" && INQUEST_BENCH_LITERALS=$set INQUEST_BENCH_PLAN=$set.plan "$dir/scan.test" -test.run '^TestTrainLiterals$' >/dev/null)
done

if [ -n "$inquest" ]; then
	generate 1 "$dir/small.log"
	if [ "$files" -gt 0 ]; then
		walk=$dir/walk
		if [ ! -d "$walk" ]; then
			note "folder: $files foreign files, a sparse 200 GiB checkpoint, one log"
			mkdir -p "$walk"
			folders=$(((files + 999) / 1000))
			for ((i = 0; i < folders; i++)); do
				mkdir "$walk/shard_$i"
				n=$((files - i * 1000 < 1000 ? files - i * 1000 : 1000))
				awk -v n=$((n * 3)) 'BEGIN { for (i = 0; i < n; i++) print "0.125,17,cat," i }' |
					split -l 3 -a 4 -d --additional-suffix=.csv - "$walk/shard_$i/part_"
			done
			truncate -s 200G "$walk/checkpoint.pt"
			cp "$dir/small.log" "$walk/train.log"
		fi
	fi
fi

gnutime=''
if command time -f '%M' true >/dev/null 2>&1; then gnutime=yes; else note "GNU time is not installed: no memory column"; fi

# measure ROW COMMAND... runs the command and appends "cpu wall rss_kib" to the
# row's file. Its exit status is not looked at: rg and inquest give 1 for a finding.
measure() {
	local row=$1 TIMEFORMAT='%U %S %R'
	shift
	{ time { if [ -n "$gnutime" ]; then command time -q -o "$dir/rss" -f %M "$@"; else "$@"; fi >/dev/null 2>"$dir/$row.err" || true; }; } 2>"$dir/times"
	[ -n "$gnutime" ] || echo 0 >"$dir/rss"
	awk -v rss="$(tail -1 "$dir/rss")" '{ print $1 + $2, $3, rss }' "$dir/times" >>"$dir/$row.runs"
}

# bench ROW FILE LITERALS NAME [KERNEL] runs one benchmark of internal/scan once over
# the file, with the best kernel unless one is named.
bench() {
	local plan=$3.plan
	[ "$4" != program ] || plan='' # the program has its own
	INQUEST_BENCH_FILE=$2 INQUEST_BENCH_LITERALS=$3 INQUEST_BENCH_PLAN=$plan INQUEST_BENCH_KERNEL=${5-} \
		measure "$1" "$dir/scan.test" -test.run xxx -test.bench "^BenchmarkLines\$/^$4\$" -test.benchtime 1x
}

# Which kernels are there? A benchmark of one that is not says SKIP.
kernels=''
for kernel in avx512 avx2 go; do
	if ! INQUEST_BENCH_FILE=/dev/null INQUEST_BENCH_KERNEL=$kernel "$dir/scan.test" -test.v -test.run xxx -test.bench '^BenchmarkLines$/^count$' -test.benchtime 1x 2>&1 | grep -q SKIP; then
		kernels+=" $kernel"
	else
		note "no $kernel on this processor"
	fi
done

rm -f "$dir"/*.runs
cat "$log" >/dev/null
for ((round = 0; round < rounds; round++)); do
	measure wc wc -l "$log"
	if command -v rg >/dev/null; then measure rg rg -c -F -f "$literals" "$log"; fi
	bench count "$log" "$literals" count
	for kernel in $kernels; do
		bench "all-$kernel" "$log" "$literals" signatures "$kernel"
		bench "long-$kernel" "$log" "$dir/long.txt" signatures "$kernel"
		bench "program-$kernel" "$log" "$literals" program "$kernel"
	done
	bench metrics "$log" "$literals" metrics
	if [ "$words" -gt 0 ]; then
		measure wc-words wc -l "$text"
		if command -v rg >/dev/null; then measure rg-words rg -c -F -f "$literals" "$text"; fi
		for kernel in $kernels; do
			bench "words-all-$kernel" "$text" "$literals" signatures "$kernel"
			bench "words-long-$kernel" "$text" "$dir/long.txt" signatures "$kernel"
			bench "words-program-$kernel" "$text" "$literals" program "$kernel"
		done
	fi
	if [ -n "$inquest" ]; then
		measure diagnose "$inquest" diagnose --format json "$log"
		measure small "$inquest" diagnose --format json "$dir/small.log"
		if [ "$files" -gt 0 ]; then measure walk "$inquest" diagnose --format json "$walk"; fi
	fi
done

# median FILE COLUMN
median() { sort -n -k"$2,$2" "$1" | awk -v c="$2" '{ v[NR] = $c } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
# cpu ROW gives the median CPU of a row, or 0 for one that was not measured.
cpu() { if [ -f "$dir/$1.runs" ]; then median "$dir/$1.runs" 1; else echo 0; fi; }

echo
echo "$(stat -c %s "$log") bytes of log, $rounds rounds, $(nproc) cores, $(go version | cut -d' ' -f3)"
printf '%-40s %8s %8s %9s %9s %9s  %s\n' what 'CPU s' 'wall s' 'x wc CPU' 'rg / CPU' 'peak MiB' goal

# row ROW WHAT GOAL [WC RG] prints a row with its ratios to those of the rows WC and
# RG.
row() {
	local file=$dir/$1.runs
	[ -f "$file" ] || return 0
	awk -v name="$2" -v goal="$3" -v cpu="$(median "$file" 1)" -v wall="$(median "$file" 2)" -v rss="$(median "$file" 3)" -v wc="$(cpu "${4:-none}")" -v rg="$(cpu "${5:-none}")" 'BEGIN {
		a = wc > 0 ? sprintf("%.2f", cpu / wc) : "-"
		b = (rg > 0 && cpu > 0) ? sprintf("%.1f", rg / cpu) : "-"
		printf "%-40s %8.3f %8.3f %9s %9s %9s  %s\n", name, cpu, wall, a, b, (rss > 0 ? sprintf("%.1f", rss / 1024) : "-"), goal
	}'
}
row wc 'wc -l' yardstick wc rg
row rg 'rg -c -F -f literals' yardstick wc rg
row count 'scan: lines counted' '' wc rg
row all-avx512 'scan: all literals, avx512' '<= 0.85 x wc; rg / CPU >= 10' wc rg
row all-avx2 'scan: all literals, avx2' '<= 1.25 x wc; rg / CPU >= 7' wc rg
row all-go 'scan: all literals, go' '' wc rg
row long-avx512 'scan: literals >= 8 bytes, avx512' '<= 0.85 x wc; rg / CPU >= 10' wc rg
row long-avx2 'scan: literals >= 8 bytes, avx2' '<= 1.25 x wc; rg / CPU >= 7' wc rg
row long-go 'scan: literals >= 8 bytes, go' '<= 1.8 x wc; rg / CPU >= 5' wc rg
for kernel in $kernels; do
	row "program-$kernel" "scan: inquest's own, $kernel" '' wc rg
done
row metrics 'scan: literals, metric lines' '<= 3.5 x wc' wc rg
row wc-words 'wc -l, words' yardstick wc-words rg-words
row rg-words 'rg -c -F -f literals, words' yardstick wc-words rg-words
row words-all-avx512 'scan: all literals, words, avx512' '<= 1.5 x wc; rg / CPU >= 4.5' wc-words rg-words
row words-all-avx2 'scan: all literals, words, avx2' '<= 2.2 x wc; rg / CPU >= 4.5' wc-words rg-words
row words-long-avx512 'scan: literals >= 8, words, avx512' '<= 1.5 x wc; rg / CPU >= 4.5' wc-words rg-words
row words-long-avx2 'scan: literals >= 8, words, avx2' '<= 2.2 x wc; rg / CPU >= 4.5' wc-words rg-words
row words-long-go 'scan: literals >= 8, words, go' '<= 2.2 x wc; rg / CPU >= 4.5' wc-words rg-words
for kernel in $kernels; do
	row "words-program-$kernel" "scan: inquest's own, words, $kernel" '' wc-words rg-words
done
row diagnose 'inquest diagnose, the log' '<= 3.5 x wc; <= 64 MiB' wc rg
row small 'inquest diagnose, 1 MiB log' 'wall <= 0.03 s'
row walk "inquest diagnose, $files files" 'wall <= 3 s; <= 64 MiB'
