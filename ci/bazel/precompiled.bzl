"""A header that is parsed once for all files that begin with it.

GCC and Clang look for NAME.gch in each folder of the search path before they look for NAME there. precompiled_header puts
both into a folder of their own: NAME.gch, made with the flags of the files that per_file_copt in .bazelrc names (extra_flags
are those of per_file_copt), and NAME, which leads on to the real ones. Where flags differ the compiler passes NAME.gch over.
With --config=plain_includes a header that stands for others is empty: files compile only if they include what they use.
"""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _headers(files, header, ctx):
    return CcInfo(compilation_context = cc_common.create_compilation_context(
        headers = depset(files),
        system_includes = depset([header.path[:-len(ctx.attr.header) - 1]]),
    ))

def _impl(ctx):
    cc_toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    source = ctx.actions.declare_file("%s/source.h" % ctx.label.name)
    includes = ctx.attr.includes or [ctx.attr.header]
    ctx.actions.write(source, "".join(["#include <%s>\n" % each for each in includes]))
    if ctx.attr.includes and "plain_includes" in ctx.var:
        # Elsewhere: what was precompiled before may still lie where it was.
        empty = ctx.actions.declare_file("%s/plain/%s" % (ctx.label.name, ctx.attr.header))
        ctx.actions.write(empty, "")
        return [_headers([empty], empty, ctx)]
    path = "%s/include/%s" % (ctx.label.name, ctx.attr.header)
    leads_on = ctx.actions.declare_file(path)
    ctx.actions.write(leads_on, "".join(["#include_next <%s>\n" % each for each in includes]))
    precompiled = ctx.actions.declare_file(path + ".gch")
    flags = cc_common.get_memory_inefficient_command_line(
        feature_configuration = features,
        action_name = CPP_COMPILE_ACTION_NAME,
        variables = cc_common.create_compile_variables(
            feature_configuration = features,
            cc_toolchain = cc_toolchain,
            user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.extra_flags,
            use_pic = True,
        ),
    )
    args = ctx.actions.args()
    args.add_all(flags)
    args.add_all(["-x", "c++-header", source, "-o", precompiled])
    ctx.actions.run(
        executable = cc_toolchain.compiler_executable,
        arguments = [args],
        inputs = depset([source], transitive = [cc_toolchain.all_files]),
        outputs = [precompiled],
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin"},
        mnemonic = "PrecompileHeader",
        progress_message = "Precompiling %s" % ctx.attr.header,
    )
    return [_headers([precompiled, leads_on], leads_on, ctx)]

precompiled_header = rule(
    implementation = _impl,
    attrs = {
        "header": attr.string(mandatory = True, doc = "as files include it"),
        "includes": attr.string_list(doc = "headers of the machine that it stands for; empty: itself"),
        "extra_flags": attr.string_list(),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    provides = [CcInfo],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
