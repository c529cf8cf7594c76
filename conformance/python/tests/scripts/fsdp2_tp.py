"""FSDP2 with tensor and sequence parallelism on four ranks, two by two. Mistake: unwaited, a
gather that is read before it has ended.
"""

import sys

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

mistake = sys.argv[1] if len(sys.argv) > 1 else ""
device = torch.accelerator.current_accelerator()
mesh = init_device_mesh(device.type, (2, 2), mesh_dim_names=("data", "tensor"))
torch.manual_seed(mesh["data"].get_local_rank())


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.mlp(self.norm(x))

    def mlp(self, x):
        return self.down(nn.functional.gelu(self.up(x)))


class Net(nn.Module):
    def __init__(self, width=32, layers=2, words=64):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.layers = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words)

    def forward(self, tokens):
        hidden = self.embedding(tokens)
        for layer in self.layers:
            hidden = layer(hidden)
        return self.head(self.norm(hidden))


def parallelize(net):
    plan = {
        "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "norm": SequenceParallel(),
        "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
    }
    for i in range(len(net.layers)):
        plan[f"layers.{i}.norm"] = SequenceParallel()
        plan[f"layers.{i}.up"] = ColwiseParallel(input_layouts=Shard(1))
        plan[f"layers.{i}.down"] = RowwiseParallel(output_layouts=Shard(1))
    parallelize_module(net, mesh["tensor"], plan)
    for layer in net.layers:
        fully_shard(layer, mesh=mesh["data"])
    fully_shard(net, mesh=mesh["data"])


def main():
    net = Net().to(device)
    parallelize(net)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    group = mesh["tensor"].get_group()
    for _ in range(3):
        tokens = torch.randint(0, 64, (2, 16)).to(device)
        dist.broadcast(tokens, group=group, group_src=0)
        loss = nn.functional.cross_entropy(net(tokens).flatten(0, 1), tokens.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses = torch.empty(2, device=device)
        work = dist.all_gather_single(losses, loss.detach().view(1), group, async_op=True)
        if mistake != "unwaited":
            work.wait()
        mean = losses.mean()  # FOUND unwaited
        work.wait()
        print(f"loss {mean.item():.4f}")


main()
dist.destroy_process_group()
