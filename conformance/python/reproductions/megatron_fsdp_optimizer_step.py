"""megatron-fsdp 0.6.1: fully_shard_optimizer takes a step: AdamW starts at step 1, weight decay is
applied once more.

One process, CPU, gloo: python megatron_fsdp_optimizer_step.py Published as
NVIDIA/Megatron-LM#5974, mended on main by #5976.
"""

import sys

import torch
from megatron_fsdp_cpu import run, wrapped
from torch import nn


class Layer(nn.Linear):
    pass


def model():
    made = nn.Sequential(Layer(4, 4, bias=False))
    nn.init.ones_(made[0].weight)
    return made


def adamw(params):
    return torch.optim.AdamW(params, lr=0.1, weight_decay=0.5, foreach=False)


def first_element(made):
    weight = next(iter(made.parameters())).detach()
    return getattr(weight, "to_local", lambda: weight)().reshape(-1)[0].item()


def compare(_rank, _world, wrong):
    plain = model()
    pairs = {"plain torch": (plain, adamw(plain.parameters()))}
    pairs["megatron-fsdp"] = wrapped(model(), Layer, adamw)
    found = {}
    for name, (made, optimizer) in pairs.items():
        values = [first_element(made)]
        made(torch.ones(1, 4)).sum().backward()
        optimizer.step()
        values.append(first_element(made))
        state = next(iter(optimizer.state.values()))
        found[name] = [round(v, 6) for v in values] + [int(state["step"])]
        print(f"{name}: weight {found[name][0]} before and {found[name][1]} after the first step; "
              f"AdamW's step is {found[name][2]}", flush=True)
    wrong.value = found["plain torch"] != found["megatron-fsdp"]


def main():
    wrong = torch.multiprocessing.get_context("spawn").Value("i", 0)
    run(1, compare, wrong, port=29812)
    return int(wrong.value)


if __name__ == "__main__":
    sys.exit(main())
