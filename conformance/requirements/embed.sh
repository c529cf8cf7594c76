#!/bin/sh
# embed.sh HEADER FUNCTION FILE...: writes the TOML files as a C++ source: FUNCTION(), which HEADER declares.
set -eu
header=$1
function=$2
shift 2
echo "#include \"$header\""
echo 'namespace shardproof {'
echo "std::vector<std::pair<std::string, std::string>> $function() {"
echo '  return {'
for file in "$@"; do
  printf '      {"%s", R"TOML(' "$(basename "$file")"
  cat "$file"
  echo ')TOML"},'
done
echo '  };'
echo '}'
echo '}  // namespace shardproof'
