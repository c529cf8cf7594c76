"""Engines of Megatron: what conforms, what is found, and published faults put back."""

import importlib.util
import unittest

from judged import found

from shardproof.torch import declaration

# A dropped model keeps itself alive, backward gathers the layer that it needs first last, the first step gathers
# further ahead than its limit, and later ones have lost its prefetch.
ZERO_3 = {"FS-08", "FS-09", "FS-33", "FS-45"}
# The first step gathers layers twice.
ZERO_1_AND_2 = {"FS-33", "FS-35"}


@unittest.skipIf(
    importlib.util.find_spec("megatron_fsdp") is None
    or importlib.util.find_spec("megatron") is None,
    "wanted: pip install megatron-fsdp==0.6.1 megatron-core==0.16.1",
)
class Engines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ddp = declaration.find("megatron_ddp")
        cls.fsdp = declaration.find("megatron_fsdp")
        cls.layer_wise = declaration.find("megatron_layer_wise")
        import faults_megatron

        cls.faults = faults_megatron

    def with_fault(self, engine, case, make):
        return found(self.faults.engine_with(engine, make), case)

    def test_ddp_and_the_distributed_optimizer_conform(self):
        for case in ("w2.ddp.ogr.bs500", "w3.zero1.tied.adamw", "w4.zero1.n2.ogr.opg.bs500"):
            self.assertEqual(found(self.ddp, case), set(), case)

    def test_the_layer_wise_optimizer_conforms(self):
        for case in ("w2.lw.bcast.k2.ogr", "w3.lw.bcast.wd0p1.frozen=layer"):
            self.assertEqual(found(self.layer_wise, case), set(), case)

    def test_fsdp_trains_right_and_gathers_in_the_wrong_order(self):
        for case in ("w2.zero3.k2.tied", "w4.zero3.n2"):
            self.assertEqual(found(self.fsdp, case), ZERO_3, case)

    def test_fsdp_without_overlap_reduces_twice(self):
        self.assertEqual(found(self.fsdp, "w2.zero1.ogr.opg"), ZERO_1_AND_2)
        self.assertIn("FS-37", found(self.fsdp, "w2.zero1"))

    def test_fsdp_without_overlap_reads_old_weights(self):
        self.assertEqual(found(self.fsdp, "w2.zero2.opg"), ZERO_1_AND_2)
        self.assertIn("FS-23", found(self.fsdp, "w2.zero2"))

    def test_fsdp_takes_a_step_of_its_own_and_the_published_cure_helps(self):
        case = "w2.zero2.opg.adamw"
        self.assertIn("FS-24", found(self.fsdp, case))
        cured = self.with_fault(self.fsdp, case, self.faults.published_step_is_inert)
        self.assertEqual(cured, ZERO_1_AND_2)

    def test_fsdp_prefetches_all_layers_and_the_published_cure_helps(self):
        case = "w2.zero3.layers3"
        self.assertIn("FS-09", found(self.fsdp, case))
        cured = self.with_fault(self.fsdp, case, self.faults.prefetch_is_capped)
        self.assertNotIn("FS-09", cured)

    def test_published_faults_are_found(self):
        clean = {}
        for engine, fault in self.faults.FAULTS:
            with self.subTest(f"{fault.source}: {fault.name}"):
                key = (engine.name, fault.case, fault.first_step)
                if key not in clean:
                    clean[key] = found(engine, fault.case, first_step=fault.first_step)
                self.assertNotIn(fault.finds, clean[key])
                faulty = self.faults.engine_with(engine, fault.make)
                self.assertIn(fault.finds, found(faulty, fault.case, first_step=fault.first_step))


if __name__ == "__main__":
    unittest.main(verbosity=2)
