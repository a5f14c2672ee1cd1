#!/usr/bin/env bash
# Scans the logs of a job's pods, each pod by itself, and merges the evidence into
# one file.
#
#   scripts/scan-kubectl.sh -l SELECTOR [-n NAMESPACE] [-c CONTAINER] [-p N] [-o OUT] [PATH...]
#
#   -l SELECTOR   label selector of the pods (job-name=train)
#   -n NAMESPACE  (kubectl's own default)
#   -c CONTAINER  the container in each pod (kubectl's own default)
#   -p N          pods at a time (8)
#   -o OUT        the merged evidence (job.inq)
#   PATH...       files and folders inside the containers, which must be running
#                 and have inquest; without a PATH the output that the cluster
#                 kept of each pod is scanned here, of its last restart as well
#
# INQUEST names the program here, INQUEST_IN_POD the one in the containers (both
# inquest). A pod without evidence is named on standard error and left out; the
# status is then 1.
set -euo pipefail

usage() { sed -n '2,/^set /{s/^# \{0,1\}//;/^set /d;p}' "$0"; }
note() { echo "scan-kubectl.sh: $*" >&2; }

selector='' parallel=8 out=job.inq common=() container=()
while getopts 'l:n:c:p:o:h' option; do
	case $option in
	l) selector=$OPTARG ;;
	n) common=(--namespace "$OPTARG") ;;
	c) container=(--container "$OPTARG") ;;
	p) parallel=$OPTARG ;;
	o) out=$OPTARG ;;
	h) usage && exit 0 ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ -n "$selector" ] || { usage >&2 && exit 2; }
inquest=${INQUEST:-inquest}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mapfile -t pods < <(kubectl "${common[@]}" get pods --selector "$selector" \
	--output 'jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}')
[ ${#pods[@]} -gt 0 ] || { note "no pod has the labels $selector" && exit 1; }

# scan POD PATH... leaves the evidence of one pod in a file of its name.
scan() {
	local pod=$1
	shift
	if [ $# -gt 0 ]; then
		kubectl "${common[@]}" exec "$pod" "${container[@]}" -- "${INQUEST_IN_POD:-inquest}" scan --host "$pod" -o - "$@" >"$work/$pod.part"
	else
		mkdir "$work/$pod"
		kubectl "${common[@]}" logs "$pod" "${container[@]}" --tail=-1 >"$work/$pod/current.log"
		kubectl "${common[@]}" logs "$pod" "${container[@]}" --tail=-1 --previous >"$work/$pod/previous.log" 2>/dev/null ||
			rm -f "$work/$pod/previous.log"
		(cd "$work/$pod" && "$inquest" scan --host "$pod" -o - ./*.log) >"$work/$pod.part"
	fi
	mv "$work/$pod.part" "$work/$pod.inq"
}

for pod in "${pods[@]}"; do
	while [ "$(jobs -rp | wc -l)" -ge "$parallel" ]; do
		wait -n || true
	done
	scan "$pod" "$@" </dev/null &
done
wait || true

status=0 found=()
for pod in "${pods[@]}"; do
	if [ -s "$work/$pod.inq" ]; then
		found+=("$work/$pod.inq")
	else
		note "no evidence from $pod"
		status=1
	fi
done
[ ${#found[@]} -gt 0 ] || exit 1
"$inquest" scan "${found[@]}" -o "$out" || status=1
note "evidence of ${#found[@]} of ${#pods[@]} pods is in $out; next: $inquest diagnose $out"
exit "$status"
