"""DeepSpeed and torch's ZeroRedundancyOptimizer: what conforms, what is found, and published faults put back."""

import importlib.util
import json
import pathlib
import subprocess
import tempfile
import unittest

from shardproof import command
from shardproof.torch import declaration
from shardproof.torch.run import command as run

if importlib.util.find_spec("deepspeed") is None:
    raise unittest.SkipTest("deepspeed is not installed: pip install deepspeed==0.19.8")


def _nothing():
    pass


class Engines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for name in run._BEFORE_FORKING:
            importlib.import_module(name)
        from shardproof.torch.engines import deepspeed, zero_redundancy

        cls.deepspeed, cls.zero_redundancy = deepspeed.ENGINE, zero_redundancy.ENGINE
        cls.judge = command.find(None)
        cls.clean = {}  # (case, side stream) -> what is found without a fault

    def found(self, engine, case):
        """Requirements that fail when the engine runs the case."""
        from shardproof.torch.run import server

        with tempfile.TemporaryDirectory() as folder:
            traces, report = pathlib.Path(folder) / "traces", pathlib.Path(folder) / "report"
            why = server.run_case(engine, case, traces / case)
            self.assertEqual(why, "", f"{case}: {why}")
            subprocess.run(
                [self.judge, "check", f"trace:{traces / case}", f"--report={report}"],
                capture_output=True,
                check=False,
            )
            return _failed(report / "report.jsonl")

    def test_zero_1_and_2_conform(self):
        for case in (
            "w2.zero1.adamw.do=tslt",
            "w2.zero1.k2.bf16.wire16",
            "w2.zero2.k2.adamw.ogr",
            "w3.zero2.odd.tied.wd0p1",
        ):
            self.assertEqual(self.found(self.deepspeed, case), set(), case)

    def test_zero_3_keeps_itself_alive_and_nothing_else(self):
        for case in ("w2.zero3.k2.adamw", "w3.zero3.frozen=norms"):
            self.assertEqual(self.found(self.deepspeed, case), {"FS-33"}, case)

    def test_zero_3_gathers_before_the_optimizer_has_written(self):
        self.assertIn("GE-05", self.found(self.deepspeed, "w2.zero3.ogr"))

    def test_one_wait_cures_it(self):
        self.assertEqual(self._clean("w2.zero3.ogr", False), {"FS-33"})

    def test_zero_3_applies_a_gradient_again(self):
        found = self.found(self.deepspeed, "w2.zero3.unused=step")
        self.assertTrue({"FS-22", "FS-24"} <= found, found)

    def test_zero_redundancy_conforms(self):
        for case in ("w2.zero1", "w3.zero1.k2.adamw.clip0p5.tied"):
            self.assertEqual(self.found(self.zero_redundancy, case), set(), case)

    def _clean(self, case, side_stream):
        from faults_deepspeed import engine_with

        key = (case, side_stream)
        if key not in self.clean:
            self.clean[key] = self.found(engine_with(_nothing, side_stream), case)
        return self.clean[key]

    def test_published_faults_are_found(self):
        from faults_deepspeed import FAULTS, engine_with

        for fault in FAULTS:
            with self.subTest(f"{fault.source}: {fault.name}"):
                self.assertNotIn(fault.finds, self._clean(fault.case, fault.side_stream))
                found = self.found(engine_with(fault.make, fault.side_stream), fault.case)
                self.assertIn(fault.finds, found)


class Packages(unittest.TestCase):
    def test_another_version_is_named_with_the_command_that_helps(self):
        kept = dict(declaration.PACKAGES)
        self.addCleanup(lambda: declaration.PACKAGES.update(kept))
        declaration.PACKAGES["deepspeed"] = ("deepspeed", "0.0.1")
        with self.assertRaisesRegex(ValueError, "pip install deepspeed==0.0.1"):
            declaration.find("deepspeed")
        declaration.PACKAGES["deepspeed"] = ("no-such-package-here", "1")
        with self.assertRaisesRegex(ValueError, "not installed: pip install no-such-package-here==1"):
            declaration.find("deepspeed")


def _failed(report):
    """Requirements with findings, those that follow from others too."""
    rows = [json.loads(line) for line in report.read_text().splitlines()]
    return {finding["requirement"] for row in rows for finding in row.get("findings", ())}


if __name__ == "__main__":
    unittest.main(verbosity=2)
