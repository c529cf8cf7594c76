# Sourced: the program of the archive that this lies in, or of the archive that SHARDPROOF names.
suite=${SHARDPROOF:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../../../.." && pwd)}
shardproof=$suite/bin/shardproof
[[ -x $shardproof ]] || { echo "ci/gate: $shardproof is no program: SHARDPROOF names the unpacked archive" >&2 && exit 3; }
