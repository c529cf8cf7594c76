"""Published faults of DDP, put back into torch 2.15.0: one function is edited at run time.

Buckets are the reducer's, in C++; what a bucket's all-reduce does is that of torch's own hook,
`allreduce_hook`, which does what DDP does without one.
"""

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

from faults_fsdp2 import Fault, edit
from shardproof.torch.engines import ddp

_DDP = ddp.ENGINE


def _with_hook(_case, training):
    """DDP with the hook of torch that does what DDP does without one."""
    training.model.register_comm_hook(None, default_hooks.allreduce_hook)


def _small_buckets():
    """The first bucket of DDP holds 1 MiB, which is more than the fixture has."""
    assign = dist._compute_bucket_assignment_by_size
    dist._compute_bucket_assignment_by_size = lambda parameters, _limits, *rest: assign(
        parameters, [512], *rest
    )


def _order_of_buckets_by_rank():
    assign = dist._compute_bucket_assignment_by_size

    def of_this_rank(*arguments):
        indices, limits = assign(*arguments)
        return (indices[::-1], limits[::-1]) if dist.get_rank() else (indices, limits)

    dist._compute_bucket_assignment_by_size = of_this_rank


def _hook(text, new):
    return lambda: edit(default_hooks, "_allreduce_fut", text, new)


_REDUCED = """(
        dist.all_reduce(tensor, group=group_to_use, async_op=True)
        .get_future()
        .then(lambda fut: fut.value()[0])
    )"""

FAULTS = [
    Fault(
        "ranks have their buckets in different orders",
        "pytorch/pytorch#35137",
        _DDP,
        "w2.ddp",
        "GE-01",
        _order_of_buckets_by_rank,
        before=_small_buckets,
    ),
    Fault(
        "DDP stays without synchronisation after no_sync",
        "pytorch/pytorch#143647",
        _DDP,
        "w2.ddp.k2",
        "FS-15",
        lambda: edit(
            DistributedDataParallel,
            "no_sync",
            "self.require_backward_grad_sync = old_require_backward_grad_sync",
            "pass",
        ),
    ),
    Fault(
        "the future of a hook is done before the all-reduce",
        "pytorch/pytorch#42335",
        _DDP,
        "w2.ddp",
        "GE-05",
        _hook(
            _REDUCED,
            "(dist.all_reduce(tensor, group=group_to_use, async_op=True),"
            " done := torch.futures.Future(), done.set_result(tensor))[1]",
        ),
        setup=_with_hook,
    ),
    Fault(
        "what a hook answers is not copied back to the bucket",
        "pytorch/pytorch#43307",
        _DDP,
        "w2.ddp",
        "FS-15",
        _hook("dist.all_reduce(tensor,", "dist.all_reduce(torch.zeros_like(tensor),"),
        setup=_with_hook,
    ),
    Fault(
        "a hook divides by the ranks twice",
        "pytorch/pytorch#106034",
        _DDP,
        "w2.ddp",
        "FS-17",
        _hook("tensor.div_(group_to_use.size())", "tensor.div_(group_to_use.size() ** 2)"),
        setup=_with_hook,
    ),
]
