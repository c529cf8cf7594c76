"""What do the sources, the tests and the fault bank show of each requirement?"""

import ast
import collections
import json
import pathlib
import re
import subprocess
import tempfile
import tomllib

_ID = r"(?:PG|FS|GE|EP|LW|TP|CP|KN|BU)-\d\d"
_CHECKS = pathlib.Path("conformance/checks")
# They name rows and judge none.
_LISTS = {"asked.cc", "requirement_ids.h"}
_FILES = ("groups", "fsdp", "ep", "lw", "tp", "knobs", "budgets", "graph", "general")


def requirements(folder):
    """Ids, in the order of the files."""
    found = []
    for name in _FILES:
        rows = tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))["requirement"]
        found += [row["id"] for row in rows]
    return found


def _sources():
    for path in sorted(_CHECKS.rglob("*")):
        test = "_test." in path.name or "testing" in path.parts
        if path.suffix in (".cc", ".h") and not test:
            yield path, path.read_text(encoding="utf-8")


def citations():
    """Requirement -> folders of families whose sources name it."""
    found = collections.defaultdict(set)
    texts = list(_sources())
    named = {constant: id for _, text in texts
             for constant, id in re.findall(rf'constexpr char (k\w+)\[\] = "({_ID})"', text)}
    for path, text in texts:
        if path.name in _LISTS:
            continue
        ids = set(re.findall(rf'"({_ID})"', text))
        ids |= {id for constant, id in named.items() if re.search(rf"\b{constant}\b", text)}
        # The runner chooses the pair of runs, and with it the requirement.
        ids |= set(re.findall(_ID, text)) if "metamorphic" in path.parts else set()
        family = path.relative_to(_CHECKS).parts[0]
        for id in ids if family not in ("base", "cause", "program", path.name) else ():
            found[id].add(family)
    return {id: sorted(families) for id, families in found.items()}


def _run(binary, only):
    """What each test of a binary says: pairs of its name and the words in its record."""
    with tempfile.TemporaryDirectory() as folder:
        record = pathlib.Path(folder) / "record.json"
        command = [binary, f"--gtest_output=json:{record}"]
        if only:
            command.append("--gtest_filter=" + ":".join(sorted(only)))
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if run.returncode:
            raise SystemExit(f"FAILED: {binary}\n{run.stdout.decode(errors='replace')}")
        suites = json.loads(record.read_text(encoding="utf-8"))["testsuites"]
    for suite in suites:
        for test in suite["testsuite"]:
            if test.get("result") == "COMPLETED":
                yield f"{suite['name']}.{test['name']}", [key for key in test if re.fullmatch(rf"\w+ {_ID}", key)]


def shown(binaries, witnesses):
    """(word, requirement) -> tests whose traces say so, the plainest first. Only the witnesses run, unless None."""
    found = collections.defaultdict(list)
    for place, binary in enumerate(binaries):
        name = pathlib.Path(binary).name
        only = None if witnesses is None else {test for of, test in witnesses if of == name}
        if only is not None and not only:
            continue
        for test, words in _run(binary, only):
            broken = sum(word.startswith("broken ") for word in words)
            for word in words:
                found[tuple(word.split())].append((broken, place, f"{name} {test}"))
    return {key: [test for _, _, test in sorted(tests)] for key, tests in found.items()}


def faults(path=pathlib.Path("fixtures/faults/faults.bzl")):
    """Requirement -> faults that it catches; first those whose row names it first."""
    bank = next(ast.literal_eval(node.value) for node in ast.parse(path.read_text(encoding="utf-8")).body
                if isinstance(node, ast.Assign))
    found = collections.defaultdict(list)
    for rows in bank.values():
        for name, _, _, caught_by, *_ in rows:
            for place, id in enumerate([caught_by] if isinstance(caught_by, str) else caught_by):
                found[id].append((place, name))
    return {id: [name for _, name in sorted(names)] for id, names in found.items()}
