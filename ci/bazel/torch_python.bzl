"""A Python of the machine that has torch, as a repository: for tests of conformance/python.

SHARDPROOF_TORCH_PYTHON names it (none: build as if there were none); else it is .venv-torch/bin/python in the root of the
repository, which ci/setup torch makes. Where there is none, or it has no torch, TORCH.missing says what: see torch.bzl.
"""

_ASK = "import importlib.metadata as m; print(m.version('torch'))"

def _find(ctx):
    """The path of the interpreter, the version of its torch, and what is missing."""
    named = ctx.os.environ.get("SHARDPROOF_TORCH_PYTHON", "")
    path = named or str(ctx.path(Label("//:WORKSPACE")).dirname) + "/.venv-torch/bin/python"
    if named == "none" or not ctx.path(path).exists:
        return None, None, "a Python with torch (ci/setup torch makes .venv-torch; SHARDPROOF_TORCH_PYTHON names another)"
    asked = ctx.execute([path, "-c", _ASK])
    if asked.return_code != 0:
        return None, None, "torch in " + path
    return path, asked.stdout.strip(), None

def _torch_python_impl(ctx):
    python, version, missing = _find(ctx)
    ctx.file("facts.txt", "missing: %s\n" % missing if missing else "python: %s\ntorch: %s\n" % (python, version))
    ctx.file("BUILD", "exports_files([\"facts.txt\"])\n")
    ctx.file("defs.bzl", "\"\"\"Written by ci/bazel/torch_python.bzl.\"\"\"\n\nTORCH = struct(python = %r, version = %r, missing = %r)\n" %
                         (python, version, missing))

torch_python = repository_rule(
    implementation = _torch_python_impl,
    local = True,
    environ = ["SHARDPROOF_TORCH_PYTHON"],
)
