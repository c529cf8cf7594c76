#!/usr/bin/env bash
# Does ci/bench see what is slower, and what it could not compare?   bench_test.sh ci/bench PROGRAM...
# Compares scripts that print figures; the programs, the real benchmarks, run once each.
set -uo pipefail
bench=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# program FOLDER NAME: prints the rows of the call that it is: a line of its standard input each.
program() {
  mkdir -p "$work/$1"
  cat >"$work/$1/$2.rows"
  cat >"$work/$1/$2" <<'END'
#!/usr/bin/env bash
calls=$0.calls
echo >>"$calls"
echo "$(basename "$(dirname "$0")")" "$@" >>"$(dirname "$0")/../order"
rows=$(sed -n "$(wc -l <"$calls")p" "$0.rows")
[[ -n $rows ]] || rows=$(tail -n 1 "$0.rows")
[[ $rows != exit ]] || { echo "no memory" >&2 && exit 9; }
first=yes
printf '{"benchmarks": ['
for row in $rows; do
  [[ $first == yes ]] || printf ,
  first=no
  printf '{"name": "%s", "cpu_time": %s, "time_unit": "us"}' "${row%=*}" "${row#*=}"
done
echo ']}'
END
  chmod +x "$work/$1/$2"
}
compare() { "$bench" compare "$work/old" "$work/new" --rounds 3 "$@" >"$work/out" 2>&1 && status=0 || status=$?; }
expect() { # STATUS TEXT
  if [[ $status != "$1" ]] || ! grep -Eq -- "${2// / +}" "$work/out"; then
    echo "FAILED: status $status, expected $1 and a line with: $2"
    cat "$work/out"
    failures=$((failures + 1))
  fi
}
start() { # all programs are there; two of them are not looked at
  rm -rf "$work/old" "$work/new" "$work/order"
  local folder name
  for folder in old new; do
    for name in recording judging; do program $folder ${name}_benchmark <<<"$name=7"; done
  done
}

# A machine that becomes slower in the second round; Judge needs twice as long in each.
start
program old sim_benchmark <<<$'Steps=10 Judge=100\nSteps=30 Judge=300\nSteps=10 Judge=100'
program new sim_benchmark <<<$'Steps=10 Judge=200\nSteps=31 Judge=600\nSteps=10 Judge=210'
compare
expect 1 'Judge 100.00 us 210.00 us 2.000 \(2.000 to 2.100\) slower'
expect 1 'Steps .* 1.000 \(1.000 to 1.033\) same'
expect 1 'recording 7.00 us 7.00 us 1.000 \(1.000 to 1.000\) same'
order=$(sed -n 's/ .*//p' "$work/order" | tail -n 6 | paste -s -d ' ') # of the last of the three programs
[[ $order == "old new new old old new" ]] || { echo "FAILED: $order does not alternate" && ((++failures)); }
grep -q -- '--benchmark_filter=\.$' "$work/order" || { echo "FAILED: no filter" && ((++failures)); }
compare 'Steps|Judge'
grep -q -- '--benchmark_filter=Steps|Judge$' "$work/order" || { echo "FAILED: the names are no filter" && ((++failures)); }

# One round of three that is slower is no proof.
start
program old sim_benchmark <<<$'Judge=100\nJudge=100\nJudge=100'
program new sim_benchmark <<<$'Judge=500\nJudge=100\nJudge=90'
compare --json "$work/json"
expect 0 'Judge .* \(0.900 to 5.000\) same'
grep -qF '"Judge":{"old":[100000.0,100000.0,100000.0],"new":[500000.0,100000.0,90000.0]}' <(tr -d '\n ' <"$work/json") ||
  { cat "$work/json" && echo "FAILED: --json" && ((++failures)); }

start
program old sim_benchmark <<<'Judge=100'
program new sim_benchmark <<<'Judge=50'
compare
expect 0 'Judge .* 0.500 \(0.500 to 0.500\) faster'

# What is there on one side only has not been compared.
start
program old sim_benchmark <<<'Judge=100 Lost=1'
program new sim_benchmark <<<'Judge=100'
compare
expect 2 'Lost not in both: not compared'
rm "$work/new/recording_benchmark" && compare
expect 2 'recording_benchmark not in both: not compared'
rm "$work/old/recording_benchmark" && compare
expect 2 'recording_benchmark not in both: not compared'
rm "$work"/old/*_benchmark && program old recording_benchmark <<<'Record=1' && compare
expect 2 'nothing was compared'

# The number of iterations is no part of a name.
start
program old sim_benchmark <<<'Record/0/iterations:10=100'
program new sim_benchmark <<<'Record/0/iterations:20=100'
compare
expect 0 'Record/0 100.00 us .* same'
program new sim_benchmark <<<'Record/0/iterations:20=0'
compare
expect 2 'Record/0/iterations:20 of .* 0 is no time'
chmod -x "$work/new/sim_benchmark" && compare
expect 2 'PermissionError'

start
program old sim_benchmark <<<'Judge=100'
program new sim_benchmark <<<'exit'
compare
expect 2 'new/sim_benchmark ended with status 9: no memory'

rm -rf "$work/new" && mkdir "$work/new" && compare
expect 3 'has none of sim_benchmark, recording_benchmark, judging_benchmark'
"$bench" compare "$work/old" >"$work/out" 2>&1 && status=0 || status=$?
expect 3 'compare wants OLD and NEW'
for wrong in '--rounds 0' '( ' '--json /no/such/folder/x' '--frob'; do
  # shellcheck disable=SC2086  # an option and its value
  compare $wrong
  expect 3 'ci/bench: '
done

# The real ones: each of their benchmarks runs, and gives a figure.
mkdir -p "$work/real"
for program in "$@"; do ln -s "$(realpath "$program")" "$work/real/"; done
"$bench" compare "$work/real" "$work/real" --rounds 1 >"$work/out" 2>&1 && status=0 || status=$?
((status == 1)) && status=0 # of two equal ones one may be slower in the only round
for program in "$@"; do
  while read -r name; do expect 0 "^${name%%/iterations:*} .*(same|slower|faster)$"; done < <("$program" --benchmark_list_tests 2>/dev/null)
done

echo "$failures failures"
((failures == 0))
