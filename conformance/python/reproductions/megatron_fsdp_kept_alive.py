"""megatron-fsdp 0.6.1: a wrapped model that its user drops stays alive, and its buffers with it.

One process, CPU, gloo: python megatron_fsdp_kept_alive.py
"""

import gc
import sys
import weakref

import torch
from megatron_fsdp_cpu import run, wrapped
from torch import nn


class Layer(nn.Linear):
    pass


def dropped(strategy, steps, unhook):
    """Is the wrapper still there when nobody refers to it?"""
    model, optimizer = wrapped(
        nn.Sequential(Layer(4, 4, bias=False), Layer(4, 4, bias=False)),
        Layer,
        lambda params: torch.optim.SGD(params, lr=0.1, foreach=False),
        zero_dp_strategy=strategy,
    )
    for _ in range(steps):
        model(torch.ones(1, 4)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    if unhook:
        for handle in model.grad_acc_hooks.values():
            handle.remove()
    reference = weakref.ref(model)
    del model, optimizer
    gc.collect()
    return reference() is not None


def plain_hook():
    """torch alone: a module that a post-accumulate hook of its own parameter refers to."""
    module = nn.Linear(4, 4)
    module.weight.register_post_accumulate_grad_hook(lambda _, module=module: None)
    reference = weakref.ref(module)
    del module
    gc.collect()
    return reference() is not None


def show(_rank, _world, alive):
    print(f"torch alone, a hook that refers to its module: {_said(plain_hook())}", flush=True)
    for strategy in ("no_shard", "optim_grads_params"):
        for steps in (0, 1):
            for unhook in (False, True):
                found = dropped(strategy, steps, unhook)
                alive.value += found and not unhook
                hooks = "grad_acc_hooks removed" if unhook else "as it is"
                print(f"{strategy}, {steps} steps, {hooks}: {_said(found)}", flush=True)


def _said(alive):
    return "alive" if alive else "freed"


def main():
    alive = torch.multiprocessing.get_context("spawn").Value("i", 0)
    run(1, show, alive, port=29814)
    return int(alive.value > 0)


if __name__ == "__main__":
    sys.exit(main())
