#!/usr/bin/env python3
"""Does a guide come out as it says? guide_test.py GUIDE.md LEAST (in the runfiles): LEAST blocks of commands are in it

It is done in a folder that looks as the repository does after `bazel build`.
"""

import os
import pathlib
import sys
import tempfile

import guide


def repository(folder):
    """Makes a folder look as the repository does: sources, and bazel-bin with what is built."""
    runfiles = pathlib.Path.cwd()
    for name in ["ci", "conformance", "fixtures", "README.md"]:
        if (runfiles / name).exists():
            (folder / name).symlink_to(runfiles / name)
    (folder / "bazel-bin").symlink_to(runfiles)


def main():
    page, least = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"), int(sys.argv[2])
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place).resolve()
        repository(folder)
        commands, wrong = guide.done(page, folder, dict(os.environ, NO_COLOR="1"))
    if wrong:
        print(f"{sys.argv[1]}, {wrong}")
    elif commands < least:
        print(f"{sys.argv[1]}: only {commands} blocks of commands")
    else:
        print(f"ok: {commands} blocks of commands")
    return 1 if wrong or commands < least else 0


if __name__ == "__main__":
    sys.exit(main())
