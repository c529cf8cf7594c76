#!/usr/bin/env bash
# usage: cause_first_test.sh SHARDPROOF FOLDER
# A wrong engine of FOLDER, and the reference with one all-reduce left out, take at most 30 lines on the console, and the
# requirement that names the mistake stands first.
set -uo pipefail
shardproof=$1 folder=$2
bad=0

expect() {  # REQUIREMENT ARGUMENTS...: of shardproof run
  local first lines text
  text=$("$shardproof" run "${@:2}" 2>&1)
  lines=$(wc -l <<<"$text")
  first=$(grep -oE -m 1 '^  [A-Z]{2}-[0-9]{2}' <<<"$text" | tr -d ' ')
  [[ $first == "$1" ]] && ((lines <= 30)) && return
  echo "$text"
  echo "FAILED: $* takes $lines lines and begins with ${first:-nothing}"
  bad=1
}

expect GE-05 --impl "lib:$folder/libwrong_wait.so" --profile smoke
expect GE-01 --impl "lib:$folder/libwrong_order.so" --profile smoke
expect FS-17 --impl "lib:$folder/libwrong_scale.so" --profile smoke
expect GE-01 --case w4.ddp.do=tt --fault communicate:3:drop@1
exit "$bad"
