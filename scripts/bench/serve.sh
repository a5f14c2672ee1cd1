#!/usr/bin/env bash
# Measures how fast a server takes an upload on this machine, how it holds many diagnoses of a small
# log at once (serve_load.py), and what memory it needs for each.
#
#   scripts/bench/serve.sh [-b BINARY] [-m MIB] [-n ROUNDS]
#
#   -b BINARY  the inquest to measure (built here otherwise)
#   -m MIB     size of the upload (1024)
#   -n ROUNDS  rounds, each in turn with a copy by cat; the medians count (3)
#
# Needs bash, curl, awk, python3 and go, Linux, and twice the size in the system's temporary folder.
set -euo pipefail
export LC_ALL=C

mib=1024 rounds=3 binary=''
while getopts 'b:m:n:h' option; do
	case $option in
	b) binary=$(realpath "$OPTARG") ;;
	m) mib=$OPTARG ;;
	n) rounds=$OPTARG ;;
	*)
		sed -n '2,/^set /{s/^# \{0,1\}//;/^set /d;p}' "$0"
		[ "$option" = h ] && exit 0 || exit 2
		;;
	esac
done
cd "$(dirname "$0")/../.."
dir=$(mktemp -d) server=''
trap '[ -z "$server" ] || { kill "$server" 2>/dev/null; wait "$server" 2>/dev/null; } || true; rm -rf "$dir"' EXIT
if [ -z "$binary" ]; then
	binary=$dir/inquest
	go build -o "$binary" ./cmd/inquest
fi
head -c "$((mib << 20))" /dev/urandom >"$dir/data"
mkdir "$dir/scratch"
"$binary" serve --listen 127.0.0.1:0 --store "$dir/store" --scratch "$dir/scratch" >"$dir/serve.log" 2>&1 &
server=$!
address=''
for ((i = 0; i < 200; i++)); do
	address=$(grep -o 'http://127\.0\.0\.1:[0-9]*' "$dir/serve.log" | head -1 || true)
	[ -n "$address" ] && break
	sleep 0.05
done
[ -n "$address" ] || { cat "$dir/serve.log" >&2; exit 1; }

# seconds COMMAND… prints how long a command takes.
seconds() {
	local TIMEFORMAT=%R
	{ time "$@" >/dev/null 2>/dev/null; } 2>&1
}
copy() { cat "$dir/data" >"$dir/copy"; }
for ((i = 0; i < rounds; i++)); do
	c=$(seconds copy)
	rm -f "$dir/copy"
	id=$(curl -fsS -H 'Content-Type: application/json' -d '{}' "$address/v1/cases" | sed -n 's/^ "id": "\(.*\)",$/\1/p')
	u=$(seconds curl -fsS -T "$dir/data" "$address/v1/cases/$id/files/data")
	curl -fsS "$address/v1/cases/$id" | grep -q "\"bytes\": $((mib << 20))" || { echo 'the upload is not whole' >&2; exit 1; }
	curl -fsS -X DELETE "$address/v1/cases/$id"
	echo "$c $u"
done | awk -v mib="$mib" '
	function median(a, n,  i, j, x) { for (i = 2; i <= n; i++) { x = a[i]; for (j = i - 1; j > 0 && a[j] > x; j--) a[j + 1] = a[j]; a[j + 1] = x } return a[int((n + 1) / 2)] }
	$1 > 0 { c[++n] = $1; u[n] = $2; r[n] = $2 / $1 }
	END { mb = mib * 1.048576; printf "cat %.0f MB/s, upload %.0f MB/s, ratio of times %.2f (medians of %d)\n", mb / median(c, n), mb / median(u, n), median(r, n), n }'
peak() { awk -v of="$1" '/^VmHWM/ { printf "peak memory of the server %s %.0f MiB\n", of, $2 / 1024 }' "/proc/$server/status"; }
peak 'after the uploads'
python3 scripts/bench/serve_load.py "$address" examples/single-gpu-oom/train.log "$rounds"
peak 'after all'
