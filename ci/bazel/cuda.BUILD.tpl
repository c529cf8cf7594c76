# The CUDA toolkit of the machine. Written by ci/bazel/cuda_toolkit.bzl; empty where there is none.
package(default_visibility = ["//visibility:public"])

exports_files(["facts.txt"])

# For g++. nvcc brings its own headers.
cc_library(
    name = "cudart",
    linkopts = %{cudart},
    deps = [":headers"],
)

# Without the libraries: of the runtime and cuBLAS.
cc_library(
    name = "headers",
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
)

cc_library(
    name = "cublas",
    linkopts = %{cublas},
    deps = [":cudart"],
)

cc_library(
    name = "nccl",
    linkopts = %{nccl},
    deps = [
        ":cudart",
        ":nccl_headers",
    ],
)

cc_library(
    name = "nccl_headers",
    hdrs = glob(
        [
            "nccl/nccl.h",
            "nccl/nccl_device/**",
        ],
        allow_empty = True,
    ),
    includes = ["nccl"],
    deps = [":headers"],
)
