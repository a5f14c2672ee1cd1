#!/usr/bin/env bash
# Open memory pages of 1 M and 10 M events, of several ranks, and of a history kept event
# by event in a headless browser: no error on the console, no request that leaves the page,
# and the time from an input to the painted frame.
#
#   scripts/check-memory-html.sh [FOLDER-FOR-PICTURES]
set -euo pipefail
cd "$(dirname "$0")/.."

if ! browser=$(scripts/browser.sh); then
	echo "skipped: no Chromium here"
	exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go test ./internal/report -run '^TestMemoryPages$' -count=1 -args -pages "$work" >"$work/test.txt" || {
	cat "$work/test.txt"
	exit 1
}
timeout 300 python3 scripts/drive-page.py "$browser" "$work" "$@"
