"""What did a run say? Reads report.jsonl of `shardproof run --report FOLDER`.

    report = shardproof.reports.read("FOLDER")
    for case in report.failed():
        print(case.id, [finding.requirement for finding in case.causes()])

Of each object `row` is the line as it stands, with what this reader has no name for.
"""

import dataclasses
import pathlib

from shardproof import rows

VERSION = 1


@dataclasses.dataclass(frozen=True)
class Finding:
    """A requirement that is broken. rank, event, step: -1 if it is of none. follows: place of its cause in the case, or None."""

    requirement: str
    message: str
    rank: int
    event: int
    step: int
    stream: str
    operation: str
    expected: str
    seen: str
    warning: bool
    waived_because: str
    follows: int | None
    row: dict = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True)
class Case:
    """status: pass, partial, fail, waived, bounded, unsupported, disabled, not-checkable or suite-error. open: requirement -> why it was
    not judged."""

    id: str
    status: str
    judged: tuple
    open: dict
    findings: tuple
    reason: str
    replay: str
    row: dict = dataclasses.field(repr=False)

    def causes(self):
        """Findings that follow from no other one."""
        return [finding for finding in self.findings if finding.follows is None]


@dataclasses.dataclass(frozen=True)
class Report:
    """ended: False of a run that was killed: cases may be missing, and verdict is ""."""

    path: pathlib.Path
    impl: str
    fabric: str
    profile: str
    seed: int
    shard: str
    cases: tuple
    ended: bool
    verdict: str
    conformant: bool
    counts: dict
    problems: tuple
    header: dict = dataclasses.field(repr=False)
    footer: dict = dataclasses.field(repr=False)

    def failed(self):
        """Cases that turn the run red."""
        return [case for case in self.cases if case.status in ("fail", "suite-error")]

    def case(self, case_id):
        """The case of an id; KeyError if it was not asked."""
        for case in self.cases:
            if case.id == case_id:
                return case
        raise KeyError(case_id)


def _finding(path, number, row):
    requirement, message = rows.need(path, number, row, "requirement", "message")
    follows = row.get("follows")
    texts = {name: row.get(name, "") for name in ("stream", "operation", "expected", "seen", "waived_because")}
    numbers = {name: row.get(name, -1) for name in ("rank", "event", "step")}
    return Finding(requirement, message, **numbers, **texts, warning=row.get("warning", False),
                   follows=None if follows is None else follows["finding"], row=row)


def _case(path, number, row):
    case_id, status, judged = rows.need(path, number, row, "case", "status", "judged")
    findings = tuple(_finding(path, number, each) for each in row.get("findings", ()))
    not_judged = {each["requirement"]: each["why"] for each in row.get("not_checkable", ())}
    return Case(case_id, status, tuple(judged), not_judged, findings, row.get("reason", ""), row.get("replay", ""), row)


def read(path, unended=False):
    """The report of a folder, or of its report.jsonl. unended: one of a run that was killed is read too, as far as it came.

    rows.FormatError names file and line of what is no report.
    """
    path = pathlib.Path(path)
    if path.is_dir():
        path = path / "report.jsonl"
    (first, header), *lines = rows.read(path)
    if header.get("shardproof_report") != VERSION:
        raise rows.FormatError(f"{path}:{first}: a report begins with \"shardproof_report\":{VERSION}")
    footer = {}
    if lines and "end" in lines[-1][1]:
        number, footer = lines.pop()
        if footer["end"] != len(lines):
            raise rows.FormatError(f"{path}:{number}: the end counts {footer['end']} cases, there are {len(lines)}")
    elif not unended:
        raise rows.FormatError(f"{path}: it has no last line: the run did not end, and cases are missing")
    impl, fabric, profile = rows.need(path, first, header, "impl", "fabric", "profile")
    return Report(path, impl, fabric, profile, header.get("seed", 1), header.get("shard", ""),
                  tuple(_case(path, number, row) for number, row in lines), bool(footer), footer.get("verdict", ""),
                  footer.get("conformant", False), footer.get("counts", {}), tuple(footer.get("problems", ())), header,
                  footer)
