"""A fuzz target: one function that takes bytes, and the inputs that it has to survive.

fuzz_target(name = "NAME") of NAME.cc, which defines LLVMFuzzerTestOneInput, and of the folder corpus/NAME makes
- NAME_corpus_test, of any compiler: every kept input once;
- NAME_fuzz, with --config=fuzz only (ci/fuzz): clang's libFuzzer.
"""

load("@rules_cc//cc:defs.bzl", "cc_test")
load("//ci/bazel:cc.bzl", "cc_binary")

def fuzz_target(name, deps, size = "small"):
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
        deps = deps + ["//ci/bazel:standard_optimised_precompiled"],
    )
    cc_binary(
        name = name + "_fuzz",
        testonly = True,
        srcs = [name + ".cc"],
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["manual"],
        deps = deps,
    )
