"""A transformer under FSDP2 with bf16, activation checkpointing and clipping. Mistake: side."""

import sys

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.utils.checkpoint import checkpoint

mistake = sys.argv[1] if len(sys.argv) > 1 else ""
device = torch.accelerator.current_accelerator()
dist.init_process_group()
torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self, width=64, layers=4, words=100):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True, norm_first=True)
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words)

    def forward(self, tokens):
        hidden = self.embedding(tokens)
        for layer in self.layers:
            hidden = checkpoint(layer, hidden, use_reentrant=False)
        return self.head(self.norm(hidden))


def main():
    net = Net().to(device)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in net.layers:
        fully_shard(layer, mp_policy=policy)
    fully_shard(net, mp_policy=policy)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    side = torch.Stream(device=device)
    for _ in range(3):
        tokens = torch.randint(0, 100, (2, 32)).to(device)
        if mistake == "side":  # the batch is made on another stream, and nobody waits for it
            with side:
                tokens = (tokens + 1) % 100
        logits = net(tokens).float()  # FOUND side
        loss = nn.functional.cross_entropy(logits.view(-1, 100), tokens.view(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        print(f"loss {loss.item():.4f}")


main()
dist.destroy_process_group()
