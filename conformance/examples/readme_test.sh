#!/usr/bin/env bash
# usage: readme_test.sh (in the runfiles)
# Do the commands work that the README of examples/ and the one at the top tell a newcomer? All lines that compile an
# engine or begin with shardproof or mpirun, and all `shardproof ...` in the text, are run in a folder that looks as the
# repository does after bazel build; ID is w2.ddp, FOLDER its traces or dumps, EARLIER and LATER its report. Commands with the name of a wrong engine
# answer 1, dumps without a mistake 4 (they do not tell all), all others 0. Left out: what builds, and what needs a GPU (shardproof_gpu).
set -uo pipefail
root=$PWD
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
ln -s "$root/conformance" "$here/conformance"
ln -s "$root" "$here/bazel-bin"
cd "$here" || exit 1
shardproof=bazel-bin/conformance/shardproof
"$shardproof" run --case w2.ddp --trace traces --report report >log 2>&1 || { cat log && exit 1; }
python3 "$root/fixtures/flight_recorder/dumps.py" dumps 2 10 || exit 1

# One a line, in the order of the text.
commands() {
  sed -nE -e 's/^    ((cc|bazel-bin\/conformance\/shardproof|mpirun) .*)/\1/p' "$1"
  grep -oE '`shardproof [^`]*`' "$1" | tr -d '`' | sed "s|^|bazel-bin/conformance/|"
}

bad=0 n=0
for readme in conformance/examples/README.md bazel-bin/README.md; do
  while IFS= read -r command; do
    [[ $command == *shardproof_gpu* || $command == 'bazel-bin/conformance/shardproof run' ]] && continue
    expected=0
    [[ $command == *libwrong_* ]] && expected=1
    [[ $command == *flight:* ]] && expected=4
    command=${command//--case ID/--case w2.ddp}
    command=${command//trace:FOLDER/trace:traces/w2.ddp}
    command=${command//flight:FOLDER/flight:dumps}
    command=${command//EARLIER LATER/report report}
    timeout 600 bash -c "$command" >log 2>&1 </dev/null
    status=$?
    ((n += 1))
    ((status == expected)) && continue
    echo "FAILED: $readme: $command: exit code $status, expected $expected"
    tail -n 5 log
    bad=1
  done < <(commands "$readme")
done
((n >= 12)) || { echo "FAILED: only $n commands were found"; bad=1; }
((bad)) || echo "ok: $n commands"
exit "$bad"
