"""Sixty steps of a small model under DDP, or under fully_shard (argument: ddp, fsdp2). The loss is
read in each, as loops do that print it.
"""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group()
torch.manual_seed(0)
device = torch.accelerator.current_accelerator()
model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8)).to(device)
if sys.argv[1] == "ddp":
    model = DistributedDataParallel(model)
else:
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batch = torch.full((4, 8), float(dist.get_rank()), device=device)
for _ in range(60):
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    loss.item()
dist.destroy_process_group()
