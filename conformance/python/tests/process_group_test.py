"""All collectives of the backend: their values on three ranks, and what stands in the trace.

usage: process_group_test.py; needs torch.
"""

import json
import pathlib
import tempfile
import unittest

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch.distributed.distributed_c10d import _coalescing_manager

from shardproof.torch import process_group, supervise, trace  # noqa: F401
from shardproof.torch.device import NAME, native

WORLD = 3
ROWS = [[1.0 + 10 * r, 2.0 + 10 * r] for r in range(WORLD)]  # each rank's operand


def _operand():
    return torch.tensor(ROWS[dist.get_rank()], device=NAME)


def _whole():
    return [x for row in ROWS for x in row]


def _same(tensor, wanted):
    assert tensor.tolist() == wanted, f"{tensor.tolist()}, wanted {wanted}"


def reductions(rank):
    sums = [sum(column) for column in zip(*ROWS)]
    for op, wanted in (
        (dist.ReduceOp.SUM, sums),
        (dist.ReduceOp.AVG, [s / WORLD for s in sums]),
        (dist.ReduceOp.MAX, [max(c) for c in zip(*ROWS)]),
        (dist.ReduceOp.MIN, [min(c) for c in zip(*ROWS)]),
        (dist.ReduceOp.PRODUCT, [c[0] * c[1] * c[2] for c in zip(*ROWS)]),
        (dist._make_nccl_premul_sum(2.0), [2 * s for s in sums]),
    ):
        x = _operand()
        dist.all_reduce(x, op=op)
        _same(x, wanted)
    x = _operand()
    dist.reduce(x, 1)
    _same(x, sums if rank == 1 else ROWS[rank])
    out, x = torch.empty(1, device=NAME), torch.arange(3.0, device=NAME) + rank
    dist.reduce_scatter_tensor(out, x)
    _same(out, [3.0 * rank + 3])
    dist.reduce_scatter(out, list((torch.arange(3.0, device=NAME) + rank).split(1)))
    _same(out, [3.0 * rank + 3])
    try:
        dist.all_reduce(torch.ones(1, dtype=torch.int32, device=NAME), op=dist.ReduceOp.BAND)
        raise AssertionError("a bitwise reduction was taken")
    except ValueError as error:
        assert "with NCCL" in str(error), error


def gathers(rank):
    out = torch.empty(2 * WORLD, device=NAME)
    dist.all_gather_into_tensor(out, _operand())
    _same(out, _whole())
    outs = [torch.empty(2, device=NAME) for _ in range(WORLD)]
    dist.all_gather(outs, _operand())
    _same(torch.cat(outs), _whole())
    uneven = [torch.empty(r + 1, device=NAME) for r in range(WORLD)]
    dist.all_gather(uneven, torch.full((rank + 1,), float(rank), device=NAME))
    _same(torch.cat(uneven), [0.0, 1.0, 1.0, 2.0, 2.0, 2.0])
    into = [torch.empty(2, device=NAME) for _ in range(WORLD)] if rank == 2 else None
    dist.gather(_operand(), into, dst=2)
    if rank == 2:
        _same(torch.cat(into), _whole())
    x = torch.empty(2, device=NAME)
    parts = [torch.tensor(row, device=NAME) for row in ROWS] if rank == 1 else None
    dist.scatter(x, parts, src=1)
    _same(x, ROWS[rank])
    x = _operand()
    dist.broadcast(x, 2)
    _same(x, ROWS[2])
    dist.barrier()
    dist.barrier(async_op=True).wait()
    objects = [None] * WORLD
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": r} for r in range(WORLD)], objects


def exchanges(rank):
    x, out = torch.arange(3.0, device=NAME) + 10 * rank, torch.empty(3, device=NAME)
    dist.all_to_all_single(out, x)
    _same(out, [rank, 10.0 + rank, 20.0 + rank])
    send = [rank, 1, 0]  # rows to each rank
    receive = [[0, 1, 2][r] if rank == 0 else 1 if rank == 1 else 0 for r in range(WORLD)]
    x, out = torch.full((sum(send), 2), float(rank), device=NAME), torch.empty(
        sum(receive), 2, device=NAME
    )
    dist.all_to_all_single(out, x, receive, send)
    _same(out[:, 0], [float(r) for r, n in enumerate(receive) for _ in range(n)])
    outs = [torch.empty(2, device=NAME) for _ in range(WORLD)]
    dist.all_to_all(outs, [_operand() + 100 * r for r in range(WORLD)])
    _same(torch.cat(outs), [x + 100 * rank for x in _whole()])


def messages(rank):
    right, left = (rank + 1) % WORLD, (rank - 1) % WORLD
    x, got = _operand(), torch.empty(2, device=NAME)
    ops = [dist.P2POp(dist.irecv, got, left), dist.P2POp(dist.isend, x, right)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    _same(got, ROWS[left])
    if rank == 0:
        dist.send(x, 2)
    if rank == 2:
        dist.recv(got, 0)
        _same(got, ROWS[0])


def batches(rank):
    x, y = _operand(), _operand()
    with _coalescing_manager(device=torch.device(NAME), async_ops=True) as batch:
        dist.all_reduce(x)
        dist.all_reduce(y)
    batch.wait()
    _same(x, [33.0, 36.0])
    _same(y, [33.0, 36.0])
    out = functional.all_gather_tensor(_operand(), 0, dist.group.WORLD)
    _same(out, _whole())
    out = functional.all_reduce(_operand(), "sum", dist.group.WORLD)
    _same(functional.wait_tensor(out), [33.0, 36.0])
    pair = dist.new_group([0, 2])
    if rank != 1:
        x = _operand()
        dist.all_reduce(x, group=pair)
        _same(x, [22.0, 24.0])


def opposite_orders(rank):
    """Two communicators on two streams, in opposite orders: legal on a GPU."""
    groups = [dist.new_group(list(range(WORLD))) for _ in range(2)]
    tensors = [_operand(), _operand()]
    order = (0, 1) if rank == 0 else (1, 0)
    works = [dist.all_reduce(tensors[i], group=groups[i], async_op=True) for i in order]
    for work in works:
        work.wait()
    for tensor in tensors:
        _same(tensor, [33.0, 36.0])


def chains(rank):
    """An operation on what another communicator still brings; memory that is freed meanwhile."""
    other = dist.new_group(list(range(WORLD)))
    x = _operand()
    dist.all_reduce(x, async_op=True).wait()
    dist.all_reduce(x, group=other, async_op=True).wait()
    y = x + 1
    _same(y, [100.0, 109.0])
    dist.all_reduce(_operand(), async_op=True)  # nobody waits, nobody keeps it
    torch.accelerator.synchronize()


PROGRAMS = (reductions, gathers, exchanges, messages, batches, opposite_orders, chains)


def _run(folder, program):
    """The outcome of a program on all ranks; rows of rank 0's trace."""

    def work(rank):
        torch.set_num_threads(1)
        trace.open_trace(folder, rank, WORLD, program.__name__)
        store = dist.FileStore(f"{folder}/store", WORLD)
        dist.init_process_group(NAME, store=store, rank=rank, world_size=WORLD)
        program(rank)
        torch.accelerator.synchronize()
        trace.close_trace()
        native.wait_for_all()
        return 0

    outcome = supervise.Supervisor(folder, WORLD, patience=20).run(work)
    if outcome.why:
        return outcome, []
    rows = trace.file_of(folder, 0).read_text().splitlines()
    return outcome, [json.loads(row) for row in rows]


class ProcessGroup(unittest.TestCase):
    def play(self, program):
        with tempfile.TemporaryDirectory() as folder:
            outcome, rows = _run(pathlib.Path(folder), program)
            self.assertEqual(outcome.why, "", outcome.stacks())
            return [row for row in rows if row.get("e") == "collective"], rows

    def test_values(self):
        for program in PROGRAMS:
            with self.subTest(program.__name__):
                self.play(program)

    def test_events(self):
        collectives, _ = self.play(reductions)
        self.assertEqual(
            [row["op"] for row in collectives],
            ["all_reduce"] * 6 + ["reduce"] + ["reduce_scatter"] * 2,
        )
        self.assertEqual(
            [row["red"] for row in collectives[:6]],
            ["sum", "avg", "max", "min", "prod", "premul_sum"],
        )
        self.assertEqual(collectives[5]["x"], "2.0")

    def test_synchronous_ones_are_on_the_current_stream(self):
        collectives, _ = self.play(gathers)
        self.assertEqual({row["s"] for row in collectives if row["op"] == "gather"}, {0})

    def test_messages_have_a_stream_and_a_communicator(self):
        collectives, rows = self.play(messages)
        batch, alone = collectives[:2], collectives[2:]
        self.assertEqual([row["op"] for row in batch], ["recv", "send"])
        self.assertEqual({row["g"] for row in batch}, {0})
        self.assertEqual([(row["op"], row["p"]) for row in alone], [("send", 1)])
        groups = {row["group"]: row["ranks"] for row in rows if "group" in row}
        self.assertEqual(groups[alone[0]["g"]], [0, 2])
        self.assertNotIn(0, {row["s"] for row in collectives})

    def test_an_uneven_gather_is_a_group_of_broadcasts(self):
        _, rows = self.play(gathers)
        kinds = [row.get("op", row.get("e")) for row in rows if "e" in row]
        begin = kinds.index("group_begin")
        self.assertEqual(
            kinds[begin : begin + 5], ["group_begin"] + ["broadcast"] * 3 + ["group_end"]
        )

    def test_same_trace_every_time(self):
        first, second = self.play(chains)[1], self.play(chains)[1]
        self.assertEqual(first, second)


if __name__ == "__main__":
    unittest.main(verbosity=2)
