"""cc_library and cc_binary of rules_cc for C++ that .bazelrc compiles with shardproof/standard_optimised.h in front.

The header holds much-used headers of the standard library, precompiled: a third of the time that such a file took.
Who includes too little is found by bazel build --config=plain_includes, where the header is empty.
"""

load(":outside.bzl", "is_outside", _cc_binary = "cc_binary", _cc_library = "cc_library")

_PRECOMPILED = ["//ci/bazel:standard_optimised_precompiled"]

def _precompiled():
    return [] if is_outside() else _PRECOMPILED

def cc_library(name, deps = [], **kwargs):
    _cc_library(name = name, deps = deps + _precompiled(), **kwargs)

def cc_binary(name, deps = [], **kwargs):
    _cc_binary(name = name, deps = deps + _precompiled(), **kwargs)
