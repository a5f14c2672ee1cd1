#!/usr/bin/env bash
# Uses the HTTP API as a stranger does: schemathesis reads the OpenAPI document that a server
# serves, makes requests of it, right and wrong ones, and holds every answer to the document.
#
#   scripts/api/run.sh BINARY WORK [SECONDS]
#
# BINARY is an inquest, WORK a folder for what is installed and kept, SECONDS how long requests are
# made (60). Status: 0 nothing was found; 1 something was; 75 schemathesis cannot be installed
# here. Needs bash, curl, Python 3.10 or later, and the Python package index at the first run.
set -euo pipefail

if [ $# -lt 2 ] || [ $# -gt 3 ]; then
	sed -n '2,/^set /{s/^# \{0,1\}//;/^set /d;p}' "$0"
	exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
binary=$(realpath "$1")
mkdir -p "$2"
work=$(realpath "$2")
seconds=${3:-60}

# 1. The client, in an environment of its own or in that of PYTHON.
client=$work/venv/bin/schemathesis
if [ -n "${PYTHON:-}" ]; then
	client=$(dirname "$PYTHON")/schemathesis
elif ! cmp -s "$here/requirements.txt" "$work/installed.txt"; then
	rm -rf "$work/venv"
	if ! { python3 -m venv "$work/venv" && "$work/venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/requirements.txt"; } >"$work/install.log" 2>&1; then
		echo "schemathesis cannot be installed; $work/install.log says why" >&2
		exit 75
	fi
	cp "$here/requirements.txt" "$work/installed.txt"
fi

# 2. The server, with a store and a folder of its own.
rm -rf "$work/store" "$work/scratch"
mkdir -p "$work/store" "$work/scratch"
printf '%s\n' 'step 119 loss 2.29' 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.20 GiB is free.' >"$work/rank_0.log"
for i in 1 2; do # two trials that failed in the same way are an incident
	"$binary" run --store "$work/store" -- bash -c "cat '$work/rank_0.log'; exit 1" >/dev/null 2>&1 || true
done
"$binary" serve --listen 127.0.0.1:0 --store "$work/store" --scratch "$work/scratch" >"$work/serve.log" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true' EXIT
address=''
for ((i = 0; i < 2400; i++)); do
	address=$(grep -so 'http://127\.0\.0\.1:[0-9]*' "$work/serve.log" | head -1 || true)
	[ -n "$address" ] && break
	kill -0 "$server" || { cat "$work/serve.log" >&2; exit 1; }
	sleep 0.05
done
[ -n "$address" ] || { echo "the server says no address" >&2; exit 1; }

# 3. A case with a result and an incident that is kept, so that requests reach more than 404.
id=$(curl -fsS -D - -o /dev/null --data-binary "@$work/rank_0.log" "$address/v1/diagnose?name=rank_0.log" | tr -d '\r' | sed -n 's|^[Ll]ocation: /v1/cases/||p')
{
	# Too large and too long are refusals as well.
	printf '[checks.negative_data_rejection]\nexpected-statuses = [400, 401, 403, 404, 405, 406, 409, 413, 414, 415, 422, 428, 429, "5xx"]\n'
	# Whether a name is taken depends on the system too: what the document says of it is necessary,
	# not sufficient.
	printf '[[operations]]\ninclude-path = "%s"\nchecks.positive_data_acceptance.enabled = false\n' '/v1/cases/{id}/files/{name}' /v1/diagnose
} >"$work/alone.toml"
{
	cat "$work/alone.toml"
	for at in events incident timeline lines memory tracker; do
		printf '[[operations]]\ninclude-path = "/v1/cases/{id}/%s"\nparameters = { "path.id" = "%s"%s }\n' "$at" "$id" "$([ $at = lines ] && echo ', "query.artifact" = "rank_0.log"')"
	done
	printf '[[operations]]\ninclude-path-regex = "/v1/incidents/\\\\{id\\\\}.*"\nparameters = { "path.id" = "last" }\n'
} >"$work/seeded.toml"
# In what follows from another the events of a case that never ends would be waited for.
printf '[[operations]]\ninclude-path = "/v1/cases/{id}/events"\nenabled = false\n' >>"$work/alone.toml"

# 4. Requests, and what is said of the answers.
cd "$work"
flags=(--mode all --request-timeout 60 --continue-on-failure --no-color --warnings off)
# Of CI it asks the same each time, so that a failure is of the change.
[ -z "${CI:-}" ] || flags+=(--seed 1 --generation-deterministic)
status=0
# Each operation by itself, then in the order in which one follows from another.
"$client" --config-file "$work/seeded.toml" run "$address/openapi.json" --phases examples,coverage,fuzzing --max-time $((seconds * 2 / 3)) "${flags[@]}" || status=1
"$client" --config-file "$work/alone.toml" run "$address/openapi.json" --phases stateful --max-time $((seconds / 3)) "${flags[@]}" || status=1
kill -0 "$server" 2>/dev/null || { echo "the server ended" >&2; exit 1; }
exit "$status"
