#!/usr/bin/env bash
# Does the last word of a process that ends its job arrive, however late it is read?   abort_test.sh PROGRAM
set -uo pipefail
code=$TEST_TMPDIR/code

mpirun -n 2 "$1" abort >"$TEST_TMPDIR/out" 2>&1
(($? == 2)) && grep -q '^a last word' "$TEST_TMPDIR/out" || {
  echo "FAILED: not the code, or not the word:"
  cat "$TEST_TMPDIR/out"
  exit 1
}
# Alone: its reader is this script, and not mpirun.
read_late() {
  sleep 1
  [[ ! -e $code ]] || echo "FAILED: it ended before its word was read"
  grep -v 'called MPI_Abort'
}
{
  "$1" abort 2>&1
  echo $? >"$code"
} | read_late >"$TEST_TMPDIR/late"
[[ $(<"$TEST_TMPDIR/late") == "a last word" && $(<"$code") == 2 ]] || {
  cat "$TEST_TMPDIR/late" "$code"
  exit 1
}
echo passed
