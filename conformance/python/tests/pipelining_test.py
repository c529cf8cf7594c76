"""The engine pipelining on cases of the suite: torch's schedule conforms, and a mistake in it is found."""

import unittest
from unittest import mock

from judged import found
from torch.distributed.pipelining import schedules
from torch.distributed.pipelining.stage import PipelineStage

from shardproof import model as api
from shardproof.torch.declaration import find
from shardproof.torch.engines import pipelining
from shardproof.torch.fixture.case import Case, Unsupported

CASE = "w2.ddp.pp2.k4.layers4.vpp2"
SHARDED = "w4.zero1.pp2.k4.layers4.vpp2"


class Pipelines(unittest.TestCase):
    def setUp(self):
        self.engine = find("pipelining")

    def found_with(self, owner, name, other, case=CASE):
        """With one function replaced; ranks are forks of this process."""
        with mock.patch.object(owner, name, other):
            return found(self.engine, case)

    def test_conforms(self):
        for case in (
            CASE,
            "w2.ddp.pp2.k2.recompute.norm.layers6.frozen=layer.vpp3",
            SHARDED,
            "w4.zero1.pp2.k4.recompute.norm.layers8.vpp4",
        ):
            self.assertEqual(found(self.engine, case), set(), case)

    def test_two_buckets_leave_nothing_to_hide_under(self):
        """One bucket a stage: what else is summed, flags and the norm, is no reduction of gradients."""
        case = "w4.ddp.pp2.k4.ogr.adamw.clip0p5.do=tet.layers4.bias.root.vpp2"
        self.assertEqual(found(self.engine, case), set())

    def test_received_and_not_waited_for(self):
        got = self.found_with(schedules, "_wait_batch_p2p", lambda work: None)
        self.assertIn("GE-05", got)

    def test_a_gradient_that_is_not_divided(self):
        got = self.found_with(PipelineStage, "scale_grads", lambda self, factor: None)
        self.assertIn("FS-17", got)

    def test_a_gradient_that_the_previous_stage_gets_twice_as_large(self):
        receive = PipelineStage._retrieve_recv_grads

        def doubled(self, chunk):
            return tuple(g * 2 if g is not None else g for g in receive(self, chunk))

        self.assertIn("FS-15", self.found_with(PipelineStage, "_retrieve_recv_grads", doubled))

    def test_replicas_that_are_not_reduced(self):
        got = self.found_with(
            pipelining,
            "DistributedDataParallel",
            lambda part, process_group: part,
            "w4.ddp.pp2.k2.layers4.vpp2",
        )
        self.assertIn("FS-15", got)

    def test_shards_that_are_not_reduced(self):
        start = PipelineStage.start_gradient_reduction

        def without(self):
            with mock.patch.object(type(self.submod), "set_requires_gradient_sync"):
                start(self)

        got = self.found_with(PipelineStage, "start_gradient_reduction", without, SHARDED)
        self.assertIn("FS-05", got)

    def test_shards_that_are_not_divided(self):
        got = self.found_with(PipelineStage, "scale_grads", lambda self, factor: None, SHARDED)
        self.assertIn("FS-17", got)

    def test_a_stage_that_is_gathered_again(self):
        # torch's default of max_active_stages is 3.
        def schedule(*args, max_active_stages, **options):
            return schedules.ScheduleInterleaved1F1B(*args, **options)

        got = self.found_with(
            pipelining, "ScheduleInterleaved1F1B", schedule, "w4.zero1.pp2.k4.layers8.vpp4"
        )
        self.assertIn("FS-35", got)

    def test_losses_that_nobody_has(self):
        silent = lambda training: lambda passes: training(passes) and {}  # noqa: E731
        made = self.engine.build

        def build(case, model, device):
            training = made(case, model, device)
            training.step = silent(training.step)
            return training

        with mock.patch.object(self.engine, "build", build):
            self.assertTrue(found(self.engine, CASE))

    def test_what_it_does_not_declare(self):
        for case_id, why in (
            ("w4.ddp.pp2", "virtual_pipeline_model_parallel_size = 1"),
            ("w4.ddp.ep2.pp2.k4.layers4.moe4.vpp2", "experts"),
            ("w4.zero1.pp2.k4.layers4.root.vpp2", "the root owns"),
            ("w8.zero1.tp2.pp2.k4.norm.layers4.vpp2", "ranks of tp"),
        ):
            with self.assertRaisesRegex(Unsupported, why):
                self.engine.refuse(Case(api.case_facts(case_id), 0))


if __name__ == "__main__":
    unittest.main(verbosity=2)
