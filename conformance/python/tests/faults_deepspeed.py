"""Published faults of DeepSpeed, put back into 0.19.8: one function is edited while it runs.

A fault is made in the process of a rank, a fork, so no other run has it. Each says where it was
published, the case that shows it, and the requirement that finds it there.
"""

import contextlib
import dataclasses

import torch
from deepspeed.runtime.engine import DeepSpeedEngine
from deepspeed.runtime.zero.partitioned_param_coordinator import PartitionedParameterCoordinator
from deepspeed.runtime.zero.stage3 import DeepSpeedZeroOptimizer_Stage3
from deepspeed.runtime.zero.stage_1_and_2 import DeepSpeedZeroOptimizer, IPGBucket
from faults import Fault, edit

from shardproof.torch.declaration import engine
from shardproof.torch.engines.deepspeed import ENGINE


def gathers_wait_for_the_optimizer():
    """No fault: the cure of reproductions/deepspeed_zero3_gather_race.md."""
    edit(
        PartitionedParameterCoordinator,
        "__all_gather_params_",
        "for param_group in [",
        "self.__allgather_stream.wait_stream(get_accelerator().current_stream())\n"
        "        for param_group in [",
    )


def unused_gradients_are_zero():
    """No fault: the cure of reproductions/deepspeed_zero3_stale_gradient.md."""
    plain = DeepSpeedEngine._take_model_step

    def step(self, lr_kwargs):
        plain(self, lr_kwargs)
        self.optimizer.grad_partitions_flat_buffer.zero_()

    DeepSpeedEngine._take_model_step = step


def _stage12(name, old, new):
    return lambda: edit(DeepSpeedZeroOptimizer, name, old, new)


def _stage3(name, old, new):
    return lambda: edit(DeepSpeedZeroOptimizer_Stage3, name, old, new)


def _each_backward_is_the_last():
    DeepSpeedZeroOptimizer.set_gradient_accumulation_boundary = lambda self, _: setattr(
        self, "_is_gradient_accumulation_boundary", True
    )


FAULTS = [
    Fault(
        "bucket.clear() goes back to the first of two buffers",
        "deepspeedai/DeepSpeed#7805",
        "w2.zero2.ogr",
        "GE-05",
        lambda: edit(IPGBucket, "clear", "self.elements = 0", "self.elements = self.index = 0"),
    ),
    Fault(
        "a bucket is filled again before its reduction has read it",
        "deepspeedai/DeepSpeed#5606",
        "w2.zero2.ogr",
        "GE-05",
        _stage12(
            "average_tensor", "get_accelerator().current_stream().wait_stream(stream)", "pass"
        ),
    ),
    Fault(
        "a reduction does not wait for the stream that filled its bucket",
        "deepspeedai/DeepSpeed#8061",
        "w2.zero2.ogr",
        "GE-05",
        _stage12("average_tensor", "stream.wait_stream(producer_stream)", "pass"),
    ),
    Fault(
        "each microbatch counts as the last: what was accumulated is dropped",
        "allenai/open-instruct#1498",
        "w2.zero2.k2",
        "FS-15",
        _each_backward_is_the_last,
    ),
    Fault(
        "the last microbatch is accumulated after the reduction, by BF16_Optimizer",
        "deepspeedai/DeepSpeed#7985",
        "w2.zero1.k2.bf16.wire16",
        "FS-15",
        lambda: edit(
            DeepSpeedEngine,
            "_backward_epilogue",
            "bf16_optimizer = isinstance(self.optimizer, BF16_Optimizer)",
            "bf16_optimizer = False",
        ),
    ),
    Fault(
        "updated parameters are written to another rank's partition",
        "deepspeedai/DeepSpeed#2058",
        "w2.zero2",
        "FS-24",
        _stage12(
            "step",
            # The second place of that name: the first is offloading's.
            "bit16_partitions[partition_id].data.copy_(fp32_partition.data)\n"
            "            self.timers",
            "bit16_partitions[0].data.copy_(fp32_partition.data)\n            self.timers",
        ),
    ),
    Fault(
        "gradients are divided by the number of ranks twice",
        "deepspeedai/DeepSpeed#4957",
        "w2.zero2",
        "FS-17",
        _stage12("average_tensor", "divide=False", "divide=True"),
    ),
    Fault(
        "ZeRO-3 copies gradients after the default stream, not after the stream that made them",
        "deepspeedai/DeepSpeed#7898",
        "w2.zero3.ogr",
        "GE-05",
        _stage3(
            "__add_grad_to_ipg_bucket",
            "wait_stream(get_accelerator().current_stream())",
            "wait_stream(get_accelerator().default_stream())",
        ),
        side_stream=True,
    ),
    Fault(
        "ZeRO-3 does not reduce what is left in the bucket after backward",
        "deepspeedai/DeepSpeed#4879",
        "w2.zero3",
        "FS-15",
        _stage3(
            "independent_gradient_partition_epilogue",
            "self.__reduce_and_partition_ipg_grads(comm_dtype)",
            "pass",
        ),
    ),
]


def _on_a_side_stream(training):
    """Forward and backward run on a stream of the program, which is joined before and after."""
    streams, inner = torch.shardproof, training.around
    side = streams.Stream()

    @contextlib.contextmanager
    def microbatch(index, last):
        before = streams.current_stream()
        side.wait_stream(before)
        with streams.stream(side), inner(index, last):
            yield
        before.wait_stream(side)

    return dataclasses.replace(training, microbatch=microbatch)


def engine_with(make, side_stream=False):
    """DeepSpeed as it is, with its gathers ordered, and with what make does."""

    @engine(knobs=ENGINE.knobs, traits=ENGINE.traits)
    def build(case, model, device):
        gathers_wait_for_the_optimizer()
        make()
        training = ENGINE.build(case, model, device)
        return _on_a_side_stream(training) if side_stream else training

    build.name = ENGINE.name
    return build
