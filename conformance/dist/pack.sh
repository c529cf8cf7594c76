#!/usr/bin/env bash
# usage: pack.sh ARCHIVE FILE...
# Packs the files into ARCHIVE, each in its place below shardproof-VERSION/; with them the libraries that the programs load and that a
# machine need not have, and their licences. The same files give the same archive.
set -euo pipefail
archive=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for file in "$@"; do [[ $file != */VERSION ]] || version=$(<"$file"); done
root=$folder/shardproof-$version
mkdir -p "$root"/{bin,include,lib/cmake/shardproof,lib/pkgconfig,share/shardproof}

for file in "$@"; do
  inside=${file#bazel-out/*/bin/}
  case $inside in
    conformance/shardproof_sim) install -m 755 "$file" "$root/bin/shardproof" ;;
    conformance/shardproof_mpi) install -m 755 "$file" "$root/bin/" ;;
    conformance/defs.bzl) install -D -m 644 "$file" "$root/$inside" ;;
    conformance/conformance_test.sh) install -D -m 755 "$file" "$root/$inside" ;;
    */bazel/root.BUILD) install -m 644 "$file" "$root/BUILD.bazel" ;;
    */bazel/conformance.BUILD) install -D -m 644 "$file" "$root/conformance/BUILD.bazel" ;;
    */bazel/abi.BUILD) install -D -m 644 "$file" "$root/conformance/abi/BUILD.bazel" ;;
    *.h | *.hpp) install -D -m 644 "$file" "$root/include/$inside" ;;
    */shardproof-config.cmake) install -m 644 "$file" "$root/lib/cmake/shardproof/" ;;
    */shardproof.pc.in) sed "s/@VERSION@/$version/" "$file" >"$root/lib/pkgconfig/shardproof.pc" ;;
    */VERSION) ;;
    LICENSE) install -m 644 "$file" "$root/" ;;
    ci/gate/*.*) install -D -m 644 "$file" "$root/share/shardproof/$inside" ;;
    ci/gate/*) install -D -m 755 "$file" "$root/share/shardproof/$inside" ;;
    *) install -D -m 644 "$file" "$root/share/shardproof/$inside" ;;
  esac
done

echo 'workspace(name = "shardproof")' >"$root/WORKSPACE"
cat >"$root/lib/cmake/shardproof/shardproof-config-version.cmake" <<CMAKE
# A newer minor version serves those who ask for an older one.
set(PACKAGE_VERSION $version)
if(PACKAGE_FIND_VERSION_MAJOR EQUAL ${version%%.*} AND NOT PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
CMAKE

# By their sonames, so that RUNPATH ($ORIGIN/../lib) finds them.
for name in tomlplusplus simdjson boost_context; do
  read -r soname _ path _ < <(ldd "$root/bin/shardproof" | grep "lib$name\.so")
  [[ -f $path ]] || { echo "pack.sh: lib$name is not found" >&2 && exit 1; }
  install -m 644 "$path" "$root/lib/$soname"
done

# Of what is in lib/, and of headers whose code is in the programs.
{
  echo "Shardproof is under the Apache License 2.0 (LICENSE). In lib/ and in the programs is code of others:"
  for package in 'libtomlplusplus[0-9]*' 'libsimdjson[0-9]*' 'libboost-context[0-9.]*[0-9]' nlohmann-json3-dev libcli11-dev \
    libeigen3-dev 'libfmt[0-9]*'; do
    # shellcheck disable=SC2086  # a glob
    copyright=$(ls -d /usr/share/doc/$package/copyright 2>/dev/null | head -n 1)
    [[ -n $copyright ]] || { echo "pack.sh: no licence of $package in /usr/share/doc" >&2 && exit 1; }
    printf '\n==== %s\n\n' "$(basename "$(dirname "$copyright")")"
    cat "$copyright"
  done
} >"$root/NOTICES"
chmod -R u=rwX,go=rX "$root"
tar -C "$folder" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - "shardproof-$version" | gzip -n >"$archive"
