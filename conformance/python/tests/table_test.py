#!/usr/bin/env python3
"""shardproof-torch table: small reports, with and without verdicts. No torch is needed."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[1]))

from shardproof.torch import table

CLEAN = {"case": "w2.zero3", "status": "pass", "judged": ["FS-01"]}
DECLINED = {"case": "w2.ddp", "status": "unsupported", "judged": [], "reason": "no"}
FOUND = {
    "case": "w2.zero3.k2",
    "status": "fail",
    "judged": ["FS-13"],
    "findings": [
        {"requirement": "FS-13", "message": "left | gathered", "rank": 0},
        {"requirement": "FS-13", "message": "left | gathered", "rank": 1},
        {"requirement": "FS-33", "message": "a copy of it", "follows": {"finding": 0}},
        {"requirement": "GE-32", "message": "by the way", "warning": True},
    ],
}
VERDICT = """
[[verdict]]
engine = "mine"
requirement = "FS-13"
message = "gathered"
kind = "choice of design"
why = "It says so."
"""


class Table(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def report(self, name, *rows, engine="mine", versions=None, end=True):
        folder = self.folder / name
        table.write_engine(folder, engine, versions or {"torch": "2.15.0"})
        lines = [{"shardproof_report": 1}, *rows, *([{"end": len(rows)}] if end else [])]
        (folder / "report.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return folder

    def make(self, *reports, verdicts=VERDICT):
        """(exit code, the table or None, what was said)."""
        (self.folder / "verdicts.toml").write_text(verdicts)
        output = self.folder / "ENGINES.md"
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            code = table.main(
                [
                    *map(str, reports),
                    f"--verdicts={self.folder}/verdicts.toml",
                    f"--output={output}",
                ]
            )
        return code, output.read_text() if output.exists() else None, said.getvalue()

    def refused(self, text, *reports, verdicts=VERDICT):
        code, written, said = self.make(*reports, verdicts=verdicts)
        self.assertEqual((code, written), (3, None))
        self.assertIn(text, said)

    def test_counts_and_findings(self):
        code, text, _ = self.make(self.report("a", CLEAN, DECLINED, FOUND))
        self.assertEqual(code, 0)
        self.assertIn("| mine | torch 2.15.0 | 2 | 1 | 1 | 0 | 1 |", text)
        self.assertIn(
            "| mine | FS-13 | 1 | `w2.zero3.k2` | choice of design | It says so. |", text
        )
        self.assertNotIn("FS-33", text)  # follows from FS-13
        self.assertNotIn("GE-32", text)  # a warning

    def test_a_finding_without_a_verdict(self):
        self.refused("mine FS-13, say w2.zero3.k2", self.report("a", FOUND), verdicts="")
        self.refused(
            "without a verdict",
            self.report("a", FOUND),
            verdicts=VERDICT.replace("gathered", "scattered"),
        )
        self.refused("other FS-13", self.report("a", FOUND, engine="other"))

    def test_reports_of_one_engine_are_joined(self):
        mended = {**FOUND, "status": "pass", "findings": []}
        code, text, _ = self.make(self.report("a", CLEAN, FOUND), self.report("b", mended))
        self.assertEqual(code, 0)
        self.assertIn("| mine | torch 2.15.0 | 2 | 2 | 0 | 0 | 0 |", text)
        self.assertIn("None.", text)

    def test_another_status_is_not_conformant(self):
        code, text, _ = self.make(self.report("a", {**CLEAN, "status": "inconclusive"}))
        self.assertEqual(code, 0)
        self.assertIn("| mine | torch 2.15.0 | 1 | 0 | 0 | 1 | 0 |", text)

    def test_reports_that_say_too_little(self):
        self.refused("no last line", self.report("a", CLEAN, end=False))
        self.refused("engine.json", self.folder / "nowhere")
        other = self.report("b", CLEAN, versions={"torch": "2.14.0"})
        self.refused("another version", self.report("a", CLEAN), other)
        waived = {**FOUND, "findings": [{**FOUND["findings"][0], "waived_because": "known"}]}
        self.refused("--waivers", self.report("a", waived))

    def test_verdicts_that_are_none(self):
        good = self.report("a", CLEAN)
        self.refused("kind is 'nice'", good, verdicts=VERDICT.replace("choice of design", "nice"))
        self.refused("why", good, verdicts=VERDICT.replace("why", "because"))
        self.refused("verdicts.toml", good, verdicts="[[")


if __name__ == "__main__":
    unittest.main(verbosity=2)
