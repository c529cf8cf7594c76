#!/usr/bin/env bash
# Does ptx_exact.sh see what it must, and only that?   ptx_exact_test.sh ptx_exact.sh
set -euo pipefail
check=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

write() { # FILE INSTRUCTION
  printf '.version 9.0\n.target sm_90\n.visible .entry kernel(\n\t.param .u64 p\n)\n{\n\t%s\n\tret;\n}\n' "$2" >"$1"
}
expect() { # STATUS INSTRUCTION
  write "$work/sample.ptx" "$2"
  local status=0
  "$check" "$work/sample.ptx" >"$work/out" 2>&1 || status=$?
  if ((status != $1)); then
    echo "FAILED: status $status, expected $1: $2" && cat "$work/out"
    failures=$((failures + 1))
  fi
}

while IFS= read -r good; do expect 0 "$good"; done <<'EOS'
add.rn.f32 	%f3, %f1, %f2;
sub.rn.f32 	%f3, %f1, %f2;
mul.rn.f64 	%fd3, %fd1, %fd2;
div.rn.f32 	%f3, %f1, %f2;
sqrt.rn.f32 	%f3, %f1;
rcp.rn.f32 	%f3, %f1;
@%p2 add.rn.f32 	%f3, %f1, %f2;
ld.global.f32 	%f1, [%rd1];
st.global.f32 	[%rd1], %f1;
mov.f32 	%f1, 0f3F800000;
selp.f32 	%f3, %f1, %f2, %p1;
setp.gt.f32 	%p1, %f1, %f2;
setp.nan.f32 	%p1, %f1, %f1;
neg.f32 	%f2, %f1;
cvt.rn.f32.s64 	%f1, %rd1;
cvt.rzi.s32.f32 	%r1, %f1;
cvt.f64.f32 	%fd1, %f1;
mad.lo.s32 	%r4, %r1, %r2, %r3;
mad.wide.u32 	%rd4, %r1, %r2, %rd3;
atom.global.add.u64 	%rd2, [%rd1], %rd3;
fma_is_a_label:
// fma.rn.f32 in a comment
EOS
while IFS= read -r bad; do expect 1 "$bad"; done <<'EOS'
fma.rn.f32 	%f4, %f1, %f2, %f3;
fma.rn.f64 	%fd4, %fd1, %fd2, %fd3;
@!%p1 fma.rn.f32 	%f4, %f1, %f2, %f3;
mad.f32 	%f4, %f1, %f2, %f3;
add.f32 	%f3, %f1, %f2;
mul.f32 	%f3, %f1, %f2;
mul.rz.f32 	%f3, %f1, %f2;
add.rn.ftz.f32 	%f3, %f1, %f2;
setp.gt.ftz.f32 	%p1, %f1, %f2;
div.approx.f32 	%f3, %f1, %f2;
div.full.f32 	%f3, %f1, %f2;
sqrt.approx.f32 	%f3, %f1;
rsqrt.approx.f32 	%f3, %f1;
ex2.approx.ftz.f32 	%f3, %f1;
min.f32 	%f3, %f1, %f2;
max.f32 	%f3, %f1, %f2;
atom.global.add.f32 	%f2, [%rd1], %f1;
red.global.add.f32 	[%rd1], %f1;
fma.rn.bf16x2 	%r4, %r1, %r2, %r3;
mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 	{%f1}, {%r1}, {%r2}, {%f2};
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
EOS

# Files without a kernel prove nothing; one among others is a source that only calls them.
printf '.version 9.0\n.target sm_90\n' >"$work/empty.ptx"
write "$work/sample.ptx" 'add.rn.f32 	%f3, %f1, %f2;'
if "$check" "$work/empty.ptx" >/dev/null; then echo "FAILED: no kernel at all, and it passed" && failures=$((failures + 1)); fi
if ! "$check" "$work/empty.ptx" "$work/sample.ptx" >/dev/null; then echo "FAILED: a file without a kernel beside another" && failures=$((failures + 1)); fi
# An offence in the first of two files is not forgotten.
write "$work/first.ptx" 'fma.rn.f32 	%f4, %f1, %f2, %f3;'
write "$work/second.ptx" 'add.rn.f32 	%f3, %f1, %f2;'
if "$check" "$work/first.ptx" "$work/second.ptx" >/dev/null; then echo "FAILED: the first file was forgotten" && failures=$((failures + 1)); fi

echo "$failures failures"
((failures == 0))
