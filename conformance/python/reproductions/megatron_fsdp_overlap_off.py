"""megatron-fsdp 0.6.1 without overlap: ZeRO-1 reduces gradients twice, ZeRO-2 trains on its first
weights.

Two processes, CPU, gloo: python megatron_fsdp_overlap_off.py
"""

import sys

import torch
from megatron_fsdp_cpu import run, wrapped
from torch import nn


class Layer(nn.Linear):
    pass


def losses(rank, strategy, overlap):
    """Three steps of SGD on y = w x, w = 1: rank r sees x = r + 1, so the mean gradient is 1.5."""
    model = nn.Sequential(Layer(4, 4, bias=False))
    nn.init.ones_(model[0].weight)
    model, optimizer = wrapped(
        model,
        Layer,
        lambda params: torch.optim.SGD(params, lr=0.125, foreach=False),
        zero_dp_strategy=strategy,
        overlap_grad_reduce=overlap,
        overlap_param_gather=overlap,
    )
    found = []
    for _ in range(3):
        loss = model(torch.full((1, 4), rank + 1.0)).sum()
        found.append(loss.item())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return found


def compare(rank, _world, wrong):
    for strategy in ("no_shard", "optim", "optim_grads", "optim_grads_params"):
        for overlap in (True, False):
            found = losses(rank, strategy, overlap)
            # The weight goes down by 1.5 / 8 a step, the loss of rank 0 by 16 of that.
            right = found == [16.0, 13.0, 10.0]
            if rank == 0:
                wrong.value += not right
                said = "" if right else " WRONG"
                print(f"{strategy}, overlap {overlap}: {found}{said}", flush=True)


def main():
    wrong = torch.multiprocessing.get_context("spawn").Value("i", 0)
    run(2, compare, wrong)
    return int(wrong.value > 0)


if __name__ == "__main__":
    sys.exit(main())
