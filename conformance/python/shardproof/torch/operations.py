"""Each collective as one operation: what is read, what is written, how the bytes move, and its keys
in the trace.

Operations that NCCL has as groups of others are told as these: an all_gather into tensors of
different sizes is a group of broadcasts, a reduce_scatter from such a group of reduces
(ProcessGroupNCCL.cpp, allgather and reduce_scatter).
"""

import dataclasses

import torch

from shardproof.torch import trace
from shardproof.torch.exchange import Reduction

# What NCCL carries besides the types that have a name in FORMAT.md (ProcessGroupNCCL.cpp,
# ncclDataType).
_AS_BYTES = {torch.bool, torch.int8, torch.float8_e4m3fn, torch.float8_e5m2}

# What a driver knows and a collective does not: operation -> FORMAT.md's `for`. Empty unless a
# driver fills it.
purposes = {}


@dataclasses.dataclass
class Operation:
    name: str  # as in FORMAT.md
    dtype: torch.dtype
    inputs: list
    outputs: list
    move: object  # move(inputs, outputs), as transfers.Transfer has it; answers what to wait for
    keys: dict
    message: bool = False

    def what(self):
        """What its members have in common, in words."""
        count = f" of {self.keys['k']}" if "k" in self.keys else ""
        return f"{self.name}{count} {str(self.dtype).rpartition('.')[2]}"

    def row(self, group):
        """The keys of its event, without the stream."""
        if self.dtype not in trace.DTYPES and self.dtype not in _AS_BYTES:
            raise TypeError(
                f"Input tensor data type is not supported for NCCL process group: {self.dtype}"
            )
        touched = [(t, trace.READ) for t in self.inputs] + [(t, trace.WRITE) for t in self.outputs]
        row = {"op": self.name, "ty": trace.DTYPES.get(self.dtype, "u8"), "g": group, **self.keys}
        row["r"] = trace.ranges(*touched)
        if self.name in purposes:
            row["for_"] = purposes[self.name]
        return row


def _dense(*tensors):
    """What NCCL asks of tensors, in the words of ProcessGroupNCCL.cpp."""
    for tensor in tensors:
        if tensor.is_sparse:
            raise ValueError("Tensors must be CUDA and dense")
        if not tensor.is_contiguous():
            raise ValueError("Tensors must be contiguous")


def _fill(outputs, parts):
    for output, part in zip(outputs, parts):
        output.copy_(part.view(output.shape))


def all_reduce(exchange, tensor, op):
    _dense(tensor)
    reduction = Reduction(op, exchange.size)

    def move(inputs, outputs):
        outputs[0].copy_(reduction.of(exchange.all_gather(inputs[0])))

    keys = {"k": tensor.numel(), **reduction.keys()}
    return Operation("all_reduce", tensor.dtype, [tensor], [tensor], move, keys)


def broadcast(exchange, tensor, root, source=None):
    """The root reads `source` (else `tensor`), and writes `tensor` only where that is another."""
    _dense(tensor)
    mine = root == exchange.rank
    read = tensor if source is None else source

    def move(inputs, outputs):
        if mine:
            buffer = inputs[0]
        else:
            buffer = torch.empty(outputs[0].shape, dtype=outputs[0].dtype)
        exchange.broadcast(buffer, root)
        if outputs:
            outputs[0].copy_(buffer.view(outputs[0].shape))

    outputs = [] if mine and read is tensor else [tensor]
    keys = {"k": tensor.numel(), "p": root}
    return Operation("broadcast", tensor.dtype, [read] if mine else [], outputs, move, keys)


def reduce(exchange, tensor, output, op, root):
    _dense(tensor)
    reduction = Reduction(op, exchange.size)

    def move(inputs, outputs):
        total = reduction.of(exchange.all_gather(inputs[0]))
        if outputs:
            outputs[0].copy_(total.view(outputs[0].shape))

    keys = {"k": tensor.numel(), "p": root, **reduction.keys()}
    outputs = [output] if root == exchange.rank else []
    return Operation("reduce", tensor.dtype, [tensor], outputs, move, keys)


def all_gather(exchange, outputs, tensor):
    """Into one tensor or into one for each rank."""
    _dense(tensor)
    if sum(output.numel() for output in outputs) != exchange.size * tensor.numel():
        raise ValueError("output tensor size must be equal to world_size times input tensor size")

    def move(inputs, into):
        parts = exchange.all_gather(inputs[0])
        if len(into) == 1:
            parts = [torch.cat([part.reshape(-1) for part in parts])]
        _fill(into, parts)

    return Operation("all_gather", tensor.dtype, [tensor], outputs, move, {"k": tensor.numel()})


def reduce_scatter(exchange, output, tensors, op):
    """From one tensor or from one for each rank."""
    _dense(output, *tensors)
    reduction, count = Reduction(op, exchange.size), output.numel()
    if sum(tensor.numel() for tensor in tensors) != exchange.size * count:
        raise ValueError("input tensor must be the same size as output size times world size")

    def move(inputs, outputs):
        if not count:
            return
        parts = torch.cat([t.reshape(-1) for t in inputs]).split(count)
        operands = exchange.all_to_all(parts, [count] * exchange.size, inputs[0].dtype)
        outputs[0].copy_(reduction.of(operands).view(outputs[0].shape))

    keys = {"k": count, **reduction.keys()}
    return Operation("reduce_scatter", output.dtype, tensors, [output], move, keys)


def _counts(tensor, rows, size):
    """Elements for each rank, of the rows for each rank; without rows, alike."""
    if not rows:
        return [tensor.numel() // size] * size
    if sum(rows) != (tensor.shape[0] if tensor.dim() else 1):
        raise ValueError("Split sizes doesn't match total dim 0 size")
    per_row = tensor.numel() // tensor.shape[0] if tensor.shape[0] else 0
    return [count * per_row for count in rows]


def all_to_all_single(exchange, output, tensor, output_rows, input_rows):
    _dense(output, tensor)
    send = _counts(tensor, input_rows, exchange.size)
    receive = _counts(output, output_rows, exchange.size)

    def move(inputs, outputs):
        got = exchange.all_to_all(inputs[0].reshape(-1).split(send), receive, inputs[0].dtype)
        outputs[0].view(-1).copy_(torch.cat(got))

    keys = {"sc": send, "rc": receive}
    return Operation("all_to_all_v", tensor.dtype, [tensor], [output], move, keys)


def all_to_all(exchange, outputs, tensors):
    _dense(*outputs, *tensors)
    receive = [t.numel() for t in outputs]

    def move(inputs, into):
        _fill(into, exchange.all_to_all(inputs, receive, inputs[0].dtype))

    keys = {"sc": [t.numel() for t in tensors], "rc": receive}
    return Operation("all_to_all_v", tensors[0].dtype, list(tensors), list(outputs), move, keys)


def gather(exchange, outputs, tensor, root):
    _dense(tensor)

    def move(inputs, into):
        _fill(into, exchange.all_gather(inputs[0]))

    keys = {"k": tensor.numel(), "p": root}
    return Operation("gather", tensor.dtype, [tensor], outputs, move, keys)


def scatter(exchange, output, tensors, root):
    _dense(output)
    count = output.numel()

    def move(inputs, into):
        counts = [count if rank == root else 0 for rank in range(exchange.size)]
        parts = inputs or [torch.empty(0, dtype=into[0].dtype)] * exchange.size
        _fill(into, [exchange.all_to_all(parts, counts, into[0].dtype)[root]])

    keys = {"k": count, "p": root}
    return Operation("scatter", output.dtype, tensors, [output], move, keys)


def barrier(exchange):
    return Operation("barrier", torch.float32, [], [], lambda i, o: exchange.barrier(), {})


class _Receipt:
    """A message that is on its way into a buffer of its own."""

    def __init__(self, work, buffer, output):
        self._work, self._buffer, self._output = work, buffer, output

    def wait(self):
        self._work.wait()
        self._output.copy_(self._buffer)


def send(exchange, tensor, peer):
    _dense(tensor)
    keys = {"k": tensor.numel(), "p": peer}
    move = lambda inputs, _: exchange.send(inputs[0], peer)
    return Operation("send", tensor.dtype, [tensor], [], move, keys, message=True)


def receive(exchange, tensor, peer):
    _dense(tensor)

    def move(_, outputs):
        buffer = torch.empty(outputs[0].shape, dtype=outputs[0].dtype)
        return _Receipt(exchange.receive(buffer, peer), buffer, outputs[0])

    keys = {"k": tensor.numel(), "p": peer}
    return Operation("recv", tensor.dtype, [], [tensor], move, keys, message=True)
