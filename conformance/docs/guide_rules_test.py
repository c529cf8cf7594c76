#!/usr/bin/env python3
"""Are guides read as guide.py says, and does one that is wrong fail?"""

import os
import pathlib
import sys
import tempfile

import guide

_FIRST = "#include <x>\n\nstruct s {\n  int a;\n};\n\nstatic int create(int a) {\n  return a;\n}\n"
_SECOND = "struct s {\n  int b;\n};\n\nstatic int help(void) {\n  return 1;\n}\n"


def outcome(page):
    with tempfile.TemporaryDirectory() as folder:
        return guide.done(page, pathlib.Path(folder).resolve(), dict(os.environ))


def main():
    same, wrong = guide.missing_line, []
    checks = {
        "lines in order": same(["a", "b"], "a\nb\n") is None,
        "a line that is missing": same(["a", "c"], "a\nb\nc\n") == "c",
        "lines are left out": same(["a", "...", "c"], "a\nb\nc\n") is None,
        "text is left out": same(["x ... y"], "x 12 y\n") is None,
        "not the first line": same(["b"], "a\nb\n") == "b",
        "the wrong order": same(["...", "b", "...", "a"], "a\nb\n") == "a",
        "pieces": guide.with_pieces(guide.with_pieces("", _FIRST), _SECOND).split("\n\n")[1:] == [
            "struct s {\n  int b;\n};", "static int help(void) {\n  return 1;\n}", "static int create(int a) {\n  return a;\n}\n"],
        "a good guide": outcome("```sh\necho a\n```\n\n```text\na\n```\n") == (1, None),
        "an exit code that is expected": outcome("```sh status=3\nexit 3\n```\n") == (1, None),
        "an exit code that is not": outcome("```sh\nfalse\n```\n")[1] is not None,
        "a failure before the last command": outcome("```sh\nfalse\ntrue\n```\n")[1] is not None,
        "other text": outcome("```sh\necho a\n```\n\n```text\nb\n```\n")[1] is not None,
        "text without commands": outcome("```text\nb\n```\n")[1] is not None,
        "not run": outcome("```sh not-run\nfalse\n```\n") == (0, None),
        "a program that is missing": outcome("```sh needs=no-such-program\nfalse\n```\n\n```text\nb\n```\n") == (0, None),
        "code": outcome("```c\nint x;\n```\n\n```sh\ncat mine.c\n```\n\n```text\nint x;\n```\n") == (1, None),
    }
    wrong = [name for name, good in checks.items() if not good]
    print("\n".join(wrong) or f"ok: {len(checks)} rules")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
