"""Published faults of Megatron-LM, put back into megatron-core 0.16.1 and megatron-fsdp 0.6.1, and
cures of those they have.

Each says where it was published, the case that shows it, and the requirement that finds it there.
"""


import torch
from faults import Fault, edit
from megatron.core.distributed import DistributedDataParallel
from megatron.core.distributed.param_and_grad_buffer import _ParamAndGradBucketGroup

# After the engines: the engine hides megatron-core from this package.
from shardproof.torch.engines import megatron_core, megatron_ddp, megatron_fsdp  # isort: skip
from megatron_fsdp.megatron_fsdp import MegatronFSDP  # isort: skip
from megatron_fsdp.param_and_grad_buffer import GradReducePipeline  # isort: skip

from shardproof.torch.declaration import engine


def _buckets(name, old, new):
    return lambda: edit(_ParamAndGradBucketGroup, name, old, new)


def _fsdp(name, old, new):
    return lambda: edit(MegatronFSDP, name, old, new)


def _fsdp_reduction(name, old, new):
    return lambda: edit(GradReducePipeline, name, old, new)


def _built_on_a_side_stream():
    """megatron/training/training.py, get_model: DDP is made under a stream of its own."""
    made = megatron_core.DistributedDataParallel

    def build(*arguments, **keys):
        here = torch.shardproof
        side = here.Stream()
        side.wait_stream(here.current_stream())
        with here.stream(side):
            wrapped = made(*arguments, **keys)
        here.current_stream().wait_stream(side)
        return wrapped

    megatron_core.DistributedDataParallel = build


def _gradients_are_not_finished():
    DistributedDataParallel.finish_grad_sync = lambda self, force_all_reduce=False: None


def _parameters_are_gathered_twice():
    once = DistributedDataParallel.start_param_sync

    def twice(self, *unused, **keys):
        once(self, *unused, **keys)
        once(self, *unused, **keys)

    DistributedDataParallel.start_param_sync = twice


DDP = [
    Fault(
        "DDP is built under a side stream: hooks scale gradients there, nobody waits",
        "NVIDIA/Megatron-LM#3670",
        "w4.zero1.n2.ogr",
        "GE-05",
        _built_on_a_side_stream,
    ),
    Fault(
        "parameters are gathered once only: later forwards read old ones",
        "NVIDIA/Megatron-LM#663",
        "w2.zero1.ogr.opg",
        "FS-23",
        _buckets("finish_grad_sync", "self.param_gather_dispatched = False", "pass"),
    ),
    Fault(
        "the training loop does not finish the synchronisation of gradients",
        "NVIDIA/Megatron-LM#1685",
        "w2.zero1",
        "FS-05",
        _gradients_are_not_finished,
    ),
    Fault(
        "the distributed optimizer gathers parameters twice",
        "NVIDIA/Megatron-LM#1527",
        "w2.zero1",
        "FS-35",
        _parameters_are_gathered_twice,
    ),
]

FSDP = [
    Fault(
        "gradients are summed over ranks and not divided",
        "NVIDIA/Megatron-LM#3023",
        "w2.zero3",
        "FS-17",
        _fsdp_reduction(
            "_bucket_group_gradient_reduce",
            "unreduced_grad, scaling_factor, ddp_config",
            "unreduced_grad, None, ddp_config",
        ),
    ),
    Fault(
        "a gradient bucket is written again before its reduce-scatter has read it",
        "NVIDIA/Megatron-LM#5222",
        "w2.zero3.k2",
        "GE-05",
        _fsdp_reduction("wait_for_previous_grad_reduce", "grad_reduce_event.wait()", "pass"),
    ),
    Fault(
        "forward's prefetch runs during recomputation in backward",
        "NVIDIA/Megatron-LM#6153",
        "w2.zero3.recompute",
        "FS-09",
        _fsdp("_register_fsdp_hooks", "fsdp_forward_prefetch = False", "pass"),
        first_step=1,
    ),
]


def published_step_is_inert():
    """The cure of NVIDIA/Megatron-LM#5976: fully_shard_optimizer's own step leaves no state."""
    original = megatron_fsdp.fully_shard_optimizer

    def inert(optimizer, **keys):
        wrapped = original(optimizer, **keys)
        wrapped.state.clear()
        return wrapped

    megatron_fsdp.fully_shard_optimizer = inert


prefetch_is_capped = _fsdp("_init_fsdp_param_and_grad_buffer", "max(", "min(")  # #7134


def engine_with(original, make):
    """The engine as it is, with what make does."""

    @engine(knobs=original.knobs, traits=original.traits)
    def build(case, model, device):
        make()
        return original.build(case, model, device)

    build.name = original.name
    return build


FAULTS = [(megatron_ddp.ENGINE, fault) for fault in DDP] + [
    (megatron_fsdp.ENGINE, fault) for fault in FSDP
]
