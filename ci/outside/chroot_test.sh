#!/usr/bin/env bash
# usage: chroot_test.sh ARCHIVE (in the runfiles)
# Does the archive run on a bare machine? In a root that holds it, glibc, libstdc++ and nothing else, no shell, no compiler, no MPICH, it must
# judge ddp.c green and wrong_wait.c red. The engines are compiled outside, as they are for a machine without a compiler.
set -uo pipefail
archive=$PWD/$1
. ci/outside/guide.sh
PATH=$PATH:/usr/sbin:/sbin
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
cd "$here" || exit 1

fail() {
  echo "FAILED: $*"
  cat log 2>/dev/null
  exit 1
}

# A root of one's own needs root, or user namespaces. Its /proc is that of a PID namespace: nothing of it is left behind.
enter=()
for way in "unshare --mount --pid --fork" "unshare --user --map-root-user --mount --pid --fork"; do
  mkdir -p try/proc
  # shellcheck disable=SC2086  # words
  if $way bash -c 'mount -t proc proc try/proc && chroot / true' 2>why; then read -ra enter <<<"$way" && break; fi
done
((${#enter[@]})) || { echo "skipped: no root of one's own can be made here, neither by root nor in a user namespace: $(<why)" && exit 0; }

mkdir -p root/proc root/tmp root/engines
tar xzf "$archive" -C root
cd root || exit 1
SHARDPROOF=$(ls -d shardproof-*)
examples=$SHARDPROOF/share/shardproof/conformance/examples
one_file "$examples" wrong_wait >../wrong_wait.c
for engine in "$examples/ddp.c" ../wrong_wait.c; do
  cc -std=c11 -shared -fPIC -I "$SHARDPROOF/include/conformance/abi" -o "engines/lib$(basename "$engine" .c).so" "$engine" || fail "cc"
done
# As the loader finds them: glibc and libstdc++, what else there is must be in the archive.
ldd "$SHARDPROOF/bin/shardproof" engines/*.so | sed -n 's/.*=> //; s/^[[:blank:]]*\(\/[^ ]*\) (0x.*/\1/p' |
  grep -E '/(lib(c|m|stdc\+\+|gcc_s)\.so|ld-linux)[^/]*$' | sort -u | while read -r library; do
  mkdir -p ".$(dirname "$library")" && cp -L "$library" ".$library" || exit 1
done || fail "the libraries are not copied"
rm -f "$SHARDPROOF/bin/shardproof_mpi"
cd ..
echo "in the root: $(find root -type f -not -path "root/$SHARDPROOF/*" -printf '%P ')"
[[ $(find root -name '*sh' -o -name 'cc*' -o -name '*mpi*' | grep -v "/$SHARDPROOF/") == "" ]] || fail "the root is not bare"

# inside ARGUMENTS...: the program, as the first process of that root.
inside() {
  timeout 300 env -i "${enter[@]}" bash -c 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$here/root" \
    "/$SHARDPROOF/bin/shardproof" "$@" >log 2>&1 </dev/null
}
inside --version && grep -q '^shardproof [0-9]' log || fail "--version"
inside run --impl lib:/engines/libddp.so --profile smoke --report /tmp/report || fail "ddp.c is not judged green"
grep -q '^conformant: [1-9][0-9]* pass' log || fail "ddp.c has no verdict"
[[ -s root/tmp/report/report.html && -s root/tmp/report/badge.svg ]] || fail "there is no report"
inside run --impl lib:/engines/libwrong_wait.so --profile smoke
[[ $? == 1 ]] && grep -q '^not conformant: [1-9][0-9]* fail' log || fail "wrong_wait.c is not judged red"
inside run --fabric mpi --impl lib:/engines/libddp.so
[[ $? == 3 ]] && grep -q 'mpi' log || fail "--fabric mpi without MPICH: no word of what is missing"
echo "ok: chroot"
