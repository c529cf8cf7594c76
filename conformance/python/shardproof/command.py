"""Where is the command `shardproof`, and what does it say about recorded traces?"""

import os
import pathlib
import shutil
import subprocess
import tomllib

# What `shardproof` ends with (README.md, "What a verdict means").
CONFORMANT, NOT_CONFORMANT, SUITE_FAILED, USAGE, WHERE_JUDGED = range(5)


class CommandError(RuntimeError):
    """There is no such command."""


def find(path=None):
    """The command: the path that is given, SHARDPROOF, bazel-bin of the repository around this file, PATH."""
    if path or os.environ.get("SHARDPROOF"):
        named = pathlib.Path(path or os.environ["SHARDPROOF"])
        if os.access(named, os.X_OK) and named.is_file():
            return named
        raise CommandError(
            f"{named} is no program: {'--shardproof' if path else 'SHARDPROOF'} names the command"
        )
    here = pathlib.Path(__file__).resolve()
    if len(here.parents) > 3:
        built = here.parents[3] / "bazel-bin/conformance/shardproof"
        if built.is_file():
            return built
    found = shutil.which("shardproof")
    if found:
        return pathlib.Path(found)
    raise CommandError(
        "the command shardproof is not here: build it with `bazel build //conformance:shardproof`, then "
        "--shardproof PATH, the variable SHARDPROOF or PATH says where it is"
    )


def check(command, folder, options=()):
    """Judges recorded traces; prints what the command says and answers its exit code."""
    return subprocess.run(
        [str(command), "check", f"trace:{folder}", *options], check=False
    ).returncode


def _list(command, what, options):
    run = subprocess.run(
        [str(command), "list", what, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if run.returncode:
        raise CommandError(f"{command} list {what}: {run.stderr.strip() or run.returncode}")
    return run.stdout


def list_cases(command, profile, *options):
    """Ids of a profile's cases for sim, illegal ones too."""
    lines = _list(command, "cases", ["--profile", profile, *options]).splitlines()
    return [line.split()[0] for line in lines if line.strip()]


def list_values(command):
    """What profiles combine: {space: {knob: values}}."""
    return tomllib.loads(_list(command, "values", []))
