#!/usr/bin/env bash
# Does each folder of checks/ include only those below it? README.md draws the layers. That testing/ is used by tests
# only is Bazel's to say (testonly).
set -uo pipefail
cd conformance/checks || exit 1

allowed() {  # of a folder: the folders that it may include
  case $1 in
    program) echo "" ;;
    base) echo "program" ;;
    testing) echo "program base" ;;
    layer_wise | symmetry) echo "program base testing graph" ;;
    parts) echo "" ;;
    *) echo "program base testing" ;;
  esac
}

bad=0 folders=0
for folder in */; do
  folder=${folder%/}
  folders=$((folders + 1))
  for other in $(cat "$folder"/*.h "$folder"/*.cc | sed -n 's|^#include "conformance/checks/\([a-z_]*\)/.*|\1|p' | sort -u); do
    [[ " $folder $(allowed "$folder") " == *" $other "* ]] && continue
    echo "FAILED: $folder/ includes $other/:"
    grep -n "^#include \"conformance/checks/$other/" "$folder"/*
    bad=1
  done
done
((folders >= 14)) || { echo "FAILED: only $folders folders are seen"; bad=1; }
exit "$bad"
