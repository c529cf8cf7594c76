"""What NCCL calls a communicator: a sequence of operations and, unless they are synchronous, a
stream of its own.
"""

import torch

from shardproof.torch import trace
from shardproof.torch.device import NAME, native
from shardproof.torch.exchange import Exchange, board
from shardproof.torch.transfers import Mover, Transfer
from shardproof.torch.work import Done, StreamWork, future_on


class Communicator:
    def __init__(self, store, comm, name, ranks, rank):
        self.name, self.ranks, self.rank, self.comm = name, ranks, rank, comm
        self._board = board(store, rank, len(ranks))
        self.exchange = Exchange(self._board, rank, len(ranks))
        self.mover = Mover(comm, self._board.leave)
        self.number = trace.new_group(comm, name, ranks)
        self._stream = None

    def stream(self):
        if self._stream is None:
            self._stream = torch.Stream(device=torch.device(NAME))
        return self._stream

    def issue(self, operations, asynchronous):
        """Writes the operations (several: one group of calls), starts their bytes; their work."""
        current = torch.accelerator.current_stream()
        stream = current
        if asynchronous:
            stream = self.stream()
            stream.wait_stream(current)
        self._write(operations, stream.stream_id)
        self._move(operations, stream.stream_id)
        outputs = [t for operation in operations for t in operation.outputs]
        kept = [t for operation in operations for t in operation.inputs] + outputs
        if any(operation.message for operation in operations):
            for tensor in kept:
                native.use_on_stream(tensor, stream.stream_id)
        future = future_on(stream, outputs)
        if asynchronous:
            return StreamWork(stream, future, outputs, kept)
        return Done(stream, future, outputs)

    def _write(self, operations, stream):
        rows = [operation.row(self.number) for operation in operations]  # first: they may raise
        if len(rows) > 1:
            trace.event("group_begin")
        for row in rows:
            trace.event("collective", s=stream, **row)
        if len(rows) > 1:
            trace.event("group_end")

    def _move(self, operations, stream):
        what = " and ".join(sorted({operation.name for operation in operations}))
        inputs = [t for operation in operations for t in operation.inputs]
        outputs = [t for operation in operations for t in operation.outputs]
        shares = [(o.move, len(o.inputs), len(o.outputs)) for o in operations]
        meeting = ", ".join(o.what() for o in operations if not o.message)

        def move(read, written):
            waits = []
            self.exchange.what = meeting
            for start, reads, writes in shares:
                # Messages of a batch are all begun before one is waited for.
                waits.append(start(read[:reads], written[:writes]))
                read, written = read[reads:], written[writes:]
            for wait in filter(None, waits):
                wait.wait()

        transfer = Transfer(f"{what} of group {self.name} {self.ranks}", inputs, outputs, move)
        self.mover.issue(transfer, stream)
