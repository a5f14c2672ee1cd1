#!/usr/bin/env bash
# Print the Chromium that is installed here; fail where there is none.
for name in chromium chromium-browser google-chrome; do
	command -v "$name" && exit 0
done
exit 1
