"""A pipeline of torch.distributed.pipelining: SCHEDULE [sharded] [unwaited].

Two ranks in a pipeline; schedules of several stages a rank have two. sharded: of four ranks, each two share a stage, by
FSDP2. Mistake: unwaited, the schedule uses what it receives without waiting.
"""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, schedules

STAGES, MICROBATCHES, WIDTH = 2, 4, 16
SEVERAL = ("Interleaved1F1B", "LoopedBFS", "InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV")
name, options = sys.argv[1], sys.argv[2:]
if "unwaited" in options:
    schedules._wait_batch_p2p = lambda work: None
device = torch.accelerator.current_accelerator()
dist.init_process_group("nccl")


def stages_of(rank):
    """In a V, the second of a rank's stages is as far from the end as the first is from the begin."""
    if name not in SEVERAL:
        return [rank], STAGES
    last = 2 * STAGES - 1 - rank if name in ("ZBVZeroBubble", "DualPipeV") else rank + STAGES
    return [rank, last], 2 * STAGES


def make_part(index, mesh):
    torch.manual_seed(index)
    part = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)).to(device)
    if mesh is not None:
        fully_shard(part, mesh=mesh, reshard_after_forward=False)
    return part


def main():
    width = dist.get_world_size() // STAGES
    mesh = init_device_mesh(device.type, (STAGES, width), mesh_dim_names=("pipeline", "shard"))
    pipeline = mesh["pipeline"]
    mine, count = stages_of(pipeline.get_local_rank())
    parts = [make_part(i, mesh["shard"] if "sharded" in options else None) for i in mine]
    stages = [
        PipelineStage(part, i, count, device, group=pipeline.get_group())
        for part, i in zip(parts, mine)
    ]
    schedule = getattr(schedules, "Schedule" + name)(
        stages if len(stages) > 1 else stages[0], MICROBATCHES, loss_fn=nn.functional.mse_loss
    )
    optimizer = torch.optim.SGD([p for part in parts for p in part.parameters()], lr=0.1)
    for _ in range(2):
        x = torch.randn(2 * MICROBATCHES, WIDTH).to(device)
        inputs = (x,) if 0 in mine else ()
        schedule.step(*inputs, **({"target": x} if count - 1 in mine else {}))
        optimizer.step()
        optimizer.zero_grad()
    torch.accelerator.synchronize()


main()
dist.destroy_process_group()
