#!/usr/bin/env bash
# Does link_overlap measure every engine, and refuse what it cannot do?   link_overlap_test.sh LINK_OVERLAP
# Without a second host: no figure is looked at, only that each is there.
set -uo pipefail
program=$1
out=$TEST_TMPDIR/out
fail() {
  echo "FAILED: $*"
  cat "$out"
  exit 1
}

timeout 150 mpirun -n 2 "$program" --tiny --rounds 1 --again 1 --steps 1 --ratio 0.5 --ratio 0.9 --svg "$TEST_TMPDIR/o.svg" >"$out" 2>&1 ||
  fail "exit status $?"
for engine in "FSDP" "FSDP with a twin" "1F1B, tokens of experts" "layer-wise Adam" "layer-wise Muon"; do
  spread='[0-9.-]+ \( *[0-9.-]+ to +[0-9.-]+\)'
  (($(grep -Ec "^$engine  +[0-9.]+  +$spread +$spread +(-|$spread) +$spread +$spread$" "$out") == 2)) || fail "not two rows of $engine"
  (($(grep -c ">$engine, " "$TEST_TMPDIR/o.svg") == 2)) || fail "not two of $engine in the drawing"
done
grep -Eq '^the link: [0-9]+ us an operation, [0-9.]+ MB/s$' "$out" || fail "the link is not told"

timeout 30 mpirun -n 1 "$program" --tiny >"$out" 2>&1
(($? == 3)) && grep -q 'an even number of ranks' "$out" || fail "one rank"
timeout 30 mpirun -n 2 "$program" --rounds 0 >"$out" 2>&1
(($? == 3)) && grep -q -- '--rounds' "$out" || fail "no rounds"
timeout 60 mpirun -n 2 "$program" --tiny --rounds 1 --steps 1 --ratio 0.5 --engine "layer-wise Adam" --svg /nowhere/o.svg >"$out" 2>&1
(($? == 2)) && grep -q -- '--svg /nowhere/o.svg: cannot be written' "$out" || fail "no such folder"
(($(grep -c '^layer-wise Adam' "$out") == 1 && $(grep -c 'FSDP' "$out") == 0)) || fail "one engine was asked for"
timeout 30 mpirun -n 2 "$program" --engine nobody >"$out" 2>&1
(($? == 3)) && grep -q -- '--engine nobody is in no name of' "$out" && grep -q '^  1F1B' "$out" || fail "no such engine"
echo passed
