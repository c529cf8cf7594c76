#!/usr/bin/env bash
# usage: conformant.sh SHARDPROOF ID...: does the reference conform in these cases, on sim, in each SHOULD too?
set -uo pipefail
shardproof=$1
shift
arguments=()
for id in "$@"; do arguments+=(--case "$id"); done
"$shardproof" run --fabric sim --strict "${arguments[@]}" | tail -n 60
exit "${PIPESTATUS[0]}"
