"""The bytes of each collective, over a board that the ranks share (device/csrc/board.h). Reductions
add in the order of ranks, in the tensors' own type, so that every rank has the same bits.
"""

import torch
import torch.distributed as dist

from shardproof.torch.device import native


def board(store, rank, size):
    """The board of a communicator's ranks, which all come here; the store is theirs alone."""
    if rank == 0:
        made = native.Board(size)
        store.set("board", made.path())
    else:
        made = native.Board(store.get("board").decode(), rank, size)
    made.wait_for_all()
    return made


class Exchange:
    """Moves bytes between the ranks of one group. All tensors are the CPU's."""

    def __init__(self, board, rank, size):
        self._board, self.rank, self.size = board, rank, size
        self._messages = []  # that nobody has waited for
        self.what = ""  # the operation in words, which all ranks must have the same

    def _collective(self, parts, read):
        """Posts the parts; what read() answers, once all ranks have posted."""
        try:
            self._board.post(self.what, [part.contiguous() for part in parts])
            return read()
        finally:
            self._board.end()

    def all_gather(self, mine):
        """Every rank's tensor, all of one shape and type."""

        def read():
            all_of_them = torch.empty((self.size, *mine.shape), dtype=mine.dtype)
            parts = list(all_of_them.unbind())
            for rank, part in enumerate(parts):
                self._board.read(rank, 0, part)
            return parts

        return self._collective([mine], read)

    def all_to_all(self, parts, counts, dtype):
        """parts[i] goes to rank i; what comes from each, counts[i] elements of dtype."""

        def read():
            got = [torch.empty(count, dtype=dtype) for count in counts]
            for rank, part in enumerate(got):
                self._board.read(rank, self.rank, part)
            return got

        return self._collective(parts, read)

    def broadcast(self, tensor, root):
        """The root's tensor, into this one (contiguous)."""

        def read():
            if root != self.rank:
                self._board.read(root, 0, tensor)

        self._collective([tensor] if root == self.rank else [], read)

    def barrier(self):
        self._collective([], lambda: None)

    def send(self, tensor, peer):
        return self._message(True, peer, tensor.contiguous())

    def receive(self, tensor, peer):
        return self._message(False, peer, tensor)

    def _message(self, *message):
        self._messages.append(message)
        return self

    def wait(self):
        """All messages that were begun are through."""
        messages, self._messages = self._messages, []
        if messages:
            self._board.exchange(messages)


# name in the trace -> what two operands become
_COMBINE = {
    "sum": torch.Tensor.add_,
    "avg": torch.Tensor.add_,
    "premul_sum": torch.Tensor.add_,
    "prod": torch.Tensor.mul_,
    "max": lambda a, b: torch.maximum(a, b, out=a),
    "min": lambda a, b: torch.minimum(a, b, out=a),
}


class Reduction:
    """What an all_reduce does with its operands. NCCL has sum, avg, min, max, product and a sum of
    scaled operands.
    """

    def __init__(self, op, size):
        kind = getattr(op, "op", op)
        kinds = dist.ReduceOp.RedOpType
        names = {
            kinds.SUM: "sum",
            kinds.AVG: "avg",
            kinds.MAX: "max",
            kinds.MIN: "min",
            kinds.PRODUCT: "prod",
            kinds.PREMUL_SUM: "premul_sum",
        }
        if kind not in names:
            # As ProcessGroupNCCL.cpp, getNcclReduceOp.
            raise ValueError(f"Cannot use ReduceOp.{str(kind).rsplit('.', 1)[-1]} with NCCL")
        self.name, self._size = names[kind], size
        self.factor = op.__getstate__()[1] if self.name == "premul_sum" else None

    def keys(self):
        """Of the event."""
        if self.factor is None:
            return {"red": self.name}
        factor = self.factor.item() if isinstance(self.factor, torch.Tensor) else self.factor
        return {"red": self.name, "x": repr(float(factor))}

    def of(self, operands):
        if operands[0].dtype == torch.bool:  # NCCL takes the maximum of its bytes: an or
            return torch.stack(operands).any(0)
        if self.factor is not None:
            operands = [operand * self.factor for operand in operands]
        total = operands[0].clone()
        for operand in operands[1:]:
            _COMBINE[self.name](total, operand)
        return total.div_(self._size) if self.name == "avg" else total
