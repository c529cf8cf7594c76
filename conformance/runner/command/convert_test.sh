#!/usr/bin/env bash
# Is a packed run judged as its text is, and does check end within its limits? convert_test.sh SHARDPROOF
set -euo pipefail
shardproof=$PWD/$1
cd "$TEST_TMPDIR"

fail() {
  echo "$*" >&2
  exit 1
}

# Two ranks gather in another order: a finding.
mkdir text
for rank in 0 1; do
  {
    echo '{"shardproof_trace":1,"rank":'$rank',"world":2,"case":"two","provides":["groups","collectives","sync","memory","work"]}'
    echo '{"group":0,"comm":"a","name":"a","ranks":[0,1]}'
    echo '{"group":1,"comm":"b","name":"b","ranks":[0,1]}'
    for group in $rank $((1 - rank)); do echo '{"e":"collective","op":"barrier","g":'$group'}'; done
    echo '{"end":2,"status":"complete"}'
  } >text/trace.0000$rank.jsonl
done

"$shardproof" trace convert --to packed trace:text >said
grep -qx 'packed: 4 events of 2 ranks, packed' said || fail "convert said: $(cat said)"
[[ $(echo packed/*) == 'packed/trace.00000.packed packed/trace.00001.packed' ]] || fail "it wrote: $(echo packed/*)"
for form in text packed; do
  status=0
  "$shardproof" check trace:$form >$form.said 2>&1 || status=$?
  [[ $status == 1 ]] || fail "check of $form ended with $status: $(cat $form.said)"
done
grep -q 'GE-0' text.said || fail "no finding: $(cat text.said)"
same() { sed 's/trace:[^ ]*/trace:FOLDER/; s/[0-9.]* s\b//g' "$1"; }
diff <(same text.said) <(same packed.said) ||
  fail "packed is judged otherwise"

"$shardproof" trace convert --text --to back trace:packed >said
"$shardproof" trace convert --text --to again trace:text >said
diff -r back again || fail "text does not come back"

refused() { # STATUS WORDS COMMAND...: the command must end so
  local wanted=$1 words=$2 status=0
  shift 2
  "$@" >said 2>&1 || status=$?
  [[ $status == "$wanted" ]] && grep -q -- "$words" said || fail "$*: status $status, said: $(cat said)"
}
refused 3 'traces lie in it already' "$shardproof" trace convert --to packed trace:text
refused 3 'trace convert takes trace:DIR' "$shardproof" trace convert --to other flight:text
cp text/trace.00000.jsonl packed/
refused 3 'two files for rank 0' "$shardproof" check trace:packed

# A long run is judged in parts, and what is said of it is what is said of the whole.
mkdir long
for rank in 0 1; do
  awk -v rank=$rank 'BEGIN {
    print "{\"shardproof_trace\":1,\"rank\":" rank ",\"world\":2,\"case\":\"x\",\"provides\":[\"groups\",\"collectives\",\"sync\",\"memory\",\"work\"]}"
    print "{\"group\":0,\"comm\":\"a\",\"name\":\"a\",\"ranks\":[0,1]}"
    print "{\"stream\":0,\"name\":\"s\"}"
    print "{\"e\":\"alloc\",\"s\":0,\"a\":0,\"k\":64}"
    n = 1
    for (step = 0; step < 2000; ++step) {
      print "{\"e\":\"collective\",\"op\":\"all_reduce\",\"ty\":\"f32\",\"g\":0,\"s\":0,\"k\":8,\"r\":[[0,1,0,32],[0,2,0,32]]}"
      print "{\"e\":\"launch\",\"s\":0,\"r\":[[0,3,0,64]]}"
      print "{\"e\":\"stream_sync\",\"s\":0}"
      n += 3
    }
    print "{\"end\":" n ",\"status\":\"complete\"}"
  }' >long/trace.0000$rank.jsonl
done
"$shardproof" trace convert --to long_packed trace:long >said
for form in long long_packed; do
  "$shardproof" check --all --part-events 500 trace:$form >parts.said && fail "no calls, and judged all"
  "$shardproof" check --all --part-events 0 trace:$form >whole.said && fail "no calls, and judged all"
  grep -q 'judged in 2[0-9] parts' parts.said || fail "not in parts: $(cat parts.said)"
  diff <(same parts.said | grep -v 'judged in [0-9]* parts') <(same whole.said) || fail "$form: parts say something else"
done
# A group that the text defines late may be one that was there.
cp -r long late
sed -i '5000i {"group":1,"comm":"b","name":"b","ranks":[0]}' late/trace.00000.jsonl
cp -r long last
sed -i '$i {"group":1,"comm":"b","name":"b","ranks":[0]}' last/trace.00000.jsonl
for form in late last; do
  "$shardproof" check --part-events 500 trace:$form >parts.said && fail "no calls, and judged all"
  grep -q 'not judged in parts: rank 0: a group is defined' parts.said || fail "$form said: $(cat parts.said)"
done

# One operation of rank 1 late in the run is another one: found, and by its place in the file.
sed -i '5000s/.*/{"e":"collective","op":"barrier","g":0,"s":0}/' long/trace.00001.jsonl
"$shardproof" check --part-events 500 trace:long >parts.said && fail "a run that hangs is conformant"
grep -q 'not judged in parts: a part has a finding (GE-01)' parts.said || fail "it said: $(cat parts.said)"
grep -q 'rank 1, event 4996' parts.said || fail "the place is not named: $(cat parts.said)"

# 3,000,000 streams that race take several seconds and more than 400 MiB.
mkdir large
awk 'BEGIN {
  print "{\"shardproof_trace\":1,\"rank\":0,\"world\":1,\"case\":\"x\",\"provides\":[\"sync\",\"memory\",\"work\"]}"
  n = 3000000
  for (i = 0; i < n; ++i) print "{\"stream\":" i ",\"name\":\"s" i "\"}"
  print "{\"e\":\"alloc\",\"s\":0,\"a\":0,\"k\":64}"
  for (i = 1; i < n; ++i) print "{\"e\":\"launch\",\"s\":" i ",\"r\":[[0,2,0,64]]}"
  print "{\"end\":" n ",\"status\":\"complete\"}"
}' >large/trace.00000.jsonl
refused 3 'more processor time than --limit-seconds' "$shardproof" check --limit-seconds 1 trace:large
refused 3 'more memory than --limit-memory' "$shardproof" check --limit-memory 400 trace:large
