#!/usr/bin/env bash
# Open the HTML report of every example in a browser: it must render without an
# error on the console, show the verdict, and ask for nothing but itself.
#
#   scripts/check-html.sh BINARY
set -euo pipefail
cd "$(dirname "$0")/.."

binary=$(realpath "${1:?usage: scripts/check-html.sh BINARY}")
if ! browser=$(scripts/browser.sh); then
	echo "skipped: no Chromium here"
	exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for dir in examples/*/; do
	name=$(basename "$dir")
	"$binary" diagnose --format html -o "$work/$name.html" "examples/$name"
	if grep -nEio '(src|srcset|action|background)="?(https?:)?//[^" ]*|<link [^>]*href="?(https?:)?//[^" ]*|@import[^;]*|url\( *["'\'']?(https?:)?//[^)]*' "$work/$name.html"; then
		echo "$name: the page asks for something outside itself" >&2
		exit 1
	fi
	timeout 90 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$work/profile" \
		--host-resolver-rules="MAP * ~NOTFOUND" --virtual-time-budget=5000 --enable-logging=stderr --v=0 \
		--dump-dom "file://$work/$name.html" >"$work/$name.dom" 2>"$work/$name.console"
	if grep -E 'CONSOLE' "$work/$name.console" | grep -Ei 'error|uncaught|refused|violat'; then
		echo "$name: the page reports an error" >&2
		exit 1
	fi
	fault=$("$binary" diagnose --format json "examples/$name" | python3 -c 'import html, json, sys; f = json.load(sys.stdin)["first_fault"]; print(f["span"]["artifact"].split("/")[-1] + ":" + str(f["span"]["line"]))')
	if ! grep -qF "$fault" "$work/$name.dom"; then
		echo "$name: the rendered page does not name $fault" >&2
		exit 1
	fi
	echo "$name: rendered, $(wc -c <"$work/$name.html") bytes, names $fault"
done
