#!/usr/bin/env python3
"""MATRIX.md: what shows that each requirement can fail? matrix.py check|write TEST...

A row for each requirement, a cell for each kind of evidence: the check that cites it, a trace that a test wrote and that
breaks it, one that keeps it, a fault of the bank that it catches. Evidence is read, not claimed: the sources of the
checks, what the TESTs (binaries of conformance/checks) say of their traces when they run (checks/testing/shown.h), and
the rows of fixtures/faults/faults.bzl, each of which is a test. A cell names one witness and keeps it while it holds.

check: MATRIX.md is what write would write, and no cell is empty.
Exit status: 0 so it is, 1 not, 3 usage. Runs at the top of the repository (or of its runfiles); write changes the
checkout that `bazel run //conformance/requirements/matrix:write` was called in.
"""

import os
import pathlib
import sys

sys.dont_write_bytecode = True

import evidence
import table

_HERE = pathlib.Path("conformance/requirements")
_MATRIX = _HERE / "MATRIX.md"


def differences(old, new):
    """What is wrong with MATRIX.md, in words."""
    for requirement, column in sorted(table.empty_cells(new)):
        yield f"{requirement}: no {column}"
    for row in sorted(set(old) | set(new)):
        if old.get(row) != new.get(row):
            yield f"{row}: MATRIX.md has {old.get(row)}, it should be {new.get(row)}"


def main(arguments):
    if len(arguments) < 2 or arguments[0] not in ("check", "write"):
        print(__doc__, file=sys.stderr)
        return 3
    requirements = evidence.requirements(_HERE)
    old = table.parse(_MATRIX.read_text(encoding="utf-8"))
    shown = evidence.shown(arguments[1:], table.witnesses(old, set(requirements)))
    new = table.build(requirements, old, evidence.citations(), shown, evidence.faults())
    if arguments[0] == "check":
        wrong = list(differences(old, new))
        if not wrong and _MATRIX.read_text(encoding="utf-8") != table.text(new):
            wrong = ["MATRIX.md differs in its words"]
        for line in wrong:
            print(f"FAILED: {line}")
        if wrong:
            print("If this is so on purpose: bazel run //conformance/requirements/matrix:write")
        return 1 if wrong else 0
    root = pathlib.Path(os.environ["BUILD_WORKSPACE_DIRECTORY"])
    (root / _MATRIX).write_text(table.text(new), encoding="utf-8")
    print(table.summary(new))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
