"""Schedules of torch.distributed.pipelining and Lightning Fabric's DDP, as scripts that
shardproof-torch record judges.
"""

import importlib.util
import io
import pathlib
import tempfile
import unittest

from shardproof.torch import record

SCRIPTS = pathlib.Path(__file__).parent / "scripts"


def judge(ranks, script, *arguments):
    """Exit code and report."""
    with tempfile.TemporaryDirectory() as folder:
        given = ["-n", str(ranks), "--trace", folder, "--cuda-names", str(SCRIPTS / script)]
        out = io.StringIO()
        code = record.record(record.parser().parse_args([*given, *arguments]), out)
        return code, out.getvalue()


class Scripts(unittest.TestCase):
    def clean(self, ranks, script, *arguments):
        code, report = judge(ranks, script, *arguments)
        self.assertEqual(code, 0, report)
        self.assertIn("conformant: 1 pass", report)

    def found(self, requirement, ranks, script, *arguments):
        code, report = judge(ranks, script, *arguments)
        self.assertEqual(code, 1, report)
        self.assertRegex(report, rf"(?m)^  {requirement} ")
        return report

    def test_schedules(self):
        for schedule in ("GPipe", "Interleaved1F1B", "ZBVZeroBubble"):
            with self.subTest(schedule):
                self.clean(2, "pipeline_schedules.py", schedule)

    def test_a_pipeline_of_sharded_stages(self):
        self.clean(4, "pipeline_schedules.py", "Interleaved1F1B", "sharded")

    def test_received_and_not_waited_for(self):
        self.found("GE-05", 2, "pipeline_schedules.py", "Interleaved1F1B", "unwaited")

    @unittest.skipIf(
        importlib.util.find_spec("lightning_fabric") is None,
        "lightning_fabric is not installed: pip install lightning-fabric==2.6.6",
    )
    def test_fabric_broadcasts_on_a_stream_that_nobody_joins(self):
        report = self.found("GE-05", 2, "fabric_ddp.py")
        self.assertIn("lightning_fabric/strategies/ddp.py", report)
        self.clean(2, "fabric_ddp.py", "joined")


if __name__ == "__main__":
    unittest.main(verbosity=2)
