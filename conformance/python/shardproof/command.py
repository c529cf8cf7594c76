"""Where is the command `shardproof`, and what does it say about recorded traces?"""

import os
import pathlib
import shutil
import subprocess
import sys
import tomllib

# What `shardproof` ends with (README.md, "What a verdict means").
CONFORMANT, NOT_CONFORMANT, SUITE_FAILED, USAGE, WHERE_JUDGED = range(5)


class CommandError(RuntimeError):
    """There is no such command."""


SUITE = pathlib.Path(__file__).resolve().parent / "suite"


def prefix():
    """The folder of the suite: bin, include, lib and share as the archive has them (only where the wheel is installed)."""
    if SUITE.is_dir():
        return SUITE
    raise CommandError(f"{SUITE} is not here: a wheel has it (`bazel build //:wheel`), a checkout has not")


def find(path=None):
    """The command: the path that is given, SHARDPROOF, the wheel's, bazel-bin of the repository around this file, PATH."""
    if path or os.environ.get("SHARDPROOF"):
        named = pathlib.Path(path or os.environ["SHARDPROOF"])
        if (named / "bin/shardproof").is_file():  # an unpacked archive
            named = named / "bin/shardproof"
        if os.access(named, os.X_OK) and named.is_file():
            return named
        raise CommandError(
            f"{named} is no program: {'--shardproof' if path else 'SHARDPROOF'} names the command"
        )
    if (SUITE / "bin/shardproof").is_file():
        return SUITE / "bin/shardproof"
    here = pathlib.Path(__file__).resolve()
    if len(here.parents) > 3:
        built = here.parents[3] / "bazel-bin/conformance/shardproof"
        if built.is_file():
            return built
    found = shutil.which("shardproof")
    if found and pathlib.Path(found).read_bytes()[:2] != b"#!":  # not the script that asks here
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


def list_knobs(command):
    """Of all knobs by name the column of values: "fp32, bf16"; "0, real"."""
    rows = [line.split("|") for line in _list(command, "knobs", []).splitlines()[2:]]
    return {name.strip(): row[2].strip() for row in rows for name in row[1].split(",")}


def main(arguments=None):
    """The command `shardproof` of the package: becomes the program."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        if arguments == ["--prefix"]:
            print(prefix())
            return 0
        own = SUITE / "bin/shardproof"
        program = str(own if own.is_file() else find())
    except CommandError as error:
        print(f"shardproof: {error}", file=sys.stderr)
        return 3
    os.execv(program, [program, *arguments])
