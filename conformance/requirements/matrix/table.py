"""The rows of MATRIX.md: how are they read, made and written?"""

COLUMNS = ("check", "breaking trace", "keeping trace", "fault")
_NONE = "none"
_HEAD = """# What shows that each requirement can fail?

Written by `bazel run //conformance/requirements/matrix:write`, compared by `matrix_test`. A requirement is alive if each
cell names something:

| column | is |
|---|---|
| check | the families of `conformance/checks` whose sources name the requirement. No evidence yet: to name is not to judge |
| breaking trace | a test, and a trace in it that breaks the requirement: the check finds that |
| keeping trace | one that keeps it: it was judged, and nothing was found |
| fault | a fault of `fixtures/faults` that it catches: the fault's own test proves it, from the command line |

A cell names one witness of perhaps many; `shardproof explain ID` shows what a finding looks like. Traces are written by the tests themselves, or by small engines with one
departure (`conformance/checks/testing`). Three kinds of requirement have their own form of trace:

- **two runs that must agree** (`metamorphic/`): a pair of traces. That the pair is asked for at all is the fault's to show;
- **answers of create, survival, what is left behind** (GE-20 to GE-28, GE-37, PG-16; EP-37, LW-37 speak for them): a trace
  with how each rank ended (`EngineOutcome`);
- **calls that the host refuses** (GE-25, and PG-14, GE-17, GE-18 or GE-19 if that is what they would have broken): a trace
  with the refused call. Each refusal has a test of its own on each fabric
  (`conformance/host/refusal_cases.h`).

"""


def parse(text):
    """Requirement -> cells, of a written table."""
    rows = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| ") and len(cells) == len(COLUMNS) + 1 and cells[0][2:3] == "-":
            rows[cells[0]] = tuple(cells[1:])
    return rows


def witnesses(rows, requirements):
    """The tests that the rows name, as (binary, test); None where a cell has no trace, so that all must run."""
    if set(rows) != requirements or any(_NONE in cells[1:3] for cells in rows.values()):
        return None
    return {tuple(cell.split(" ", 1)) for cells in rows.values() for cell in cells[1:3]}


def _witness(old, candidates):
    return old if old in candidates else candidates[0] if candidates else _NONE


def build(requirements, old, citations, shown, faults):
    rows = {}
    for id in requirements:
        before = old.get(id, (_NONE,) * len(COLUMNS))
        rows[id] = (", ".join(citations.get(id, [])) or _NONE,
                    _witness(before[1], shown.get(("broken", id), [])),
                    _witness(before[2], shown.get(("kept", id), [])),
                    _witness(before[3], faults.get(id, [])))
    return rows


def empty_cells(rows):
    """Pairs of requirement and column."""
    return [(id, column.replace(" ", "_")) for id, cells in rows.items()
            for column, cell in zip(COLUMNS, cells) if cell == _NONE]


def summary(rows):
    empty = empty_cells(rows)
    counts = ", ".join(f"{sum(column.replace(' ', '_') == of for _, of in empty)} without a {column}"
                       for column in COLUMNS)
    return f"{len(rows)} requirements: {counts}."


def text(rows):
    lines = ["| requirement | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    lines += [f"| {id} | " + " | ".join(cells) + " |" for id, cells in rows.items()]
    return _HEAD + summary(rows) + "\n\n" + "\n".join(lines) + "\n"
