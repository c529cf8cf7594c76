#!/usr/bin/env bash
# Does ci/symmetry_cost see two verdicts that differ?   symmetry_cost_test.sh ci/symmetry_cost PROGRAM
# The real program on small worlds, good and faulty, and with a fault that only one of the two ways is shown.
set -uo pipefail
cost=$1
real=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
case=zero3.n2.twin.tp2.etp2.k2

# Beneath the real program: what `all` is asked is asked with $extra, and answered with $answer if that is not empty.
cat >"$work/program" <<'END'
#!/usr/bin/env bash
[[ $2 != all ]] || [[ -z ${answer:-} ]] || { $answer && exit; }
[[ $2 != all ]] || set -- "$@" ${extra:-}
exec "$real" "$@"
END
chmod +x "$work/program"
export real SYMMETRY_COST=$work/program
ask() { "$cost" "$@" >"$work/out" 2>&1 && status=0 || status=$?; }
expect() { # STATUS TEXT
  if [[ $status != "$1" ]] || ! grep -Eq -- "$2" "$work/out"; then
    echo "FAILED: status $status, expected $1 and a line with: $2"
    cat "$work/out"
    failures=$((failures + 1))
  fi
}
number='[0-9.e-]+'

ask --case $case --case lw.muon --ranks 16,64 --svg "$work/svg"
expect 0 "^\| \`$case\` \| 16 \| $number \| [1-9][0-9]* \| $number \| $number \| $number \| $number \| $number \|$"
expect 0 "^\| \`lw.muon\` \| 64 \|"
expect 0 '^worlds that both judged: 4 of 4; broken: -$'
for text in "<title>$case, through shapes, 64 ranks: " '<title>lw.muon, traces of all ranks, 16 ranks: ' '>processor time, s' '</svg>'; do
  grep -qF -- "$text" "$work/svg" || { echo "FAILED: the drawing has no $text" && ((++failures)); }
done
python3 -c 'import sys, xml.dom.minidom as xml; xml.parse(sys.argv[1])' "$work/svg" || ((++failures))

# A fault of one rank is one to both.
ask --case $case --ranks 16 --fault communicate:5:drop@9
expect 0 '^worlds that both judged: 1 of 1; broken: GE-01$'

# A fault that only one of them is shown; something that only one of them judges.
extra='--fault communicate:5:drop@9' ask --case $case --ranks 16 --svg "$work/none"
expect 1 "the two do not say the same: w16.$case: broken through shapes: -; of all ranks: GE-01$"
[[ ! -e $work/none ]] || { echo "FAILED: it was drawn all the same" && ((++failures)); }
like='{"ranks":16,"events":9,"shapes":0,"shapes_seconds":0,"judging_seconds":1,"mb":1,"broken":[],"judged":["GE-01"]}'
echo "$like" >"$work/answer"
answer="cat $work/answer" ask --case $case --ranks 16
expect 1 "judged through shapes: GE-01 GE-03 GE-04; of all ranks: GE-01$"

# Beyond a limit: told, and no verdict.
ask --case $case --ranks 256 --most-mb 40
expect 0 '\| - \| - \| - \| - \| over \| - \| over \|$'
expect 0 '^worlds that both judged: 0 of 1; broken: -$'
ask --case $case --ranks 256 --most-seconds 0.002
expect 0 '\| over \| - \| over \| - \|$'
extra='--most-mb 64' ask --case $case --ranks 16,256 --svg "$work/svg"
expect 0 '^worlds that both judged: 1 of 2; broken: -$'
grep -qF '256 ranks: over</title>' "$work/svg" || { echo "FAILED: the drawing does not say over" && ((++failures)); }

# Not measured.
ask --case zero3.n64.tp2 --ranks 16
expect 2 'ended with status 2: symmetry_cost: w16.zero3.n64.tp2: rank 0: '
answer=false ask --case $case --ranks 16 --svg /no/such/folder/svg
expect 2 'symmetry_cost: --svg /no/such/folder/svg: No such file'
SYMMETRY_COST=/no/such/program ask --ranks 16
expect 2 'No such file'
for wrong in '--case nothing --ranks 4' '--ranks 0' '--ranks x' '--frob' '--most-mb -1 --ranks 16' '--fault x --ranks 16'; do
  # shellcheck disable=SC2086  # an option and its value
  ask $wrong
  expect 3 'ci/symmetry_cost: '
done

echo "$failures failures"
((failures == 0))
