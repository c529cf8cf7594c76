"""Targets that need the CUDA toolkit.

NEEDS_CUDA, as target_compatible_with: bazel build/test //... leaves the target out where there is no toolkit.
cuda_library: sources that g++ compiles too, compiled by nvcc; used in deps like a cc_library. Output group "ptx": the PTX
of each source, which cuda_exact_test reads.
cuda_exact_test: fails if a kernel could give other bits than the CPU does.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@cuda//:defs.bzl", "TOOLKIT")

NEEDS_CUDA = [] if TOOLKIT.nvcc else ["@platforms//:incompatible"]

# Each floating-point operation on its own, as IEEE 754 has it, on the device and on the host.
_EXACT = ["-fmad=false", "-prec-div=true", "-prec-sqrt=true", "-ftz=false", "-Xcompiler", "-ffp-contract=off"]

_LANGUAGE = ["-x", "cu", "-std=c++20", "--extended-lambda", "--expt-relaxed-constexpr"]

# A warning is often a function of the host called from a kernel.
_CHECKS = ["-Werror", "all-warnings"]

def _gencode():
    flags = []
    for each in TOOLKIT.architectures:
        flags.append("-gencode=arch=compute_%s,code=sm_%s" % (each, each))
    for each in TOOLKIT.architectures[-1:]:
        flags.append("-gencode=arch=compute_%s,code=compute_%s" % (each, each))
    return flags

# One call of nvcc makes both files: PTX is an intermediate that --keep leaves behind.
_COMMAND = """
set -eu
object=$1 ptx=$2 kept=$1.kept
shift 2
mkdir -p "$kept"
"$@" --keep --keep-dir "$kept" -o "$object"
cat "$kept"/*.ptx > "$ptx"
rm -r "$kept"
"""

def _compile(ctx, cc_toolchain, context, source):
    stem = "_cuda/%s/%s" % (ctx.label.name, source.basename.rpartition(".")[0])
    object = ctx.actions.declare_file(stem + ".pic.o")
    ptx = ctx.actions.declare_file(stem + ".ptx")
    args = ctx.actions.args()
    args.add(object)
    args.add(ptx)
    args.add(TOOLKIT.nvcc)
    args.add_all(_LANGUAGE + _EXACT + _CHECKS + _gencode())
    args.add("-ccbin", cc_toolchain.compiler_executable)
    args.add("-O2")
    args.add("-Xcompiler", "-fPIC,-O2")
    args.add_all(context.defines, before_each = "-D")
    args.add_all(context.local_defines, before_each = "-D")
    args.add_all(context.quote_includes, before_each = "-I")
    args.add_all(context.includes, before_each = "-I")
    args.add_all(context.system_includes, before_each = "-isystem")
    args.add("-c", source)
    ctx.actions.run_shell(
        command = _COMMAND,
        arguments = [args],
        inputs = depset([source] + ctx.files.hdrs, transitive = [context.headers, cc_toolchain.all_files]),
        outputs = [object, ptx],
        # The version: what another nvcc made is not taken from a cache.
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "SHARDPROOF_NVCC": TOOLKIT.version},
        mnemonic = "CudaCompile",
        progress_message = "Compiling %s for a GPU" % source.short_path,
    )
    return object, ptx

def _cuda_library_impl(ctx):
    cc_toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    infos = [dep[CcInfo] for dep in ctx.attr.deps + [ctx.attr._cudart]]
    own = CcInfo(compilation_context = cc_common.create_compilation_context(
        headers = depset(ctx.files.hdrs),
        quote_includes = depset([".", ctx.bin_dir.path]),
    ))

    # nvcc has the toolkit's headers; those of @cuda would be the same again.
    seen = cc_common.merge_cc_infos(cc_infos = [own] + [dep[CcInfo] for dep in ctx.attr.deps])
    objects = []
    ptx = []
    for source in ctx.files.srcs:
        o, p = _compile(ctx, cc_toolchain, seen.compilation_context, source)
        objects.append(o)
        ptx.append(p)
    linking_context, _ = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        name = ctx.label.name,
        feature_configuration = features,
        cc_toolchain = cc_toolchain,
        compilation_outputs = cc_common.create_compilation_outputs(
            objects = depset(objects),
            pic_objects = depset(objects),
        ),
        linking_contexts = [info.linking_context for info in infos],
        disallow_dynamic_library = True,
    )
    return [
        DefaultInfo(files = depset(objects)),
        OutputGroupInfo(ptx = depset(ptx)),
        cc_common.merge_cc_infos(
            cc_infos = [own, CcInfo(linking_context = linking_context)] + infos,
        ),
    ]

_cuda_library = rule(
    implementation = _cuda_library_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cc", ".cu"]),
        "hdrs": attr.label_list(allow_files = [".h"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "_cudart": attr.label(default = "@cuda//:cudart"),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    provides = [CcInfo],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def cuda_library(name, **kwargs):
    _cuda_library(name = name, target_compatible_with = NEEDS_CUDA, **kwargs)

def cuda_exact_test(name, library):
    """Reads the PTX of a cuda_library: ci/bazel/ptx_exact.sh says what it must not hold."""
    native.filegroup(
        name = name + "_ptx",
        srcs = [library],
        output_group = "ptx",
        testonly = True,
    )
    native.sh_test(
        name = name,
        size = "small",
        srcs = ["//ci/bazel:ptx_exact.sh"],
        args = ["$(locations :%s_ptx)" % name],
        data = [":%s_ptx" % name],
        target_compatible_with = NEEDS_CUDA,
    )
