"""torch.nn.parallel.DistributedDataParallel, as it is."""

import contextlib

from torch.nn.parallel import DistributedDataParallel

from shardproof.torch.declaration import Training, engine
from shardproof.torch.engines import checkpoint
from shardproof.torch.engines.common import COMMON_KNOBS, refuse_experts
from shardproof.torch.fixture.case import mesh
from shardproof.torch.fixture.optimizers import optimizer


# Not average_in_collective: DDP divides first and sums. Not bucket_size: its first bucket is 1 MiB whatever the cap.
@engine(
    knobs={**COMMON_KNOBS, "strategy": ["no_shard"], "overlap_grad_reduce": ["1", "0"]},
    marks={"DistributedDataParallel.forward": "FORWARD"},
    traits=refuse_experts,
)
def build(case, model, device):
    if case.value("recompute") == "1":
        model.recompute_layers()
    wrapped = DistributedDataParallel(
        model,
        process_group=mesh(case).get_group("shard"),
        find_unused_parameters="unused" in case.traits,
    )

    def microbatch(_index, last):
        return contextlib.nullcontext() if last else wrapped.no_sync()

    made = optimizer(case, model)
    return Training(
        wrapped,
        made,
        microbatch=microbatch,
        save=lambda folder: checkpoint.save(folder, wrapped, made),
        load=lambda folder: checkpoint.load(folder, wrapped, made),
    )


ENGINE = build
ENGINE.name = "ddp"
