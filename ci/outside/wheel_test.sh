#!/usr/bin/env bash
# usage: wheel_test.sh WHEEL_FOLDER USE.md (in the runfiles)
# Does an engine's repository get by with the wheel? What USE.md says below "With pip" is done in a fresh environment without a network:
# ddp.c must be judged green, wrong_wait.c red, and the readers must tell the same as the files, without torch.
set -uo pipefail
wheel=$(ls -d "$PWD/$1"/*.whl) guide=$PWD/$2
. ci/outside/guide.sh
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
python3 -c 'import ensurepip, venv' 2>/dev/null || { echo "skipped: python3-venv is not installed (ci/setup installs it)" && exit 0; }

fail() {
  echo "FAILED: $*"
  cat "$here"/*/log 2>/dev/null
  exit 1
}

# Nothing of a checkout or of another installation, and no index.
unset PYTHONPATH SHARDPROOF SHARDPROOF_MODEL
export PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 SHARDPROOF_WHEEL=$wheel
mkdir "$here/right" "$here/wrong" && cd "$here/right" || exit 1
block "$guide" "With pip" sh >commands
block "$guide" "With pip" python >read.py
(($(wc -l <commands) >= 5 && $(wc -l <read.py) >= 8)) || fail "no commands below \"With pip\""
timeout 300 bash -e commands >log 2>&1 </dev/null || fail "ddp.c is not judged green"
grep -q '^conformant: ' log || fail "ddp.c has no verdict"
bin=$PWD/.venv/bin examples=$(.venv/bin/shardproof --prefix)/share/shardproof/conformance/examples
"$bin/python" read.py >said 2>log || fail "the readers fail"
grep -q "^conformant {'pass': " said || fail "the readers tell another verdict: $(<said)"
grep -q '^w[0-9].* [1-9][0-9]* ranks [1-9][0-9]* collectives' said || fail "the readers see no collectives: $(<said)"

# The environment stays, the engine is another one.
cd "$here/wrong" || exit 1
one_file "$examples" wrong_wait >../wrong_wait.c
sed -e '/venv/d' -e "s|^cp .*|cp ../wrong_wait.c ddp.c|" ../right/commands >commands
PATH=$bin:$PATH SHARDPROOF=$("$bin/shardproof" --prefix) timeout 300 bash -e commands >log 2>&1 </dev/null
[[ $? == 1 ]] || fail "wrong_wait.c is not judged red"
"$bin/python" ../right/read.py >said 2>>log || fail "the readers fail"
grep -q "^not conformant {.*'fail': " said || fail "the readers tell another verdict: $(<said)"
cause=$("$bin/python" -c 'from shardproof import reports; print(reports.read("report").failed()[0].causes()[0].requirement)')
grep -q "$cause" log || fail "the cause $cause is not what the console tells"
grep -q "^w.* $cause " said || fail "no cause among what the readers tell: $(<said)"

# The program is the archive's; torch is not there, and what needs it says so.
version=$("$bin/shardproof" --version)
name=$(basename "$wheel")
[[ $version =~ ^"shardproof $(cut -d - -f 2 <<<"$name")"(\ \(.*\))?", ABI " ]] || fail "--version says $version, the wheel is $name"
[[ $("$bin/pip" show shardproof) == *"Requires: "$'\n'* ]] || fail "the wheel needs other packages: $("$bin/pip" show shardproof)"
"$bin/pip" install "$wheel[torch]" >log 2>&1 && fail "[torch] asks for nothing"
grep -q 'torch' log || fail "[torch] does not ask for torch"
"$bin/python" -c 'from shardproof import model; print(model.case_facts("w2.ddp")["world"])' >said 2>log || fail "the model library does not load"
"$bin/shardproof-torch" run --engine ddp --profile smoke >said 2>&1
[[ $? == 3 && $(<said) == *"[torch]"* ]] || fail "shardproof-torch without torch: $(<said)"
if command -v mpirun >/dev/null; then
  mpirun -n 2 "$bin/shardproof" run --fabric mpi --case w2.ddp >log 2>&1 || fail "under mpirun"
  tail -n 1 log | grep -q '^conformant: 1 pass' || fail "no verdict under mpirun"
fi
"$bin/shardproof" trace export --perfetto run.json trace:. >said 2>&1
[[ $? == 3 ]] || fail "exit codes do not come through"
echo "ok: pip"
