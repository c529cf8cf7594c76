#!/usr/bin/env bash
# usage: random_cases.sh SHARDPROOF RANDOM_CASES FROM TO [LOG]
# Does the reference conform in the legal cases that seeds FROM to TO draw? Fifty at a time; after each the seeds and
# the verdict. With LOG these lines are kept there, and what it says conformed is not run again: an interrupted run goes
# on where it was. A line has the checksum of its cases: seeds of another version may draw others.
set -uo pipefail
shardproof=$1 draw=$2 from=$3 to=$4 log=${5:-/dev/null}
at_once=50 bad=0 conformed=0
out=$(mktemp)
trap 'rm -f "$out"' EXIT
for ((first = from; first <= to; first += at_once)); do
  last=$((first + at_once - 1 < to ? first + at_once - 1 : to))
  mapfile -t ids < <("$draw" "$first" "$last" | cut -d ' ' -f 2)
  if ((${#ids[@]} != last - first + 1)); then
    echo "FAILED: seeds $first to $last: ${#ids[@]} cases drawn"
    exit 1
  fi
  seeds="seeds $first to $last ($(cksum <<<"${ids[*]}" | cut -d ' ' -f 1))"
  if [[ -f $log ]] && grep -qF "$seeds: conformant" "$log"; then
    conformed=$((conformed + last - first + 1))
    continue
  fi
  arguments=()
  for id in "${ids[@]}"; do arguments+=(--case "$id"); done
  "$shardproof" run "${arguments[@]}" >"$out" 2>&1
  status=$?
  verdict="$seeds: $(tail -n 1 "$out")"
  echo "$verdict" | tee -a "$log"
  if ((status == 0)); then
    conformed=$((conformed + ${#ids[@]}))
  else
    bad=1
    grep -vE '^pass ' "$out" | head -n 60
  fi
done
echo "$conformed of $((to - from + 1)) cases conformant, seeds $from to $to"
exit "$bad"
