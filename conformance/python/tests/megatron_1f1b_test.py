"""Megatron's 1F1B schedule that hides experts' all-to-alls: it is judged, and a wait that is left out is found."""

import contextlib
import gc
import importlib.util
import unittest
from unittest import mock

from judged import found

from shardproof.torch.declaration import find

CASE = "w2.ddp.ep2.k2.moe4.1f1b"


@unittest.skipIf(
    importlib.util.find_spec("megatron") is None, "wanted: pip install megatron-core==0.16.1"
)
class Schedule(unittest.TestCase):
    def setUp(self):
        self.engine = find("megatron_1f1b")

    def collected(self):
        """The engine, with a garbage collection after each step."""
        made = self.engine.build

        def build(case, model, device):
            training = made(case, model, device)
            step = training.step

            def then_collect(passes):
                losses = step(passes)
                gc.collect()
                return losses

            training.step = then_collect
            return training

        return mock.patch.object(self.engine, "build", build)

    def test_nodes_of_the_loss_stay_until_garbage_is_collected(self):
        self.assertEqual(found(self.engine, CASE), {"FS-32"})
        with self.collected():
            self.assertEqual(found(self.engine, CASE), set())

    def test_conforms_but_for_that(self):
        case = "w2.ddp.ep2.k3.layers3.moe4.moelayers=odd.1f1b.er"
        with self.collected():
            self.assertEqual(found(self.engine, case), set())

    def test_a_stream_that_does_not_wait(self):
        from megatron.core.pipeline_parallel import utils

        @contextlib.contextmanager
        def acquire(stream, event):
            if stream is not utils.get_comm_stream():
                event.wait(stream)
            try:
                yield
            finally:
                event.record(stream)

        with mock.patch.object(utils, "stream_acquire_context", acquire):
            self.assertIn("GE-05", found(self.engine, CASE))

    def test_microbatches_that_follow_one_another(self):
        from shardproof.torch.engines import megatron_1f1b

        make = megatron_1f1b._configure

        def configure(case, wrapped):
            make(case, wrapped)
            wrapped.config.overlap_moe_expert_parallel_comm = False

        with mock.patch.object(megatron_1f1b, "_configure", configure):
            self.assertIn("EP-03", found(self.engine, CASE))


if __name__ == "__main__":
    unittest.main(verbosity=2)
