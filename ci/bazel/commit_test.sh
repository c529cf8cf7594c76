#!/bin/sh
# usage: commit_test.sh COMMIT_SH. What it says of a repository, of one with changes, of a folder below one, and of none.
set -eu
script=$(readlink -f "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export HOME="$folder" GIT_CONFIG_NOSYSTEM=1 GIT_CEILING_DIRECTORIES="$folder"

says() { # FOLDER EXPECTED
  said=$(cd "$1" && "$script")
  [ "$said" = "$2" ] || {
    echo "FAILED: in $1 it says \"$said\", not \"$2\"" >&2
    exit 1
  }
}
git_here() { git -C "$folder/ours" -c user.name=test -c user.email=test@localhost "$@"; }

mkdir -p "$folder/none" "$folder/ours/below"
git -c init.defaultBranch=main init --quiet "$folder/ours"
says "$folder/none" ""
says "$folder/ours" "" # nothing is committed yet
echo 1 >"$folder/ours/file"
git_here add file
git_here commit --quiet --message one
commit=$(git_here rev-parse --short=12 HEAD)
[ ${#commit} = 12 ]
says "$folder/ours" "BUILD_SCM_REVISION shardproof:$commit"
touch -d 2001-01-01 "$folder/ours/file" # the same contents
says "$folder/ours" "BUILD_SCM_REVISION shardproof:$commit"
git_here worktree add --quiet "$folder/beside" >/dev/null
says "$folder/beside" "BUILD_SCM_REVISION shardproof:$commit"
says "$folder/ours/below" "" # a copy of the suite inside of somebody's repository
echo 2 >"$folder/ours/file"
says "$folder/ours" "BUILD_SCM_REVISION shardproof:$commit+changes"
