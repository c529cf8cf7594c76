# Libraries of the machine. Written by ci/bazel/system.bzl.
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "gtest",
    linkopts = ["-lgmock", "-lgtest", "-lpthread"],
    deps = ["@shardproof//ci/bazel:gtest_precompiled"],
)

cc_library(
    name = "gtest_main",
    linkopts = ["-lgmock_main"],
    deps = [":gtest"],
)

cc_library(
    name = "rapidcheck",
    linkopts = ["-lrapidcheck"],
)

cc_library(
    name = "eigen",
    hdrs = glob(["eigen3/**"], allow_empty = True),
    includes = ["eigen3"],
)

cc_library(name = "json")

cc_library(name = "cli11")

cc_library(
    name = "fmt",
    linkopts = ["-lfmt"],
)

cc_library(
    name = "toml",
    defines = ["TOML_HEADER_ONLY=0"],
    linkopts = ["-ltomlplusplus"],
)

cc_library(
    name = "simdjson",
    linkopts = ["-lsimdjson"],
)

cc_library(
    name = "boost_context",
    linkopts = ["-lboost_context"],
)

cc_library(
    name = "benchmark",
    linkopts = ["-lbenchmark", "-lpthread"],
)

cc_library(
    name = "mpi",
    hdrs = glob(["mpich/**/*.h"], allow_empty = True),
    includes = ["mpich"],
    linkopts = ["-lmpich"],
)

# For engines and runners that load shared libraries.
cc_library(
    name = "dl",
    linkopts = ["-ldl"],
)
