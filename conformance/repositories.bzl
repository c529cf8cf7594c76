"""shardproof_dependencies(): what the suite needs of the machine, for a WORKSPACE that depends on it (conformance/docs/USE.md)."""

load("//ci/bazel:cuda_toolkit.bzl", "cuda_toolkit")
load("//ci/bazel:system.bzl", "system_libraries")
load("//ci/bazel:torch_python.bzl", "torch_python")

def shardproof_dependencies():
    """Nothing is downloaded: Debian's packages (ci/setup names them), the CUDA toolkit and torch, if they are there."""

    # The libraries of the machine, as targets: @system//:gtest, @system//:mpi, ...
    if not native.existing_rule("system"):
        system_libraries(name = "system")

    # Its CUDA toolkit, or an empty repository: @cuda//:cudart, @cuda//:cublas, @cuda//:nccl. //ci/bazel:cuda.bzl uses it.
    if not native.existing_rule("cuda"):
        cuda_toolkit(name = "cuda")

    # A Python that has torch, or an empty repository. //ci/bazel:torch.bzl uses it.
    if not native.existing_rule("torch"):
        torch_python(name = "torch")
