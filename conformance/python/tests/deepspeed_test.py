"""DeepSpeed and torch's ZeroRedundancyOptimizer: what conforms, and what is found."""

import importlib.util
import unittest

from judged import found

from shardproof.torch import declaration


@unittest.skipIf(
    importlib.util.find_spec("deepspeed") is None,
    "deepspeed is not installed: pip install deepspeed==0.19.8",
)
class Engines(unittest.TestCase):
    def deepspeed(self, case):
        return found(declaration.find("deepspeed"), case)

    def test_zero_1_and_2_conform(self):
        for case in (
            "w2.zero1.adamw.do=tslt",
            "w2.zero1.k2.bf16.wire16",
            "w2.zero2.k2.adamw.ogr",
            "w3.zero2.odd.tied.wd0p1",
        ):
            self.assertEqual(self.deepspeed(case), set(), case)

    def test_zero_3_keeps_itself_alive_and_nothing_else(self):
        for case in ("w2.zero3.k2.adamw", "w3.zero3.frozen=norms"):
            self.assertEqual(self.deepspeed(case), {"FS-33"}, case)

    def test_zero_3_gathers_before_the_optimizer_has_written(self):
        self.assertIn("GE-05", self.deepspeed("w2.zero3.ogr"))

    def test_one_wait_cures_it(self):
        from faults_deepspeed import engine_with

        self.assertEqual(found(engine_with(lambda: None), "w2.zero3.ogr"), {"FS-33"})

    def test_zero_3_applies_a_gradient_again(self):
        got = self.deepspeed("w2.zero3.unused=step")
        self.assertTrue({"FS-22", "FS-24"} <= got, got)

    def test_it_does_not_if_they_are_set_to_zero(self):
        from faults_deepspeed import engine_with, unused_gradients_are_zero

        got = found(engine_with(unused_gradients_are_zero), "w2.zero3.unused=step")
        self.assertFalse({"FS-22", "FS-24"} & got, got)


class ZeroRedundancy(unittest.TestCase):
    def test_it_conforms(self):
        for case in ("w2.zero1", "w3.zero1.k2.adamw.clip0p5.tied"):
            self.assertEqual(found(declaration.find("zero_redundancy"), case), set(), case)


class Packages(unittest.TestCase):
    def refused(self, package, version, sentence):
        kept = declaration.PACKAGES["deepspeed"]
        declaration.PACKAGES["deepspeed"] = (package, version)
        try:
            with self.assertRaisesRegex(ValueError, sentence):
                declaration.find("deepspeed")
        finally:
            declaration.PACKAGES["deepspeed"] = kept

    def test_another_version_is_named_with_the_command_that_helps(self):
        self.refused("deepspeed", "0.0.1", "pip install deepspeed==0.0.1")

    def test_an_absent_package_too(self):
        self.refused("no-such-package", "1", "not installed: pip install no-such-package==1")


if __name__ == "__main__":
    unittest.main(verbosity=2)
