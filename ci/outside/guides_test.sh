#!/usr/bin/env bash
# usage: guides_test.sh ARCHIVE WAIVERS.md GATE.md HOSTS.md (in the runfiles)
# Do the commands of these guides do what the guides say, with an engine that is wrong and one that is right?
set -uo pipefail
archive=$PWD/$1 waivers=$PWD/$2 gate=$PWD/$3 hosts=$PWD/$4
. ci/outside/guide.sh
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
cd "$here" || exit 1
tar xzf "$archive"
SHARDPROOF=$(ls -d "$here"/shardproof-*)
export SHARDPROOF PATH=$SHARDPROOF/bin:$PATH

fail() {
  echo "FAILED: $*"
  cat log 2>/dev/null
  exit 1
}

# engine NAME: as the guides call it.
engine() {
  one_file "$SHARDPROOF/share/shardproof/conformance/examples" "$1" >engine.c
  cc -std=c11 -shared -fPIC -I "$SHARDPROOF/include/conformance/abi" -o libddp.so engine.c || fail "cc"
}

block "$waivers" "Write one" sh >commands
(($(wc -l <commands) == 4)) || fail "no commands below \"Write one\""
engine wrong_wait
timeout 300 bash -e commands >log 2>&1 || fail "WAIVERS.md"
grep -q '^red$' log || fail "the run without waivers is not red"
grep -q '^conformant where judged: .*\|^conformant: .*1 waived' <(tail -n 1 log) || fail "the waivers excuse nothing"
grep -q 'requirement = "GE-05"' waivers.toml || fail "the draft has no cause: $(<waivers.toml)"
(($(grep -c '^requirement' waivers.toml) == $(grep -c 'GE-05' waivers.toml))) || fail "the draft has what follows from the cause: $(<waivers.toml)"
shardproof waive report >none.toml
grep -q '^\[\[waiver' none.toml && fail "what is waived is drafted again: $(<none.toml)"
# As drafted it is refused. With a right engine it is superfluous, and one of one case turns the run red.
sed 's/^reason = .*/reason = ""/' waivers.toml >drafted.toml
shardproof run --impl lib:./libddp.so --profile smoke --waivers drafted.toml >log 2>&1
[[ $? == 3 ]] && grep -q 'drafted.toml:4: a waiver needs a reason' log || fail "a draft without reasons is taken"
engine ddp
shardproof run --impl lib:./libddp.so --profile smoke --waivers waivers.toml >log 2>&1
[[ $? == 1 ]] && grep -q 'unexpected pass, remove the waiver' log || fail "a superfluous waiver is not told"
# The other files of the guide are waiver files.
for heading in "A waiver" "What is wrong with a waiver"; do
  block "$waivers" "$heading" toml >other.toml
  [[ -s other.toml ]] || fail "no file below \"$heading\""
  shardproof run --impl lib:./libddp.so --profile smoke --waivers other.toml >log 2>&1 || fail "$heading"
done
{ echo 'strict = true' && block "$waivers" "A waiver" toml; } >strict.toml
shardproof run --impl lib:./libddp.so --profile smoke --waivers strict.toml >log 2>&1
[[ $? == 1 ]] && grep -q 'is unused' log || fail "strict has no effect"

# Shares of the cases; then a worse engine, against them.
block "$gate" "Elsewhere" sh >commands
(($(wc -l <commands) == 4)) || fail "no commands below \"Elsewhere\""
rm -rf report reports
timeout 300 bash -e commands >log 2>&1 || fail "GATE.md with ddp.c"
grep -q 'Nothing to compare with' out/comment.md || fail "$(<out/comment.md)"
mv reports earlier
engine wrong_wait
timeout 300 bash -e commands >log 2>&1
[[ $? == 1 ]] && grep -q '| broken | GE-05 |' out/comment.md || fail "GATE.md with wrong_wait.c"
shardproof verdict reports >log 2>&1
[[ $? == 1 ]] && grep -q '^not conformant: .*1 fail' log || fail "verdict"
rm -r reports/1
shardproof verdict reports >log 2>&1
[[ $? == 3 ]] && grep -q 'report of shard 1/2 is missing' log || fail "a verdict without the report of a shard"

# What the guide gives to the workflow and to the template, these know.
python3 - "$gate" "$SHARDPROOF/share/shardproof" <<'PYTHON' || fail "what GATE.md says of the workflow"
import pathlib, re, sys, yaml
guide, share = pathlib.Path(sys.argv[1]).read_text(), pathlib.Path(sys.argv[2])
caller, template = (yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", guide, re.S))
declared = yaml.safe_load((share / ".github/workflows/gate.yml").read_text())[True]["workflow_call"]["inputs"]
given = caller["jobs"]["gate"]["with"]
assert set(given) <= set(declared), set(given) - set(declared)
assert {name for name, each in declared.items() if each.get("required")} <= set(given)
for name in declared:
    assert f"`{name}`" in guide, name
known = yaml.safe_load((share / "ci/gate/gitlab.yml").read_text())
text = (share / "ci/gate/gitlab.yml").read_text()
for name in template["variables"]:
    assert name in text, name
assert set(template) - {"include", "variables"} <= set(known)
PYTHON
# The one of Slurm is done by ci/slurm.
block "$hosts" "With a host file" sh >commands
(($(wc -l <commands) == 1)) || fail "no command below \"With a host file\""
if command -v mpirun >/dev/null; then
  echo "localhost:4" >hosts
  engine ddp
  timeout 300 bash -e commands >log 2>&1 || fail "HOSTS.md with ddp.c"
  grep -q '^conformant: .*pass' log || fail "HOSTS.md with ddp.c: no verdict"
  engine wrong_wait
  timeout 300 bash -e commands >log 2>&1
  [[ $? == 1 ]] && grep -q '^not conformant: .*fail' log || fail "HOSTS.md with wrong_wait.c"
fi
# USE.md, "Versions": an engine of interface 1.0, whose table ends before `plan`, and one of another major version.
if (($(grep -c 'size = sizeof plugin' "$SHARDPROOF/share/shardproof/conformance/examples/ddp.c") != 1)); then fail "ddp.c sets size otherwise"; fi
engine ddp
# old SED_COMMAND: the verdict's exit code, of an engine whose table is another one.
old() {
  sed "s|#include \"shardproof_util.h\"|&\n#include <stddef.h>|; $1" engine.c >old.c
  cc -std=c11 -shared -fPIC -I "$SHARDPROOF/include/conformance/abi" -o libold.so old.c || fail "cc"
  shardproof run --impl lib:./libold.so --case w2.ddp >log 2>&1
}
old 's|size = sizeof plugin|size = offsetof(spf_plugin, plan)|' || fail "an engine of interface 1.0 is not taken"
old 's|abi_major = SPF_ABI_MAJOR|abi_major = SPF_ABI_MAJOR + 1|'
[[ $? == 3 ]] && grep -q 'built for interface version 2, this suite speaks 1' log || fail "an engine of another major version is taken"
echo "ok: guides"
