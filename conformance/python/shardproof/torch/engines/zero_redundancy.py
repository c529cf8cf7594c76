"""torch.distributed.optim.ZeroRedundancyOptimizer with DistributedDataParallel, as they are.

Whole parameters are dealt to ranks, which step their own and broadcast them. The optimizer inside
is the fixture's. overlap_with_ddp is not driven: by its documentation the first two or three steps
then change nothing, and it takes functional optimizers of torch, which differ in the last place.
"""

import contextlib

from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

from shardproof.torch.declaration import Training, engine
from shardproof.torch.engines.common import COMMON_KNOBS, NO_SAVES, refuse_experts
from shardproof.torch.fixture.case import mesh
from shardproof.torch.fixture.optimizers import ExactAdamW, ExactSGD


class _Optimizer:
    """The shape that the training loop calls; scale (clipping) reaches the optimizer inside."""

    def __init__(self, sharded):
        self._sharded = sharded

    def __setattr__(self, name, value):
        if name == "scale":
            self._sharded.optim.scale = value
        else:
            super().__setattr__(name, value)

    def step(self):
        self._sharded.step()

    def zero_grad(self, set_to_none=True):
        self._sharded.zero_grad(set_to_none=set_to_none)


@engine(
    knobs={**COMMON_KNOBS, "strategy": ["optim"], "overlap_grad_reduce": ["1", "0"]},
    traits=refuse_experts,
    takes=NO_SAVES,
)
def build(case, model, device):
    if case.value("recompute") == "1":
        model.recompute_layers()
    group = mesh(case).get_group("shard")
    wrapped = DistributedDataParallel(
        model, process_group=group, find_unused_parameters="unused" in case.traits
    )
    kind = {"sgd": ExactSGD, "adamw": ExactAdamW}[case.value("optimizer")]
    sharded = ZeroRedundancyOptimizer(
        [p for p in model.parameters() if p.requires_grad],
        kind,
        process_group=group,
        lr=float(case.value("lr")),
        weight_decay=float(case.value("weight_decay")),
    )

    def microbatch(_index, last):
        return contextlib.nullcontext() if last else wrapped.no_sync()

    return Training(wrapped, _Optimizer(sharded), microbatch=microbatch)


ENGINE = build
ENGINE.name = "zero_redundancy"
