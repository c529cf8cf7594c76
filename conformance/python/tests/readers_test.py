#!/usr/bin/env python3
"""Do the readers of reports and traces tell what stands there, and refuse what is cut off?"""

import json
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from shardproof import reports, rows, traces

HEADER = {"shardproof_report": 1, "impl": "lib:a.so", "fabric": "sim", "profile": "smoke", "seed": 7, "shard": "2/4", "new": 1}
CAUSE = {"requirement": "GE-05", "message": "race", "rank": 1, "event": 9, "stream": "comm"}
FOLLOWS = {"requirement": "FS-17", "message": "a sum", "follows": {"finding": 0, "requirement": "GE-05"}, "warning": True}
CASES = [
    {"case": "w2.ddp", "status": "fail", "judged": ["GE-01"], "replay": "r", "findings": [CAUSE, FOLLOWS]},
    {"case": "w4.ddp", "status": "partial", "judged": [], "not_checkable": [{"requirement": "FS-01", "why": "no digests"}]},
]
FOOTER = {"end": 2, "conformant": False, "verdict": "not conformant", "counts": {"fail": 1, "partial": 1}, "problems": ["p"]}
TRACE = {"shardproof_trace": 1, "rank": 0, "world": 1, "case": "by-hand", "provides": ["groups"]}
EVENTS = [{"e": "call_begin", "x": "create", "c": 0}, {"i": 1, "e": "alloc", "a": 0, "k": 32, "s": 0}]


class ReadersTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())

    def write(self, name, lines):
        (self.folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))

    def refused(self, words, read):
        with self.assertRaises(rows.FormatError) as caught:
            read(self.folder)
        self.assertIn(words, str(caught.exception))

    def test_report(self):
        self.write("report.jsonl", [HEADER, *CASES, FOOTER])
        report = reports.read(self.folder)
        self.assertEqual((report.impl, report.seed, report.shard, report.verdict), ("lib:a.so", 7, "2/4", "not conformant"))
        self.assertEqual([case.id for case in report.failed()], ["w2.ddp"])
        failed = report.case("w2.ddp")
        self.assertEqual([finding.requirement for finding in failed.causes()], ["GE-05"])
        self.assertEqual((failed.findings[0].rank, failed.findings[0].step, failed.findings[1].follows), (1, -1, 0))
        self.assertTrue(failed.findings[1].warning)
        self.assertEqual(report.case("w4.ddp").open, {"FS-01": "no digests"})
        self.assertEqual(report.header["new"], 1)
        self.assertRaises(KeyError, report.case, "w8.ddp")

    def test_report_that_is_none(self):
        self.refused("No such file", reports.read)
        self.write("report.jsonl", [HEADER, *CASES])
        self.refused("the run did not end", reports.read)
        unended = reports.read(self.folder, unended=True)
        self.assertEqual((unended.ended, unended.verdict, len(unended.cases)), (False, "", 2))
        self.write("report.jsonl", [HEADER, CASES[0], FOOTER])
        self.refused("report.jsonl:3: the end counts 2 cases, there are 1", reports.read)
        self.write("report.jsonl", [{**HEADER, "shardproof_report": 2}, FOOTER])
        self.refused("report.jsonl:1: a report begins with", reports.read)
        self.write("report.jsonl", [HEADER, {"case": "w2.ddp", "status": "pass"}, {**FOOTER, "end": 1}])
        self.refused("report.jsonl:2: this line lacks judged", reports.read)
        (self.folder / "report.jsonl").write_text('{"shardproof_report":1}\n{"case":')
        self.refused("report.jsonl:2:", reports.read)
        (self.folder / "report.jsonl").write_text("[]\n")
        self.refused("report.jsonl:1: this line is no JSON object", reports.read)

    def test_trace(self):
        self.write("trace.00000.jsonl", [TRACE, {"stream": 0, "name": "compute"}, {"group": 0, "comm": "dp"}, *EVENTS,
                                         {"end": 2, "status": "died", "reason": "signal 9"}])
        self.write("trace.0.jsonl", [])  # other files are ignored
        (trace,) = traces.read(self.folder)
        self.assertEqual((trace.rank, trace.case, trace.status, trace.reason), (0, "by-hand", "died", "signal 9"))
        self.assertEqual([(event.index, event.kind, event["k"]) for event in trace.events], [(0, "call_begin", 0), (1, "alloc", 32)])
        self.assertEqual((trace.events[0]["s"], trace.events[1]["for"], trace.events[0]["v"]), (-1, "other", None))
        self.assertEqual((trace.streams[0]["name"], trace.groups[0]["comm"]), ("compute", "dp"))

    def test_trace_that_is_none(self):
        self.refused("there is no trace.00000.jsonl", traces.read)
        self.write("trace.00000.jsonl", [TRACE, *EVENTS])
        self.refused("it was cut off", traces.read)
        self.write("trace.00000.jsonl", [TRACE, EVENTS[1], {"end": 1}])
        self.refused("trace.00000.jsonl:2: event 1 stands where 0 is due", traces.read)
        self.write("trace.00000.jsonl", [TRACE, EVENTS[0], {"end": 2}])
        self.refused("the end counts 2 events, there are 1", traces.read)
        self.write("trace.00000.jsonl", [{**TRACE, "world": 2}, {"end": 0}])
        self.refused("traces of ranks [0], of a world of 2", traces.read)


if __name__ == "__main__":
    unittest.main()
