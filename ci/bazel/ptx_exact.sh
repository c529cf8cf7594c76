#!/usr/bin/env bash
# Could these kernels give other bits than the same source on a CPU?   ptx_exact.sh FILE.ptx...
#
# PTX ISA: an add, sub or mul without a rounding modifier may be fused with its neighbour, one with .rn never is; .ftz
# flushes subnormal numbers; .approx and div.full are not IEEE; atom and red on .f32 may flush, and sum in any order;
# min and max drop a NaN and order zeros. So: a list of what may be done to a floating-point number, and nothing else.
# Integers are free (mad.lo.s32, mad.wide.u32: addresses). Code that is called but not here could be anything.
# One line for each file and for each offence; status 1 if there is one, or no kernel at all.
set -uo pipefail
(($#)) || { echo "usage: ptx_exact.sh FILE.ptx..." >&2; exit 3; }
exec awk '
  function offend(why) { printf "%s:%d: %s\n    %s\n", FILENAME, FNR, why, $0; ++offences; bad = 1 }
  function finish() {
    if (file == "") return
    all_kernels += kernels
    printf "%s: %d kernels, %d floating-point instructions, %d not exact\n", file, kernels, floating, offences
  }
  FNR == 1 { finish(); file = FILENAME; kernels = floating = offences = 0 }
  { sub(/\/\/.*/, "") }
  /^[ \t]*(\.visible[ \t]+|\.weak[ \t]+)?\.entry[ \t]/ { ++kernels }
  /^[ \t]*\.extern[ \t]+\.func/ { offend("calls what is not here") ; next }
  {
    line = $0
    sub(/^[ \t{]*/, "", line)
    sub(/^@!?%[A-Za-z0-9_]+[ \t]+/, "", line)  # a predicate
    if (line !~ /^[a-z]/) next                 # a directive, a label, a brace
    split(line, word, /[ \t;]/)
    op = word[1]
    if (op ~ /^(mma|wmma|wgmma|tcgen05)/) { offend("tensor core in a kernel"); next }
    if (op !~ /\.(f16|f16x2|bf16|bf16x2|tf32|f32|f32x2|f64|e4m3|e4m3x2|e5m2|e5m2x2)(\.|$)/) next
    ++floating
    if (op ~ /\.(ftz|approx|full|sat)(\.|$)/) { offend("not IEEE"); next }
    if (op ~ /^(add|sub|mul|div|sqrt|rcp)\.rn\.(f32|f64)$/) next
    if (op ~ /^(mov|ld|ldu|st|selp|slct|abs|neg|copysign|testp|set|setp|cvt|shfl)\./) next
    offend("not in the list of exact operations")
  }
  END {
    finish()
    if (all_kernels == 0) { print "no kernel in any file"; bad = 1 }
    exit bad
  }
' "$@"
