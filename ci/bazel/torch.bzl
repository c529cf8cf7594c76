"""Targets that need a Python with torch.

NEEDS_TORCH, as target_compatible_with: bazel build/test //... leaves the target out where there is none, and ci/test says
so (the tag "torch" tells them from those that need CUDA).
torch_device: the recorded device of conformance/python as an extension of that torch.
torch_test: a Python script of tests, with the command, the model library and the device in its environment.
"""

load("@torch//:defs.bzl", "TORCH")

NEEDS_TORCH = [] if TORCH.python else ["@platforms//:incompatible"]
TORCH_PYTHON = TORCH.python or "none"

_PACKAGE = "//conformance/python:package"

# Built in a folder of its own and copied: the name of the cache's folder is a matter of the package.
_BUILD = """
set -eu
export PYTHONPATH=conformance/python SHARDPROOF_CACHE=$$PWD/$@.cache PYTHONDONTWRITEBYTECODE=1
rm -rf "$$SHARDPROOF_CACHE"
%s -c 'import shutil, shardproof.torch.device.build as b; shutil.copy(b.library(), "$@")' >/dev/null
rm -rf "$$SHARDPROOF_CACHE"
: torch %s
"""

def torch_device(name):
    """name: of the library that it writes."""
    native.genrule(
        name = name.partition(".")[0],
        srcs = ["//conformance/python:device_sources"],
        outs = [name],
        cmd = _BUILD % (TORCH.python or "false", TORCH.version),
        tags = [
            "no-sandbox",  # the interpreter and torch's headers are not Bazel's
            "torch",
        ],
        target_compatible_with = NEEDS_TORCH,
    )

def torch_test(name, script, args = [], data = [], size = "medium", tags = []):
    """script: a Python file that ends with status 0 if all is well; args: what it is called with."""
    native.sh_test(
        name = name,
        size = size,
        flaky = True,  # up to three attempts: that ranks are stuck is noticed by time
        srcs = ["//conformance/python:with_torch.sh"],
        args = [
            TORCH_PYTHON,
            "$(location //conformance:shardproof)",
            "$(location //conformance/model/c_api:libshardproof_model.so)",
            "$(location //conformance/python:shardproof_device.so)",
            "$(location %s)" % script,
        ] + args,
        data = data + [
            script,
            _PACKAGE,
            "//conformance:shardproof",
            "//conformance/model/c_api:libshardproof_model.so",
            "//conformance/python:shardproof_device.so",
        ],
        tags = tags + [
            "local",  # the interpreter and torch are not Bazel's
            "no-asan",
            "torch",
        ],
        target_compatible_with = NEEDS_TORCH,
    )
