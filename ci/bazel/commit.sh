#!/bin/sh
# For Bazel (--workspace_status_command): the commit that programs are linked at, which they tell in reports and by --version.
# Nothing outside a git repository. Bazel links no program anew because of it.
top=$(git rev-parse --show-toplevel 2>/dev/null) && [ "$top" = "$(pwd -P)" ] && commit=$(git rev-parse --short=12 HEAD 2>/dev/null) || exit 0
git --no-optional-locks diff --quiet HEAD -- 2>/dev/null || commit=$commit+changes
echo "BUILD_SCM_REVISION shardproof:$commit"
