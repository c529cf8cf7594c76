"""The bytes of each collective, over a gloo group of the same ranks. Reductions add in the order of
ranks, in the tensors' own type, so that every rank has the same bits.
"""

import datetime
import zlib

import torch
import torch.distributed as dist

_TAG = 77  # of messages; gloo keeps those of one tag between two ranks in order
# A rank that is alone waits for its supervisor (supervise.py), not for gloo.
_TIMEOUT = datetime.timedelta(days=1)


def gloo_group(store, rank, size):
    """A gloo group over the loopback device: all ranks are processes of this machine."""
    options = dist.ProcessGroupGloo._Options()
    options._devices = [dist.ProcessGroupGloo.create_device(hostname="127.0.0.1")]
    options._timeout = _TIMEOUT
    return dist.ProcessGroupGloo(store, rank, size, options)


def _bytes(tensor):
    return (
        tensor.contiguous().view(-1).view(torch.uint8)
        if tensor.numel()
        else torch.empty(0, dtype=torch.uint8)
    )


class Exchange:
    """Moves bytes between the ranks of one group. All tensors are the CPU's."""

    def __init__(self, group, rank, size):
        self._group, self.rank, self.size = group, rank, size

    def all_gather(self, mine):
        """Every rank's tensor, all of one shape and type."""
        flat = _bytes(mine)
        if not flat.numel():
            return [mine] * self.size
        all_of_them = torch.empty(self.size * flat.numel(), dtype=torch.uint8)
        self._group._allgather_base(all_of_them, flat).wait()
        return [part.view(mine.dtype).view(mine.shape) for part in all_of_them.chunk(self.size)]

    def all_to_all(self, parts, counts, dtype):
        """parts[i] goes to rank i; what comes from each, counts[i] elements of dtype."""
        work = []
        for rank, part in enumerate(parts):
            if rank != self.rank and part.numel():
                work.append(self._group.send([_bytes(part)], rank, _TAG))
        got = [torch.empty(count, dtype=dtype) for count in counts]
        for rank, part in enumerate(got):
            if rank == self.rank:
                part.copy_(parts[rank].reshape(-1))
            elif part.numel():
                work.append(self._group.recv([_bytes(part)], rank, _TAG))
        for one in work:
            one.wait()
        return got

    def broadcast(self, tensor, root):
        """The root's tensor, into this one (contiguous)."""
        if tensor.numel():
            options = dist.BroadcastOptions()
            options.rootRank = root
            self._group.broadcast([_bytes(tensor)], options).wait()

    def send(self, tensor, peer):
        return self._group.send([_bytes(tensor)], peer, _TAG)

    def receive(self, tensor, peer):
        return self._group.recv([_bytes(tensor)], peer, _TAG)

    def agree(self, text):
        """Raises unless all ranks come with the same text: gloo ends a process that gets other
        bytes than it expects.
        """
        mine = torch.tensor([zlib.crc32(text.encode())])
        if len({int(other) for other in self.all_gather(mine)}) > 1:
            raise RuntimeError(f"the ranks issue different operations; this one: {text}")

    def barrier(self):
        self._group.barrier().wait()


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
