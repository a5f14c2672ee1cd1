#!/usr/bin/env bash
# Scans the logs that lie on the hosts of a Slurm job, every host its own, and
# merges the evidence into one file.
#
#   scripts/scan-srun.sh [-j JOBID | -w HOSTS] [-d DIR] [-o OUT] PATH...
#
#   -j JOBID  on the hosts of this running allocation, beside what runs there
#   -w HOSTS  on these hosts (node[01-16]), in an allocation made for it; for a
#             job that has ended. Without -j and -w: in the allocation that the
#             shell is in
#   -d DIR    folder that all hosts share, for the evidence of each one
#             (a new folder under the current one)
#   -o OUT    the merged evidence (job.inq)
#   PATH...   files and folders on the hosts, as each host names them
#
# INQUEST names the program on the hosts and here (inquest). A host without
# evidence is named on standard error and left out; the status is then 1.
set -euo pipefail

usage() { sed -n '2,/^set /{s/^# \{0,1\}//;/^set /d;p}' "$0"; }
note() { echo "scan-srun.sh: $*" >&2; }

job='' hosts='' dir='' out=job.inq
while getopts 'j:w:d:o:h' option; do
	case $option in
	j) job=$OPTARG ;;
	w) hosts=$OPTARG ;;
	d) dir=$OPTARG ;;
	o) out=$OPTARG ;;
	h) usage && exit 0 ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || { usage >&2 && exit 2; }
inquest=${INQUEST:-inquest}

if [ -n "$job" ]; then
	hosts=$(squeue --noheader --jobs "$job" --format %N)
elif [ -z "$hosts" ]; then
	hosts=${SLURM_JOB_NODELIST:-}
fi
[ -n "$hosts" ] || { note "no hosts: give -j or -w, or run inside an allocation" && exit 2; }
mapfile -t names < <(scontrol show hostnames "$hosts")

if [ -z "$dir" ]; then
	dir=$(mktemp -d "$PWD/inquest-evidence.XXXXXX")
fi
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

step=(srun --nodelist="$hosts" --nodes="${#names[@]}" --ntasks="${#names[@]}" --ntasks-per-node=1 --kill-on-bad-exit=0)
if [ -n "$job" ]; then
	step+=(--jobid="$job" --overlap)
elif [ -n "${SLURM_JOB_ID:-}" ]; then
	step+=(--overlap)
fi
# One host's failure is told below, by the file that is missing.
# shellcheck disable=SC2016 # expanded on each host
"${step[@]}" sh -c '
	inquest=$1 dir=$2
	shift 2
	host=${SLURMD_NODENAME:-$(uname -n)}
	exec "$inquest" scan --host "$host" -o "$dir/$host.inq" "$@"
' scan "$inquest" "$dir" "$@" </dev/null || note "srun ended with status $?"

status=0 found=()
for host in "${names[@]}"; do
	if [ -s "$dir/$host.inq" ]; then
		found+=("$dir/$host.inq")
	else
		note "no evidence from $host"
		status=1
	fi
done
[ ${#found[@]} -gt 0 ] || exit 1
"$inquest" scan "${found[@]}" -o "$out" || status=1
note "evidence of ${#found[@]} of ${#names[@]} hosts is in $out; next: $inquest diagnose $out"
exit "$status"
