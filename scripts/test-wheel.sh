#!/usr/bin/env bash
# Build this machine's wheel, install it into an empty environment without any
# index, and diagnose an example with what was installed.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
platform=$(go env GOOS)/$(go env GOARCH)
version=0.0.0-rc.1

CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X $(go list -m)/internal/cli.Version=$version" -o "$work/inquest" ./cmd/inquest
for out in "$work/dist" "$work/again"; do
	python3 scripts/wheel.py --binary "$work/inquest" --platform "$platform" --version "$version" --readme README.md --licenses LICENSE --out "$out"
done
cmp "$work"/dist/*.whl "$work"/again/*.whl

python3 -m venv "$work/env"
"$work/env/bin/pip" install --quiet --disable-pip-version-check --no-index --find-links "$work/dist" --pre inquest-gpu
"$work/env/bin/pip" show --files inquest-gpu
"$work/env/bin/pip" check
cmp "$work/inquest" "$work/env/bin/inquest"
[ "$("$work/env/bin/inquest" version)" = "inquest $version" ]
"$work/env/bin/inquest" diagnose examples/single-gpu-oom | tee "$work/verdict"
grep -q '^First .*out of device memory' "$work/verdict"
"$work/env/bin/pip" uninstall --quiet --yes inquest-gpu
[ ! -e "$work/env/bin/inquest" ]
echo "wheel: installed, ran and uninstalled"
