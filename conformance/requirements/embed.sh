#!/bin/sh
# Writes the TOML files that are named on the command line as a C++ source: BuiltinRequirementFiles() (registry.h).
set -eu
echo '#include "conformance/requirements/registry.h"'
echo 'namespace shardproof {'
echo 'std::vector<std::pair<std::string, std::string>> BuiltinRequirementFiles() {'
echo '  return {'
for file in "$@"; do
  printf '      {"%s", R"TOML(' "$(basename "$file")"
  cat "$file"
  echo ')TOML"},'
done
echo '  };'
echo '}'
echo '}  // namespace shardproof'
