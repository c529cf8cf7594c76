#!/usr/bin/env python3
"""Does `shardproof trace export --perfetto` write what was recorded? export_test.py SHARDPROOF

The file is read with Python's JSON reader; where the package perfetto and its trace_processor are installed, they count too.
"""
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SHARDPROOF = sys.argv[1]


def shardproof(*arguments):
    return subprocess.run([SHARDPROOF, *map(str, arguments)], capture_output=True, text=True, check=False)


class ExportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
        run = shardproof("run", "--case", "w2.zero3.k2", "--trace", cls.folder / "traces")
        assert run.returncode == 0, run.stdout
        cls.traces = cls.folder / "traces/w2.zero3.k2"
        cls.file = cls.folder / "run.json"
        cls.said = shardproof("trace", "export", "--perfetto", cls.file, f"trace:{cls.traces}")
        cls.events = {}
        for path in sorted(cls.traces.glob("trace.*.jsonl")):
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            cls.events[rows[0]["rank"]] = collections.Counter(row["e"] for row in rows if "e" in row)

    def test_it_says_what_it_wrote(self):
        self.assertEqual(self.said.returncode, 0, self.said.stderr)
        total = sum(sum(kinds.values()) for kinds in self.events.values())
        self.assertIn(f"{total} events of 2 ranks", self.said.stdout)

    def test_counts_are_those_of_the_trace(self):
        rows = json.loads(self.file.read_text())["traceEvents"]
        for rank, kinds in self.events.items():
            slices = collections.Counter(row["cat"] for row in rows if row["ph"] == "X" and row["pid"] == rank)
            self.assertEqual(slices, kinds)
        starts, ends = ([row["id"] for row in rows if row["ph"] == phase] for phase in "sf")
        self.assertEqual(sorted(starts), sorted(ends))
        self.assertEqual(len(starts), len(set(starts)))
        self.assertGreater(len(starts), 50)

    def test_bad_input_is_named(self):
        for arguments, said in ((("--perfetto", self.file, "flight:x"), "trace export takes trace:DIR"),
                                (("--perfetto", self.file, "trace:/no/such"), "/no/such"),
                                (("--perfetto", "/no/such/file", f"trace:{self.traces}"), "/no/such/file"),
                                ((f"trace:{self.traces}",), "--perfetto is required")):
            done = shardproof("trace", "export", *arguments)
            self.assertEqual(done.returncode, 3)
            self.assertIn(said, done.stderr)

    def test_trace_processor_counts_the_same(self):
        try:
            from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig  # pylint: disable=import-outside-toplevel
        except ImportError:
            self.skipTest("no package perfetto here")
        binary = os.environ.get("SHARDPROOF_TRACE_PROCESSOR")
        if not binary:
            self.skipTest("SHARDPROOF_TRACE_PROCESSOR names no trace_processor_shell")
        with TraceProcessor(trace=str(self.file), config=TraceProcessorConfig(bin_path=binary)) as reader:
            counted = next(iter(reader.query("select count(*) as n from slice"))).n
        self.assertEqual(counted, sum(sum(kinds.values()) for kinds in self.events.values()))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
