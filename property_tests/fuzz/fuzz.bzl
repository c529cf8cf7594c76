"""A fuzz target: one function that takes bytes, and the inputs that it has to survive.

fuzz_target(name = "NAME") of NAME.cc, which defines LLVMFuzzerTestOneInput, and of the folder corpus/NAME makes
- NAME_corpus_test, of any compiler: every kept input once;
- NAME_fuzz, with --config=fuzz only (ci/fuzz): clang's libFuzzer; mutator is how it changes inputs, if it has its own.
"""

load("@rules_cc//cc:defs.bzl", "cc_test")
load("//ci/bazel:cc.bzl", "cc_binary")

def fuzz_target(name, deps, size = "small", mutator = []):
    corpus = native.glob(["corpus/" + name + "/*"])
    cc_test(
        name = name + "_corpus_test",
        size = size,
        srcs = [
            "replay.cc",
            name + ".cc",
        ],
        args = [native.package_name() + "/corpus/" + name],
        data = corpus,
        linkstatic = True,  # so that what a target does not call need not be there
        deps = deps + ["//ci/bazel:standard_optimised_precompiled"],
    )
    cc_binary(
        name = name + "_fuzz",
        testonly = True,
        srcs = [name + ".cc"] + mutator,
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["manual"],
        deps = deps,
    )
