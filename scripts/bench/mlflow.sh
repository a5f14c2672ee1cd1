#!/usr/bin/env bash
# Measures how fast MLflow's metrics are read from a SQLite database on this machine.
#
#   scripts/bench/mlflow.sh [-n ROUNDS] [-r ROWS] [-d DATABASE]
#
#   -n ROUNDS    rounds (5)
#   -r ROWS      rows of the database that is made (4000000)
#   -d DATABASE  one to read instead
#
# In each round, in turn: Python's sqlite3 selecting the six columns; the walk over the
# bytes of the table; reading into tracked runs from the bytes; the same with SQLite from a
# copy. The table gives the median of millions of rows for a second of CPU time (user +
# system, one thread, page cache warm) and of the ratio to Python in the same round. Needs
# bash, awk, go and python3.
set -euo pipefail
export LC_ALL=C

rounds=5 rows=4000000 store=''
while getopts 'n:r:d:h' option; do
	case $option in
	n) rounds=$OPTARG ;;
	r) rows=$OPTARG ;;
	d) store=$(realpath "$OPTARG") ;;
	*)
		sed -n '2,/^set /{s/^# \{0,1\}//;/^set /d;p}' "$0"
		[ "$option" = h ] && exit 0 || exit 2
		;;
	esac
done
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go test -c -o "$dir/mlflow.test" ./internal/reader/mlflow

if [ -z "$store" ]; then
	store=$dir/mlflow.db
	python3 - "$store" "$rows" <<'PY'
import random, sqlite3, sys
rnd, rows = random.Random(7), int(sys.argv[2])
c = sqlite3.connect(sys.argv[1])
c.executescript("""PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;
CREATE TABLE runs (run_uuid VARCHAR(32) NOT NULL, name VARCHAR(250), status VARCHAR(9), start_time BIGINT, end_time BIGINT, lifecycle_stage VARCHAR(20), experiment_id INTEGER, CONSTRAINT run_pk PRIMARY KEY (run_uuid));
CREATE TABLE metrics (key VARCHAR(250) NOT NULL, value FLOAT NOT NULL, timestamp BIGINT NOT NULL, run_uuid VARCHAR(32) NOT NULL, step BIGINT DEFAULT '0' NOT NULL, is_nan BOOLEAN DEFAULT '0' NOT NULL,
 CONSTRAINT metric_pk PRIMARY KEY (key, timestamp, step, run_uuid, value, is_nan));""")
runs = ["%032x" % rnd.getrandbits(128) for _ in range(40)]
keys = ["train/loss", "train/grad_norm", "train/learning_rate", "eval/loss"] + ["system/gpu_%d_utilization_percentage" % i for i in range(8)]
c.executemany("INSERT INTO runs VALUES (?, 'n', 'RUNNING', ?, NULL, 'active', 1)", [(u, 1700000000000 + i) for i, u in enumerate(runs)])
def points():
    n = 0
    for u in runs:
        for step in range(rows // len(runs) // len(keys) + 1):
            for k in keys:
                if n < rows:
                    n += 1
                    yield k, 2.5 + rnd.random(), 1700000000000 + step * 1000 + rnd.randrange(300), u, step
c.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, 0)", points())
c.commit()
PY
fi
rows=$(python3 -c 'import sqlite3, sys; print(sqlite3.connect("file:%s?mode=ro" % sys.argv[1], uri=True).execute("SELECT count(*) FROM metrics").fetchone()[0])' "$store")

# cpu prints the user and system time of a command.
cpu() {
	local TIMEFORMAT='%U %S'
	{ time GOMAXPROCS=1 STORE=$store "$@" >/dev/null 2>&1; } 2>&1 | awk '{ print $1 + $2 }'
}
for ((i = 0; i < rounds; i++)); do
	echo "python $(cpu python3 -c 'import sqlite3, sys
for row in sqlite3.connect("file:%s?mode=ro" % sys.argv[1], uri=True).execute("SELECT key, value, timestamp, run_uuid, step, is_nan FROM metrics"): pass' "$store")"
	for way in walk bytes sqlite; do
		echo "$way $(cpu "$dir/mlflow.test" -test.run '^$' -test.bench "^BenchmarkStore\$/^$way\$" -test.benchtime 1x)"
	done
done | awk -v rows="$rows" '
	$1 == "python" { python = $2; round++ }
	{ speed[$1, round] = rows / $2 / 1e6; ratio[$1, round] = python / $2 }
	function median(of, way, i, j, n, t, list) {
		for (i = 1; i <= round; i++) list[i] = of[way, i]
		for (i = 1; i <= round; i++) for (j = i + 1; j <= round; j++) if (list[j] < list[i]) { t = list[i]; list[i] = list[j]; list[j] = t }
		return list[int((round + 1) / 2)]
	}
	END { n = split("python walk bytes sqlite", ways, " "); for (i = 1; i <= n; i++) printf "%-8s %7.2f M rows/s %7.1fx\n", ways[i], median(speed, ways[i]), median(ratio, ways[i]) }'
