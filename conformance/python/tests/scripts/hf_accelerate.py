"""Hugging Face accelerate with FSDP2, clipping and gradient accumulation, written for CUDA.
Mistake: side, a batch is copied on a stream of its own, which nobody waits for.
"""

import sys

import torch
import torch.distributed as dist
import torch.nn as nn
from accelerate import Accelerator, FullyShardedDataParallelPlugin

mistake = sys.argv[1] if len(sys.argv) > 1 else ""
torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up = nn.LayerNorm(width), nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self, width=32, layers=3, words=50):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.layers = nn.ModuleList(Block(width) for _ in range(layers))
        self.head = nn.Linear(width, words)

    def forward(self, tokens):
        hidden = self.embedding(tokens)
        for layer in self.layers:
            hidden = layer(hidden)
        return self.head(hidden)


def main():
    plugin = FullyShardedDataParallelPlugin(
        fsdp_version=2,
        auto_wrap_policy="transformer_based_wrap",
        transformer_cls_names_to_wrap=["Block"],
        reshard_after_forward=True,
    )
    accelerator = Accelerator(fsdp_plugin=plugin, gradient_accumulation_steps=2)
    net = Net().to(accelerator.device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    net, optimizer = accelerator.prepare(net, optimizer)
    side = torch.cuda.Stream()
    for _ in range(4):
        tokens = torch.randint(0, 50, (2, 8)).to(accelerator.device)
        if mistake == "side":
            with torch.cuda.stream(side):
                tokens = tokens.clone()
        with accelerator.accumulate(net):
            logits = net(tokens).float()  # FOUND side
            loss = nn.functional.cross_entropy(logits.view(-1, 50), tokens.view(-1))
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        accelerator.print(f"loss {loss.item():.4f}")


main()
dist.destroy_process_group()
