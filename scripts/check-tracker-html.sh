#!/usr/bin/env bash
# Open the pages of tracked runs, alignments and repaired copies of many shapes in a headless
# browser: no error on the console, no request that leaves the page, every curve drawn and
# usable, no width that scrolls sideways.
#
#   scripts/check-tracker-html.sh [FOLDER-FOR-PICTURES]
set -euo pipefail
cd "$(dirname "$0")/.."

if ! browser=$(scripts/browser.sh); then
	echo "skipped: no Chromium here"
	exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go test ./internal/report -run '^TestTrackerPages$' -count=1 -args -pages "$work" >"$work/test.txt" || {
	cat "$work/test.txt"
	exit 1
}
timeout 300 python3 scripts/drive-curves.py "$browser" "$work" "$@"
