# The CUDA toolkit of the machine. Written by ci/bazel/cuda_toolkit.bzl; empty where there is none.
package(default_visibility = ["//visibility:public"])

exports_files(["facts.txt"])

# For g++. nvcc brings its own headers.
cc_library(
    name = "cudart",
    hdrs = glob(
        [
            "include/*.h",
            "include/*.hpp",
            "include/crt/**",
            "include/nv/**",
        ],
        allow_empty = True,
    ),
    includes = ["include"],
    linkopts = %{cudart},
)

cc_library(
    name = "cublas",
    linkopts = %{cublas},
    deps = [":cudart"],
)

cc_library(
    name = "nccl",
    hdrs = glob(
        [
            "nccl/nccl.h",
            "nccl/nccl_device/**",
        ],
        allow_empty = True,
    ),
    includes = ["nccl"],
    linkopts = %{nccl},
    deps = [":cudart"],
)
