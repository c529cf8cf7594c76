"""Two stages of a pipeline under 1F1B (torch.distributed.pipelining). Mistake: crossed, messages
that wait for each other.
"""

import sys

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

mistake = sys.argv[1] if len(sys.argv) > 1 else ""
device = torch.accelerator.current_accelerator()
dist.init_process_group("nccl")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)


def main():
    part = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16)).to(device)
    stage = PipelineStage(part, rank, world, device)
    schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=nn.functional.mse_loss)
    optimizer = torch.optim.SGD(part.parameters(), lr=0.1)
    for _ in range(2):
        x = torch.randn(8, 16).to(device)
        if rank == 0:
            schedule.step(x)
        else:
            schedule.step(target=x)
        optimizer.step()
        optimizer.zero_grad()
    if mistake == "crossed":
        mine, theirs = torch.ones(4, device=device), torch.empty(4, device=device)
        dist.recv(theirs, 1 - rank)  # FOUND crossed
        dist.send(mine, 1 - rank)
    torch.accelerator.synchronize()


main()
dist.destroy_process_group()
