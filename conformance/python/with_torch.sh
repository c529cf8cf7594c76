#!/usr/bin/env bash
# usage: with_torch.sh PYTHON SHARDPROOF LIBSHARDPROOF_MODEL SHARDPROOF_DEVICE SCRIPT [ARGS]
# Runs a script with this package, and what it needs, in its environment.
set -euo pipefail
python=$1 script=$5
export SHARDPROOF=$PWD/$2 SHARDPROOF_MODEL=$PWD/$3 SHARDPROOF_DEVICE=$PWD/$4
export PYTHONPATH=$PWD/conformance/python PYTHONDONTWRITEBYTECODE=1 HOME=${TEST_TMPDIR:-/tmp}
exec "$python" "$script" "${@:6}"
