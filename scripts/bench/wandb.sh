#!/usr/bin/env bash
# Measures how fast W&B logs are read on this machine, beside W&B's own reader.
#
#   scripts/bench/wandb.sh [-n ROUNDS] [-r ROWS] [-p PYTHON] [-b BINARY]
#
#   -n ROUNDS  rounds, both readers in turn in each (7)
#   -r ROWS    rows of the log, each with 20 items as wandb-core writes them (100000)
#   -p PYTHON  one with wandb 0.12 to 0.19, whose SDK has the DataStore (python3)
#   -b BINARY  the inquest to measure (built here otherwise)
#
# Gives the medians of CPU time (user + system) for items parsed with their numbers: the benchmark of the
# reader alone, inquest tracker show as a whole with GOMAXPROCS=1, and the DataStore, protobuf and json of
# Python, which read a tenth of the log. Needs bash, awk, go and that Python.
set -euo pipefail
export LC_ALL=C

rounds=7 rows=100000 python=python3 binary=''
while getopts 'n:r:p:b:h' option; do
	case $option in
	n) rounds=$OPTARG ;;
	r) rows=$OPTARG ;;
	p) python=$(command -v "$OPTARG") ;;
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

cat >"$dir/make.py" <<'END'
import math, random, sys
from wandb.proto import wandb_internal_pb2 as proto
from wandb.sdk.internal.datastore import DataStore

name, rows = sys.argv[1], int(sys.argv[2])
random.seed(1)
store = DataStore()
store.open_for_write(name)
record = proto.Record(num=1)
record.run.run_id = "bench"
store.write(record)
names = [f"train/metric_{i}" for i in range(17)]
for i in range(rows):
    record = proto.Record(num=i + 2)
    items = [("_step", str(i)), ("_runtime", repr(i * 0.251285144)), ("_timestamp", repr(1.7961e9 + i * 0.25))]
    items += [(n, repr(1 / (1 + i * 0.37 + j + random.random()))) for j, n in enumerate(names)]
    k = random.randrange(len(items))
    for key, value in items[k:] + items[:k]:
        item = record.history.item.add()
        item.nested_key.append(key)
        item.value_json = value
    record.history.step.num = i
    store.write(record)
store.close()
END
cat >"$dir/scan.py" <<'END'
import json, sys
from wandb.proto import wandb_internal_pb2 as proto
from wandb.sdk.internal.datastore import DataStore

store = DataStore()
store.open_for_scan(sys.argv[1])
n = 0
while True:
    data = store.scan_data()
    if data is None:
        break
    record = proto.Record()
    record.ParseFromString(data)
    for item in record.history.item:
        json.loads(item.value_json)
        n += 1
END
"$python" "$dir/make.py" "$dir/run-bench.wandb" "$rows"
"$python" "$dir/make.py" "$dir/tenth.wandb" "$((rows / 10))"
[ -n "$binary" ] || { binary=$dir/inquest && go build -o "$binary" ./cmd/inquest; }

# cpu COMMAND… prints the seconds of user and system time of a command.
cpu() {
	local TIMEFORMAT='%U %S'
	{ time "$@" >/dev/null 2>/dev/null; } 2>&1 | awk '{ print $1 + $2 }'
}
go test -c -o "$dir/wandb.test" ./internal/reader/wandb
for ((i = 0; i < rounds; i++)); do
	many=$(cpu "$dir/wandb.test" -test.run '^$' -test.bench '^BenchmarkRead$/^17_' -test.benchtime 21x -test.cpu 1)
	one=$(cpu "$dir/wandb.test" -test.run '^$' -test.bench '^BenchmarkRead$/^17_' -test.benchtime 1x -test.cpu 1)
	b=$(awk -v a="$many" -v b="$one" 'BEGIN { print 21 * 0.6 / (a - b) }')
	t=$(GOMAXPROCS=1 cpu "$binary" tracker show "$dir/run-bench.wandb")
	p=$(cpu "$python" "$dir/scan.py" "$dir/tenth.wandb")
	e=$(cpu "$python" -c 'from wandb.sdk.internal.datastore import DataStore')
	echo "$b $t $p $e"
done | awk -v items="$((rows * 20))" '
	function median(a, n,  i, j, x) { for (i = 2; i <= n; i++) { x = a[i]; for (j = i - 1; j > 0 && a[j] > x; j--) a[j + 1] = a[j]; a[j + 1] = x } return a[int((n + 1) / 2)] }
	{ n++; b[n] = $1; t[n] = items / 1e6 / $2; p[n] = items / 1e7 / ($3 - $4); r[n] = t[n] / p[n] }
	END {
		printf "reader alone          %7.2f M items a second of CPU\n", median(b, n)
		printf "inquest tracker show  %7.2f M items a second of CPU\n", median(t, n)
		printf "DataStore of Python   %7.2f M items a second of CPU\n", median(p, n)
		printf "tracker show is %.0f times as fast as the DataStore (median of %d rounds)\n", median(r, n), n
	}'
