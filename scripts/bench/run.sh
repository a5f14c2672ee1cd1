#!/usr/bin/env bash
# What it costs to run a command below inquest run. Each command is run directly and below it in
# turns, and the pairs are compared:
#
#   the delay to the command's exec, from a command that prints the time at which it runs;
#   a command that only computes;
#   a command that prints 1 GiB, which must arrive unchanged, and be the log.
#
#   scripts/bench/run.sh [PAIRS]
set -euo pipefail
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
CGO_ENABLED=0 go build -trimpath -o "$dir/inquest" ./cmd/inquest
XDG_STATE_HOME="$dir/state" python3 scripts/bench/run.py "$dir/inquest" "$dir/state" "${1:-200}"
