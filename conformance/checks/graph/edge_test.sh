#!/bin/sh
# Each synchronisation of a ZeRO-3 run with twins and hybrid sharding, left out in turn: a race, or a proof that there is none.
set -eu
shardproof=$1
edge_report=$2
case=w8.zero3.n2.twin.adamw
out=${TEST_TMPDIR:-$(mktemp -d)}
"$shardproof" run --case "$case" --trace "$out/traces"
"$edge_report" "$out/traces/$case" > "$out/edges.txt"
grep -v '^needed: ' "$out/edges.txt"
grep -q '^needed: ' "$out/edges.txt"
