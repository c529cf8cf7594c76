#!/usr/bin/env python3
"""Is every line of report.jsonl what report.schema.json says? report_schema_test.py SHARDPROOF ENGINE HOSTILE_REPORTS SCHEMA

Reports of real runs, and of hostile texts; by a validator that is not ours (python3-jsonschema). And does the schema refuse a
line that lacks something, or has something that it must not have?
"""

import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import jsonschema

SHARDPROOF, ENGINE, HOSTILE, SCHEMA = (os.path.abspath(argument) for argument in sys.argv[1:5])
_HOSTILE_REPORTS = 150


def run(*arguments):
    return subprocess.run([SHARDPROOF, *map(str, arguments)], stdout=subprocess.DEVNULL, check=False).returncode


def lines(folder):
    return [json.loads(line) for line in (folder / "report.jsonl").read_text(encoding="ascii").splitlines()]


class SchemaTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        schema = json.loads(pathlib.Path(SCHEMA).read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator.check_schema(schema)
        cls.schema = jsonschema.Draft202012Validator(schema)
        cls.kinds = {name: jsonschema.Draft202012Validator({"$ref": "#/$defs/" + name, "$defs": schema["$defs"]})
                     for name in ("header", "case", "footer")}
        cls.folder = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
        red = cls.folder / "red"
        assert run("run", "--impl", "lib:" + ENGINE, "--profile", "smoke", "--report", red) == 1
        cls.red = lines(red)

    def check(self, rows, ended=True):
        for place, row in enumerate(rows):
            last = ended and place + 1 == len(rows)
            self.kinds["header" if place == 0 else "footer" if last else "case"].validate(row)
            self.schema.validate(row)

    def test_of_a_red_run(self):
        self.check(self.red)
        self.assertTrue(any("follows" in finding for row in self.red for finding in row.get("findings", [])))
        self.assertIn("shrink", self.red[1] if "findings" in self.red[1] else
                      next(row for row in self.red if "findings" in row))

    def test_of_a_green_run_and_of_its_traces(self):
        traces, green, recorded = (self.folder / name for name in ("traces", "green", "recorded"))
        self.assertEqual(run("run", "--case", "w2.zero3", "--trace", traces, "--report", green), 0)
        self.assertIn(run("check", f"trace:{traces}", "--report", recorded), (0, 4))
        for folder in green, recorded:
            self.check(lines(folder))

    def test_of_a_shard_that_judges_nothing(self):
        folder = self.folder / "shard"
        self.assertEqual(run("run", "--impl", "lib:" + ENGINE, "--profile", "smoke", "--select", "w*", "--exclude", "w8*",
                             "--level", "order", "--shard", "400/400", "--report", folder), 0)
        rows = lines(folder)
        self.check(rows)
        self.assertEqual([rows[0][name] for name in ("select", "exclude", "options")], [["w*"], ["w8*"], ["--level order"]])
        self.assertEqual(rows[-1]["verdict"], "nothing to judge")

    def test_of_hostile_texts(self):
        folder = self.folder / "hostile"
        folder.mkdir()
        subprocess.run([HOSTILE, str(folder), str(_HOSTILE_REPORTS)], stdout=subprocess.DEVNULL, check=True)
        reports = sorted(folder.glob("**/report.jsonl"))
        self.assertGreater(len(reports), 10)
        for report in reports:
            rows = lines(report.parent)
            self.check(rows, ended="end" in rows[-1])

    def test_it_refuses_what_is_no_line(self):
        case = next(row for row in self.red if "findings" in row)
        for name, row in ("header", self.red[0]), ("case", case), ("footer", self.red[-1]):
            for key in self.schema.schema["$defs"][name]["required"]:
                less = {other: value for other, value in row.items() if other != key}
                self.assertFalse(self.schema.is_valid(less), f"{name} without {key}")
            self.assertFalse(self.schema.is_valid({**row, "surprise": 1}), name)
        for change in ({"status": "green"}, {"findings": []}, {"judged": "GE-05"}, {"printed": [{"rank": -1, "text": ""}]}):
            self.assertFalse(self.schema.is_valid({**case, **change}), change)
        self.assertFalse(self.schema.is_valid({**self.red[0], "shardproof_report": 2}))
        worse = copy.deepcopy(case)
        worse["findings"][0].pop("message")
        self.assertFalse(self.schema.is_valid(worse))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
