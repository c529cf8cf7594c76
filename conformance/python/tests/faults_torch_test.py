"""Published faults of FSDP2 and DDP, put back: each is found, and not without it.

usage: faults_torch_test.py [CASE...]; needs torch, and SHARDPROOF.
"""

import importlib
import json
import pathlib
import subprocess
import tempfile
import unittest

from shardproof import command
from shardproof.torch.run import command as run


def _failed(report):
    """Requirements with findings, those that follow from others too."""
    rows = [json.loads(line) for line in report.read_text().splitlines()]
    return {finding["requirement"] for row in rows for finding in row.get("findings", ())}


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for name in run._BEFORE_FORKING:
            importlib.import_module(name)
        cls.judge = command.find(None)
        cls.clean = {}  # (engine, case, before, setup) -> what is found without the fault

    def found(self, fault, made):
        """Requirements that fail when the fault's engine runs its case."""
        from faults_torch import engine_with
        from shardproof.torch.run import server

        with tempfile.TemporaryDirectory() as folder:
            traces, report = pathlib.Path(folder) / "traces", pathlib.Path(folder) / "report"
            engine = engine_with(fault, made)
            why = server.run_case(engine, fault.case, traces / fault.case, patience=6.0)
            # A fault may stop its run; a fault that could not be made is none.
            self.assertNotIn("faults_torch.py", why)
            if not made:
                self.assertEqual(why, "")
            subprocess.run(
                [self.judge, "check", f"trace:{traces / fault.case}", f"--report={report}"],
                capture_output=True,
                check=False,
            )
            return _failed(report / "report.jsonl")

    def without(self, fault):
        key = (fault.engine.name, fault.case, fault.before, fault.setup)
        if key not in self.clean:
            self.clean[key] = self.found(fault, made=False)
        return self.clean[key]

    def both(self, engine):
        from faults_torch import FAULTS

        for fault in (fault for fault in FAULTS if fault.engine.name == engine):
            with self.subTest(f"{fault.source}: {fault.name}"):
                self.assertEqual(self.without(fault), set())
                self.assertIn(fault.finds, self.found(fault, made=True))

    def test_faults_of_fsdp2_are_found(self):
        self.both("fsdp2")

    def test_faults_of_ddp_are_found(self):
        self.both("ddp")


if __name__ == "__main__":
    unittest.main(verbosity=2)
