#!/usr/bin/env bash
# usage: conformance_test.sh PROGRAM ENGINE OPTION... (in the runfiles; defs.bzl)
# Of several shards this one judges its share of the cases. The report is among the outputs of the test.
set -euo pipefail
program=$1 engine=$2
shift 2
options=("$@")
if ((${TEST_TOTAL_SHARDS:-1} > 1)); then
  touch "$TEST_SHARD_STATUS_FILE"  # tells Bazel that shards are known of
  options+=(--shard "$((TEST_SHARD_INDEX + 1))/$TEST_TOTAL_SHARDS")
fi
[[ -z ${TEST_UNDECLARED_OUTPUTS_DIR:-} ]] || options+=(--report "$TEST_UNDECLARED_OUTPUTS_DIR")
exec "$program" run --impl "lib:$PWD/$engine" "${options[@]}"
