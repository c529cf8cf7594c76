"""Flags that the suite's code needs, for workspaces that depend on it: cc_library and cc_binary of rules_cc that have them there.

In this workspace .bazelrc gives them to all files, tests and faulty engines among them. Another workspace does not read it, so there they
are flags of the targets. They stand behind what --copt says there, and win: numbers are the same whatever others compile with.
"""

load("@rules_cc//cc:defs.bzl", _cc_binary = "cc_binary", _cc_library = "cc_library")

_COPTS = [
    "-ffp-contract=off",  # a * b + c is rounded twice
    "-fno-fast-math",
    "-O2",
]

def is_outside():
    """Is this the repository of another workspace?"""
    return native.repository_name() != "@"

def _with_flags(kwargs):
    if is_outside():
        cxx = all([not src.endswith(".c") for src in kwargs.get("srcs", []) if type(src) == "string"])
        kwargs["copts"] = _COPTS + ["-std=c++20" if cxx else "-std=c11"] + kwargs.get("copts", [])
    return kwargs

def cc_library(**kwargs):
    _cc_library(**_with_flags(kwargs))

def cc_binary(**kwargs):
    kwargs = _with_flags(kwargs)
    if is_outside():  # a library calls its own copy of an inline function
        kwargs["linkopts"] = ["-Wl,-Bsymbolic-functions"] + kwargs.get("linkopts", [])
    _cc_binary(**kwargs)
