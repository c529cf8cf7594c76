#!/usr/bin/env bash
# Does check grow with the events of a trace, and no faster? Counted instructions: nothing here depends on time.
# check_cost_test.sh CHECK_COST SHARDPROOF
set -euo pipefail
command -v valgrind >/dev/null || {
  echo "valgrind is missing: ci/setup installs it" >&2
  exit 1
}
SHARDPROOF=$PWD/$2 SIZES=4000,16000 "$1" --exponents plain reverse_slices open_requests host_threads hostile
if said=$(SHARDPROOF=$PWD/$2 SIZES=10,20 "$1" --exponents --packed plain 2>&1) || [[ $said != *"take one of them" ]]; then
  echo "FAILED: --exponents --packed is taken: $said" >&2
  exit 1
fi
said=$(SHARDPROOF=$PWD/$2 SIZES=4000 ROUNDS=1 "$1" --packed plain)
grep -qE '^  [0-9.]+ s, processor [0-9.]+ s, [1-9][0-9]* MB$' <<<"$said" || {
  echo "FAILED: --packed says: $said" >&2
  exit 1
}
