#!/usr/bin/env bash
# Build a release into dist/: static archives, Python wheels, checksums, the list
# of what is in the binaries, completions and licences.
#
#   scripts/release.sh VERSION [OS/ARCH...]
#
# VERSION is like 1.2.3. Without platforms all six are built. The same commit and
# toolchain give the same bytes: paths and build ids are left out, and archives
# carry the commit's date (or SOURCE_DATE_EPOCH).
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:?usage: scripts/release.sh VERSION [OS/ARCH...]}
version=${version#v}
shift
platforms=("$@")
if [ ${#platforms[@]} -eq 0 ]; then
	platforms=(linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64)
fi
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
	SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 315532800)
fi
export SOURCE_DATE_EPOCH CGO_ENABLED=0 GOFLAGS='-buildvcs=false -trimpath' LC_ALL=C
unset GOAMD64 GOARM64

module=$(go list -m)
rm -rf dist build/release
mkdir -p dist build/release

# Licences of everything that is linked in, in module order.
third_party=build/release/THIRD_PARTY_LICENSES
{
	echo "inquest contains the following packages. Their licences follow."
	go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/inquest | sort -u |
		while read -r path v dir; do
			for file in "$dir"/LICENSE* "$dir"/NOTICE*; do
				[ -f "$file" ] || continue
				printf '\n======== %s %s: %s\n\n' "$path" "$v" "$(basename "$file")"
				cat "$file"
			done
		done
	# Files of others that lie in this tree carry their licence beside them.
	find internal -type f -name 'LICENSE*' | sort | while read -r file; do
		printf '\n======== %s\n\n' "$file"
		cat "$file"
	done
} >"$third_party"

# Completions come from a binary of this machine.
go build -o build/release/host ./cmd/inquest
for shell in bash zsh fish powershell; do
	build/release/host completion "$shell" >"build/release/inquest.$shell"
done

for platform in "${platforms[@]}"; do
	os=${platform%/*} arch=${platform#*/}
	name=inquest_${version}_${os}_${arch}
	dir=build/release/$name
	binary=inquest
	[ "$os" = windows ] && binary=inquest.exe
	mkdir -p "$dir/completions"
	GOOS=$os GOARCH=$arch go build -ldflags "-s -w -buildid= -X $module/internal/cli.Version=$version" -o "$dir/$binary" ./cmd/inquest
	cp LICENSE README.md "$third_party" "$dir/"
	cp build/release/inquest.{bash,zsh,fish,powershell} "$dir/completions/"
	python3 scripts/wheel.py --binary "$dir/$binary" --platform "$platform" --version "$version" --readme README.md --licenses LICENSE "$third_party" --out dist
	if [ "$os" = windows ]; then
		python3 scripts/pack.py "dist/$name.zip" build/release "$name"
	else
		tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r-w -C build/release -cf - "$name" | gzip -9n >"dist/$name.tar.gz"
	fi
	# What each binary was built from, as the toolchain recorded it.
	go version -m "$dir/$binary" | sed "1s|.*|$name|" >"dist/$name.sbom.txt"
done

(cd dist && sha256sum -- * >SHA256SUMS)
cat dist/SHA256SUMS
