"""Experts on several ranks: exchanges of the fixture, FSDP2 and Megatron with groups of experts, and mistakes in them."""

import importlib.util
import unittest
from unittest import mock

import torch
import torch.distributed as dist
from judged import found
from torch.distributed.fsdp import FSDPModule

from shardproof.torch.declaration import find
from shardproof.torch.engines import fsdp2
from shardproof.torch.fixture import exchange

CASE = "w2.zero3.ep2.k2.moe4"


class Fsdp2(unittest.TestCase):
    def setUp(self):
        self.engine = find("fsdp2")

    def found_with(self, owner, name, other, case=CASE):
        with mock.patch.object(owner, name, other):
            return found(self.engine, case)

    def test_conforms(self):
        for case in (
            CASE,
            "w2.zero3.ep2.moe4.top1.skew=rank",  # a rank without rows
            "w2.zero3.ep2.k2.recompute.adamw.clip0p5.moe4.aux.cap125.pad.shared",
            "w4.zero3.ep2.experts",
        ):
            self.assertEqual(found(self.engine, case), set(), case)

    def test_gradients_of_experts_divided_by_their_own_ranks(self):
        undone = lambda self, factor: None  # noqa: E731
        got = self.found_with(FSDPModule, "set_gradient_divide_factor", undone)
        self.assertTrue(got & {"FS-17", "EP-22"}, got)

    def test_experts_sharded_over_ranks_that_have_others(self):
        mesh = fsdp2.mesh
        got = self.found_with(fsdp2, "mesh", lambda case, family=None: mesh(case))
        self.assertTrue(got)

    def test_an_exchange_that_nobody_waits_for(self):
        work = []

        def later(*tensors, **options):
            work.append(real(*tensors, **options, async_op=True))

        real = dist.all_to_all_single
        got = self.found_with(exchange.dist, "all_to_all_single", later)
        self.assertIn("GE-05", got)

    def test_rows_that_stay_where_they_are(self):
        real = exchange._move

        def here(received, sent, splits, group):
            if received.shape == sent.shape and received.is_floating_point():
                received.copy_(sent)
            else:
                real(received, sent, splits, group)

        case = "w2.zero3.ep2.moe4.cap125.pad"
        self.assertEqual(found(self.engine, case), set())
        self.assertTrue(self.found_with(exchange, "_move", here, case) & {"EP-28", "EP-30", "FS-01"})


@unittest.skipIf(
    importlib.util.find_spec("megatron") is None, "wanted: pip install megatron-core==0.16.1"
)
class Megatron(unittest.TestCase):
    def setUp(self):
        self.engine = find("megatron_ddp")

    def test_conforms(self):
        for case in ("w2.ddp.ep2.k2.moe4", "w4.zero1.ep2.k2.ogr.opg.experts"):
            self.assertEqual(found(self.engine, case), set(), case)

    def test_without_overlap_parameters_are_gathered_for_each_optimizer(self):
        self.assertEqual(found(self.engine, "w2.zero1.ep2.k2.moe4"), {"FS-35"})


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main(verbosity=2)
