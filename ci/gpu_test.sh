#!/usr/bin/env bash
# Does ci/gpu see what fails, hangs and is skipped, and does it say what it could not run?   gpu_test.sh ci/gpu BANK.PY
# What it packs are scripts here: a GPU is not needed.
# shellcheck disable=SC2016  # expanded by the scripts
set -uo pipefail
gpu=$1 bank=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

program() { printf '#!/usr/bin/env bash\n%s\n' "$2" >"$work/bin/$1" && chmod +x "$work/bin/$1"; }
# All is well, unless a program is replaced. Engines that are wrong are found.
wrong='case "$*" in
*idle*) echo "  FS-28  i"; exit 1;; *wrong_wait*) echo "  GE-05  a"; exit 1;; *wrong_scale*) echo "  FS-17  b"; exit 1;; *early_free*) echo "  GE-11  c"; exit 1;; esac; '
start() {
  rm -rf "${work:?}"/{bin,lib,engines,faults} && mkdir -p "$work"/{bin,engines,faults} "$work/lib/compiler"
  program gpu_facts 'echo "device: a device"'
  program shardproof_gpu "$wrong"'echo "conformant: $*"'
  program gpu_step_time_main 'echo "what one rank needs 12 ms"; echo "recording 1 % $*"'
  program gpu_bandwidth_main 'echo "all_gather 3 GB/s"'
  program nccl_tests 'echo "of $1: 4 GB/s"'
  local test
  for test in cuda_gpu_test cuda_gemm_test cuda_comms_test cuda_kernels_test; do
    program "$test" 'echo "[  PASSED  ] 3 tests."'
  done
  # Runs what it is given to check.
  program compute-sanitizer 'while [[ $1 != */bin/* ]]; do shift; done; "$@"; echo "========= ERROR SUMMARY: 0 errors"'
}
run() { # SECONDS
  tar -C "$work" -czf "$work/packed.tar.gz" bin lib engines faults
  PATH=$work/bin:$PATH SHARDPROOF_GPU_SECONDS=$1 "$gpu" run "$work/packed.tar.gz" >"$work/out" 2>&1
  status=$?
}
expect() { # STATUS TEXT: TEXT is a part of one line, in which spaces stand for any number of them
  local pattern=${2// / +}
  if ((status != $1)) || ! grep -Eq "$pattern" "$work/out"; then
    echo "FAILED: status $status, expected $1 and a line with: $2"
    cat "$work/out"
    failures=$((failures + 1))
  fi
}

start && run 100
expect 0 'device test cuda_gpu_test passed .* 3 passed'
expect 0 'conformance, nccl, 4 ranks passed .* conformant: run --fabric nccl --ranks 4 --profile core'
expect 0 'conformance, nccl, 2 ranks, libzero1.so passed .* conformant: run --fabric nccl --ranks 2 --profile core --impl lib:/.*/engines/libzer'
expect 0 'wrong engine, nccl, 4 ranks, libwrong_wait.so passed .* GE-05  a'
expect 0 'wrong engine, nccl, 4 ranks, libanswers.so:train_step/0/all/idle passed .* FS-28  i'
expect 0 'what one rank needs 12 ms'
grep -q 'faults' "$work/out" && echo "FAILED: faults, which were not packed" && ((++failures))
expect 0 'step times, 2 ranks passed .* recording 1 % --rounds 2$'
expect 0 'step times, 2 ranks, fp32 passed .* recording 1 % --rounds 2 --gemm fp32 --tokens 4096$'
expect 0 'bus bandwidth, 2 ranks passed .* all_gather 3 GB/s'
grep -q 'nccl-tests' "$work/out" && echo "FAILED: NCCL's own tests, which are not there" && ((++failures))
start && SHARDPROOF_NCCL_TESTS=/a/folder SHARDPROOF_GPU_ROUNDS=5 run 100
expect 0 'nccl-tests, 2 ranks passed .* of /a/folder: 4 GB/s'
expect 0 'step times, 2 ranks passed .* recording 1 % --rounds 5$'
start && run 100
expect 0 'compute-sanitizer memcheck: cuda_kernels_test passed .* ERROR SUMMARY: 0 errors'
expect 0 'compute-sanitizer racecheck: cuda_kernels_test passed'
expect 0 'compute-sanitizer synccheck: cuda_kernels_test passed'

grep -q 'take turns: no nvidia-cuda-mps-control' "$work/out" || command -v nvidia-cuda-mps-control >/dev/null ||
  { echo "FAILED: not said that ranks take turns" && ((++failures)); }

# Several ranks under MPS, everything else without; the server is told to end.
mps='[[ $1 == -d ]] || { cat; echo; } >>"$CUDA_MPS_PIPE_DIRECTORY/../../mps_heard"; [[ -d $CUDA_MPS_PIPE_DIRECTORY ]]'
start && program nvidia-cuda-mps-control "$mps" && program shardproof_gpu "$wrong"'echo "under ${CUDA_MPS_PIPE_DIRECTORY##*/}"' &&
  program cuda_gpu_test 'echo "[  PASSED  ] 3 tests.${CUDA_MPS_PIPE_DIRECTORY}"; [[ -z $CUDA_MPS_PIPE_DIRECTORY ]]'
TMPDIR=$work run 100
expect 0 'ranks on one device run at the same time, under MPS'
expect 0 'conformance, nccl, 2 ranks passed .* under mps'
grep -qx quit "$work/mps_heard" || { echo "FAILED: MPS still runs" && ((++failures)); }
SHARDPROOF_GPU_MPS=no run 100
expect 0 'take turns: SHARDPROOF_GPU_MPS=no'
expect 0 'conformance, nccl, 2 ranks passed .* under $'
program gpu_facts 'echo "a device"; [[ -z $CUDA_MPS_PIPE_DIRECTORY ]] || { echo "cannot connect"; exit 1; }' && run 100
expect 0 'take turns: MPS does not work here: cannot connect'
expect 0 'conformance, nccl, 2 ranks passed .* under $'

start && program gpu_facts 'echo "no GPU: cudaErrorNoDevice"; exit 1' && run 100
expect 0 'device test cuda_gpu_test not run +no GPU: cudaErrorNoDevice'
expect 0 'conformance, nccl, 2 ranks not run +no GPU: cudaErrorNoDevice'
expect 0 'compute-sanitizer memcheck: cuda_comms_test not run +no GPU'

start && program cuda_gpu_test 'exit 1' && SHARDPROOF_GPU_PARTS='4 ranks' run 100
expect 0 'conformance, nccl, 4 ranks, smoke passed .* conformant: .* --profile smoke --verbose'
grep -q 'cuda_gpu_test\|sanitizer' "$work/out" && echo "FAILED: parts that were not asked for" && ((++failures))

# An engine that is wrong: passes for what it is, is found for something else, ends by a signal.
for ended in 'exit 0' 'echo "  GE-01  d"; exit 1' 'echo "  GE-05  a"; exit 134'; do
  start && program shardproof_gpu "case \"\$*\" in *wrong_wait*) $ended;; esac; $wrong" && SHARDPROOF_GPU_PARTS='wrong engine' run 100
  expect 1 'wrong engine, nccl, 4 ranks, libwrong_wait.so FAILED'
  expect 1 'wrong engine, nccl, 4 ranks, libwrong_scale.so passed .* FS-17  b'
done

# The faults that were packed, in their cases: what is found, found otherwise, missed, not judged; the first of two is always found.
start && cp "$bank" "$work/faults/" && cat >"$work/faults/faults.bzl" <<'END'
FAULTS = {"a": [
    ("good", "f.cc", "w2.ddp", "GE-05"), ("one", "f.cc", "w2.ddp", "GE-05"), ("wide", "f.cc", "w2.ddp.then.w8.ddp", "GE-05"),
    ("starved", "f.cc", "w2.ddp.starved", "GE-05"), ("not_packed", "f.cc", "w2.ddp", "GE-05")]}
END
touch "$work"/faults/lib{good,one,wide,starved}.so
expect_of_faults() { # EXIT_CODE ROW STATUS COUNT: of the second one, as the report has it
  program shardproof_gpu "while ((\$#)); do
  [[ \$1 != --report ]] || folder=\$2; [[ \$1 != --impl ]] || library=\$2; shift; done
if [[ \$library == *good* ]]; then echo '{\"case\": \"w2.ddp\", \"findings\": [{\"requirement\": \"GE-05\"}]}'; else echo '$2'; fi >\"\$folder/report.jsonl\"
[[ \$library == *good* ]] && exit 1; exit $1"
  SHARDPROOF_GPU_PARTS=faults run 200
  expect "$3" "faults of fixtures/faults .* 2 of 2 faults asked on nccl: $4"
}
expect_of_faults 1 '{"case": "w2.ddp", "findings": [{"requirement": "GE-05"}]}' 0 '2 found$'
expect_of_faults 1 '{"case": "w2.ddp", "findings": [{"requirement": "GE-11"}]}' 0 '1 found, 1 found otherwise'
expect_of_faults 0 '{"case": "w2.ddp", "status": "pass"}' 1 '1 found, 1 missed'
expect_of_faults 0 '{"case": "w2.ddp", "status": "pass", "not_asked": [{"requirement": "GE-05"}]}' 0 '1 found, 1 not asked'
expect_of_faults 0 '{"case": "w2.ddp", "status": "pass", "not_asked": [{"requirement": "GE-32"}]}' 1 '1 found, 1 missed'
expect_of_faults 4 '{"case": "w2.ddp", "status": "not-checkable"}' 1 '1 found, 1 missed'
expect_of_faults 1 '{"case": "w2.ddp", "status": "unsupported"}' 1 '1 found, 1 missed'
expect_of_faults 3 '' 1 '1 failed, 1 found'
expect_of_faults 134 '' 1 '1 failed, 1 found'
SHARDPROOF_GPU_PARTS=faults run 50
expect 0 'faults of fixtures/faults not run .* no time'

start && program cuda_gemm_test 'echo "[  PASSED  ] 2 tests."; echo "[  FAILED  ] 1 test, listed below:"; exit 1'
run 100
expect 1 'device test cuda_gemm_test FAILED .* 2 passed, 1 failed'
expect 1 'device test cuda_gpu_test passed'

start && program cuda_comms_test 'echo "[  PASSED  ] 1 test."; echo "[  SKIPPED ] 2 tests, listed below:"' && run 100
expect 1 'device test cuda_comms_test FAILED .* 1 passed, 2 skipped'

start && program shardproof_gpu 'echo "not conformant: 1 finding"; exit 1' && run 100
expect 1 'conformance, nccl, 1 ranks FAILED .* not conformant: 1 finding'

# TERM ends it with its part.
start && program cuda_gpu_test 'echo $$ >"$GPU_TEST_PID"; exec sleep 1000'
tar -C "$work" -czf "$work/packed.tar.gz" bin lib engines faults
GPU_TEST_PID=$work/pid SHARDPROOF_GPU_PARTS=cuda_gpu_test "$gpu" run "$work/packed.tar.gz" >"$work/out" 2>&1 &
until [[ -s $work/pid ]]; do sleep 0.1; done
kill -TERM $! && wait $! && status=0 || status=$?
((status == 130)) || { echo "FAILED: status $status after TERM" && ((++failures)); }
! kill -0 "$(cat "$work/pid")" 2>/dev/null || { echo "FAILED: a part outlives ci/gpu" && ((++failures)); }

# Neither TERM nor a child of its own keeps a part alive.
start && program cuda_gpu_test 'trap "" TERM; sleep 1000 & wait; wait' && run 3
expect 1 'device test cuda_gpu_test TIMEOUT .* killed after'
expect 1 'device test cuda_kernels_test FAILED +no time was left for it'

start && program compute-sanitizer 'echo "========= ERROR SUMMARY: 4 errors"; exit 86' && run 100
expect 1 'compute-sanitizer memcheck: cuda_kernels_test FAILED .* ERROR SUMMARY: 4 errors'

# ci/nccl_tests: the environment of ranks that share a device, the median of its rounds, and what failed.
nccl_tests() { PATH=$work/fake:$PATH "$(dirname "$gpu")/nccl_tests" /a/folder "$@" >"$work/out" 2>&1 && status=0 || status=$?; }
fake() { mkdir -p "$work/fake" && printf '#!/usr/bin/env bash\n%s\n' "$2" >"$work/fake/$1" && chmod +x "$work/fake/$1"; }
unset CUDA_VISIBLE_DEVICES
fake nvidia-smi 'echo "GPU 0: a device"'
fake mpirun 'echo "$2 ranks, $NCCL_SOCKET_IFNAME, at most $NCCL_MAX_CTAS: $*"
for bus in 3 9 4; do echo "67108864 16777216 float none -1 80 7 $bus N/A"; done'
nccl_tests
expect 0 '2 ranks, lo, at most 4: .*/a/folder/reduce_scatter_perf -b 1M'
expect 0 '^all_gather 4 GB/s, reduce_scatter 4 GB/s$'
nccl_tests 4
expect 0 '4 ranks, lo, at most 2:'
fake mpirun 'echo "no such device"; exit 5'
nccl_tests
expect 1 'no such device'
fake mpirun 'for bus in 3 4; do echo "67108864 16777216 float none -1 80 7 $bus N/A"; done'
nccl_tests
expect 1 'all_gather_perf printed no three rounds'
fake nvidia-smi 'exit 9'
nccl_tests
expect 2 'shows no GPU'

"$gpu" run "$work/none" >"$work/out" 2>&1
status=$?
expect 2 'cannot be unpacked'
"$gpu" frobnicate >"$work/out" 2>&1
status=$?
expect 3 '"frobnicate" is not known'

echo "$failures failures"
((failures == 0))
