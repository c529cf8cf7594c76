#!/usr/bin/env bash
# usage: archive_test.sh ARCHIVE USE.md HEADING TOOL... (in the runfiles)
# Does an engine's repository get by with the archive? It is unpacked outside of this repository, and what USE.md says below HEADING is
# done there, as it stands: ddp.c must be judged green; with wrong_wait.c in its place the last command must fail, and the verdict must be
# "not conformant".
set -uo pipefail
archive=$PWD/$1 guide=$PWD/$2 heading=$3
shift 3
for tool in "$@"; do
  command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed (ci/setup installs it)" && exit 0; }
done
. ci/outside/guide.sh
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
cd "$here" || exit 1
tar xzf "$archive"

fail() {
  echo "FAILED: $*"
  cat log 2>/dev/null
  exit 1
}

# judge FOLDER ENGINE: does what the guide says with this engine.
judge() {
  mkdir -p "$1" && cd "$1" || exit 1
  block "$guide" "$heading" cmake >CMakeLists.txt
  block "$guide" "$heading" sh >commands
  [[ $2 == ddp ]] || sed -i "s|^cp .*|cp ../$2.c ddp.c|" commands
  (($(wc -l <commands) >= 4)) || fail "no commands below \"$heading\""
  SHARDPROOF=$SHARDPROOF timeout 600 bash -e commands >log 2>&1 </dev/null
}

SHARDPROOF=$(ls -d "$here"/shardproof-*)
examples=$SHARDPROOF/share/shardproof/conformance/examples
one_file "$examples" wrong_wait >wrong_wait.c
(judge right ddp) || fail "ddp.c is not judged green: $(cat right/log)"
(judge wrong wrong_wait) && fail "wrong_wait.c is judged green: $(cat wrong/log)"
grep -q '^\(.*: \)\?not conformant' wrong/log || fail "wrong_wait.c has no verdict: $(cat wrong/log)"

# What the package does not understand it refuses.
mkdir refused
while IFS=: read -r arguments words; do
  [[ $heading == *CMake ]] || break
  block "$guide" "$heading" cmake | sed -e '/add_library\|link_libraries/d' -e "s/shardproof_add_conformance_test.*/shardproof_add_conformance_test($arguments)/" \
    >refused/CMakeLists.txt
  cmake -S refused -B refused/build -DCMAKE_PREFIX_PATH="$SHARDPROOF" >log 2>&1 && fail "CMake takes $arguments"
  tr -s ' \n' ' ' <log | grep -qF "shardproof_add_conformance_test: $words" || fail "CMake does not say what is wrong with $arguments"
done <<'REFUSED'
NAME x ENGINE x.so SHARDS 0:SHARDS is a number from 1: 0
NAME x ENGINE x.so SHARD 2:not understood: SHARD;2
NAME x ENGINE x.so SUPPORTS:not understood: SUPPORTS
NAME x:NAME and ENGINE are needed
REFUSED

# What the programs need of the machine is glibc and libstdc++, and for --fabric mpi MPICH; the rest lies in lib/.
foreign=$(ldd "$SHARDPROOF/bin/shardproof" | grep -vE "linux-vdso|ld-linux|lib(c|m|stdc\+\+|gcc_s)\.so|=> $SHARDPROOF/bin/\.\./lib/")
[[ -z $foreign ]] || fail "bin/shardproof needs of the machine: $foreign"
ran=$(env -i "$SHARDPROOF/bin/shardproof" run --case w2.ddp) || fail "the reference is not judged green: $ran"
mpirun -n 2 "$SHARDPROOF/bin/shardproof" run --fabric mpi --case w2.ddp >log 2>&1 || fail "under mpirun"
tail -n 1 log | grep -q '^conformant: 1 pass' || fail "no verdict under mpirun"
rm log "$SHARDPROOF/bin/shardproof_mpi"
PMI_SIZE=2 PMI_RANK=0 "$SHARDPROOF/bin/shardproof" run --fabric mpi --case w2.ddp >log 2>&1
[[ $? == 3 && $(<log) == *"--fabric mpi needs $SHARDPROOF/bin/shardproof_mpi"* ]] || fail "no word of the missing program"

# A run begins with the same version.
version=$(env -i "$SHARDPROOF/bin/shardproof" --version)
[[ $version == "shardproof "[0-9]*.[0-9]*.[0-9]*", ABI "* ]] || fail "--version says $version"
[[ ${version%%,*} == "${ran%%,*}" ]] || fail "--version says $version, a run says ${ran%%,*}"
echo "ok: $heading"
