#!/usr/bin/env python3
"""PyTorch's FSDP2 over gloo beside link_overlap: the same units, durations of kernels and link; one rank, of RANK and WORLD_SIZE.

    fsdp2_gloo.py [--rounds N] [--again N] [--steps N] [--ratio R]... [--engine TEXT] [--tiny] [--svg FILE]

A unit's forward sleeps as long as a kernel would last, its backward twice as long; gathers and reductions are gloo's. The baseline: as
fully_shard does it. With overlap: each unit gathers the next one ahead, in collectives that do not block
(set_modules_to_forward_prefetch, _set_unshard_async_op). Rank 0 prints lines as overlap_table.h has them, with the same bound; operations are
counted in a step, and cost what one costs in a row of its kind. --svg is not drawn.
"""
import argparse
import os
import statistics
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

NAME, UNITS, BATCH = "PyTorch FSDP2 over gloo", 10, 12
CALM = 2  # percent of steal time in a calm round, as overlap_table.h has it


class _Kernel(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, seconds):
        time.sleep(seconds)
        ctx.seconds, ctx.shape = seconds, weight.shape
        return x + weight[0]

    @staticmethod
    def backward(ctx, grad):
        time.sleep(2 * ctx.seconds)
        return grad, grad.expand(ctx.shape).clone(), None


class _Unit(nn.Module):
    def __init__(self, elements, seconds):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(elements))
        self.seconds = seconds

    def forward(self, x):
        return _Kernel.apply(x, self.weight, self.seconds)


def _model(mesh, overlap, elements, seconds):
    model = nn.Sequential(*(_Unit(elements, seconds) for _ in range(UNITS)))
    for unit in model:
        fully_shard(unit, mesh=mesh)
    fully_shard(model, mesh=mesh)
    if overlap:
        for unit, after in zip(model, list(model)[1:]):
            unit.set_modules_to_forward_prefetch([after])
        for unit in model:
            unit._set_unshard_async_op(True)  # pylint: disable=protected-access
    return model


def _largest(number):
    value = torch.tensor([number], dtype=torch.float64)
    dist.all_reduce(value, op=dist.ReduceOp.MAX)
    return value.item()


def _timed(work):
    dist.barrier()
    begin = time.monotonic()
    work()
    return _largest(time.monotonic() - begin)


class _Trainer:
    def __init__(self, mesh, overlap, elements, seconds=0.0):
        self.model = _model(mesh, overlap, elements, seconds)
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.step()

    def update(self):
        self.optimizer.step()
        self.optimizer.zero_grad()

    def step(self, update=True):
        self.model(torch.zeros(1, requires_grad=True)).sum().backward()
        if update:
            self.update()


def _seconds_of(operation):
    """Of one among others of its kind."""
    def batch():
        for _ in range(BATCH):
            operation()
    batch()
    return statistics.median(_timed(batch) for _ in range(4)) / BATCH


# By the names that fully_shard knew them under, in one version of torch or another.
GATHERS = ("all_gather_into_tensor", "all_gather_single")
REDUCTIONS = ("reduce_scatter_tensor", "reduce_scatter_single")


def _counted(trainer):
    """How many gathers and reductions a step issues."""
    inner = {name: getattr(dist, name) for name in GATHERS + REDUCTIONS if hasattr(dist, name)}
    counts = dict.fromkeys(inner, 0)

    def counting(name):
        def call(*args, **kwargs):
            counts[name] += 1
            return inner[name](*args, **kwargs)
        return call
    for name in inner:
        setattr(dist, name, counting(name))
    trainer.step()
    for name, function in inner.items():
        setattr(dist, name, function)
    return [sum(counts.get(name, 0) for name in names) for names in (GATHERS, REDUCTIONS)]


class _Costs:
    """Seconds, of a step of nothing but communication and updates."""

    def __init__(self, mesh, elements):
        world = dist.get_world_size()
        whole, shard = torch.zeros(elements), torch.zeros(elements // world)
        gather = _seconds_of(lambda: dist.all_gather_into_tensor(whole, shard))
        reduction = _seconds_of(lambda: dist.reduce_scatter_tensor(shard, whole))
        trainer = _Trainer(mesh, False, elements)
        gathers, reductions = _counted(trainer)
        if not gathers or not reductions:
            raise RuntimeError(f"{gathers} gathers and {reductions} reductions were seen in a step")
        self.communication = gathers * gather + reductions * reduction
        self.ends = gather + reduction

        def update():
            trainer.step(update=False)
            begin = time.monotonic()
            trainer.update()
            return time.monotonic() - begin
        self.optimizer = _largest(statistics.median(update() for _ in range(3)))


def _processor_time():
    """Steal time, and all: steal_time.h."""
    with open("/proc/stat", encoding="ascii") as file:
        times = [int(ticks) for ticks in file.readline().split()[1:9]]
    return times[7], sum(times)


def _steal_since(before):
    """Percent, the same on all ranks."""
    steal, passed = (now - then for now, then in zip(_processor_time(), before))
    return _largest(100 * steal / max(1, passed))


def _calmest(measure, again):
    """What is measured once counts for all rounds: it is measured again, too, until it is calm."""
    tries = []
    while not tries or (tries[-1][0] > CALM and len(tries) <= again):
        before = _processor_time()
        result = measure()
        tries.append((_steal_since(before), result))
    return min(tries, key=lambda one: one[0])[1]


def _figures(mesh, costs, ratio, asked):
    """baseline / bound, with / bound, percent hidden, percent steal."""
    before = _processor_time()
    compute = costs.communication / ratio
    bound = max(compute + costs.optimizer + costs.ends, costs.communication)
    whole = compute + costs.communication + costs.optimizer

    def step(overlap):
        trainer = _Trainer(mesh, overlap, asked.elements, compute / (3 * UNITS))
        return _timed(lambda: [trainer.step() for _ in range(asked.steps)]) / asked.steps
    baseline, overlapped = step(False), step(True)
    hidden = 100 * (whole - overlapped) / (whole - bound)
    return baseline / bound, overlapped / bound, hidden, _steal_since(before)


def _rounds(mesh, costs, ratio, asked):
    rounds = []
    while len(rounds) < asked.rounds + asked.again and sum(steal <= CALM for *_, steal in rounds) < asked.rounds:
        rounds.append(_figures(mesh, costs, ratio, asked))
    return sorted(rounds, key=lambda figures: figures[3])[: asked.rounds]


def _row(ratio, rounds):
    def cell(index, form):
        of_rounds = [figures[index] for figures in rounds]
        return f"{form % statistics.median(of_rounds)} ({form % min(of_rounds)} to {form % max(of_rounds)})"
    return f"{NAME:<30} {ratio:9.2f}   {cell(0, '%4.2f'):<21}  {cell(1, '%4.2f'):<21} {cell(2, '%3.0f'):<20} {'-':<22} {cell(3, '%.1f')}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--again", type=int, default=0)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--ratio", type=float, nargs="+", action="extend")
    parser.add_argument("--engine", default="")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--svg")
    asked = parser.parse_args()
    if asked.engine not in NAME:
        return
    asked.elements = 1248 if asked.tiny else 1248 * 96
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    costs = _calmest(lambda: _Costs(mesh, asked.elements), asked.again)
    for ratio in asked.ratio or (0.5, 0.7, 0.95):
        row = _row(ratio, _rounds(mesh, costs, ratio, asked))
        if dist.get_rank() == 0:
            print(row, flush=True)
    # Destructors of gloo's threads end some processes with "terminate called": nothing is left to be done here.
    dist.barrier()
    os._exit(0)


if __name__ == "__main__":
    main()
