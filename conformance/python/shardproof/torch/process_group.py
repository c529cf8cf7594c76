"""The backend "shardproof" of torch.distributed: it records what ProcessGroupNCCL would do, and
moves the bytes through memory that the ranks share.

The stream rules are those of torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp (torch 2.15),
functions in brackets:

- async_op=False: on the caller's current stream, and nothing is waited for; async_op=True: on the
  group's own stream, after what is now in the current one [collective, syncStream].
- Messages (send, recv) are always on an own stream: in a batch, or where the group was made with a
  device_id (eager initialisation), on the group's; else on a communicator and a stream of the pair,
  made at its first message. Their tensors are recorded on that stream [pointToPoint].
- wait() orders the current stream after the operation; the host does not wait, unless a timeout is
  given or it is a barrier [WorkNCCL::synchronizeStream, wait]. Until then the work keeps its
  tensors; if nobody ever waits, they stay until the stream is done [workEnqueue,
  shelvesToUnstash_].
- A batch is one group of calls; it answers no work if its collectives are synchronous
  [endCoalescing].
"""

import os

import torch
import torch.distributed as dist

from shardproof.torch import operations as op
from shardproof.torch.communicator import Communicator
from shardproof.torch.device import NAME
from shardproof.torch.operations import purposes  # noqa: F401, for drivers
from shardproof.torch.work import Done


class RecordedBackend(torch._C._distributed_c10d.Backend):
    """torch.distributed's backend "shardproof"."""

    def __init__(self, options, _backend_options=None):
        super().__init__(options.group_rank, options.group_size)
        self._rank, self._size = options.group_rank, options.group_size
        self.ranks = list(options.global_ranks_in_group) or list(range(self._size))
        self._id = options.group_id or "world"
        self.comm = f"{self._id}/{','.join(map(str, self.ranks))}"
        self._store = dist.PrefixStore("shardproof", options.store)
        name = "world" if self._id == "0" else self._id
        self._group = Communicator(self._store, self.comm, name, self.ranks, self._rank)
        self._exchange = self._group.exchange
        self._pairs = {}
        self._batch = None  # (operation, asynchronous) since start_coalescing
        self._eager = False

    # ---- what torch asks about the backend

    def getBackendName(self):
        return NAME

    def name(self):
        return NAME

    supports_coalescing = True
    # Without these torch asks the C++ class, which asks here again.
    supports_splitting = supports_shrinking = supports_reconfigure = supports_window = False
    supports_abort_hooks = supports_completion_hooks = _supports_time_estimate = False

    @property
    def number(self):
        """Of the group in this rank's trace."""
        return self._group.number

    def eager_connect_single_device(self, device=None):
        self._eager = True

    def _set_sequence_number_for_group(self):
        pass

    def set_timeout(self, timeout):
        pass

    def abort(self):
        self.shutdown()

    def shutdown(self):
        for communicator in [self._group, *self._pairs.values()]:
            communicator.mover.stop()

    # ---- batches

    def start_coalescing(self):
        self._batch = []

    def end_coalescing(self):
        batch, self._batch = self._batch or [], None
        if not batch:
            return None
        asynchronous = any(alone for _, alone in batch)
        work = self._group.issue([operation for operation, _ in batch], asynchronous)
        return work if asynchronous else None

    def _run(self, operations, options):
        asynchronous = getattr(options, "asyncOp", False)
        if self._batch is not None:
            return self._put(operations, asynchronous)
        return self._group.issue(operations, asynchronous)

    def _put(self, operations, asynchronous):
        self._batch += [(operation, asynchronous) for operation in operations]
        return Done(torch.accelerator.current_stream(), None, [])

    # ---- collectives

    def allreduce(self, tensors, options):
        each = [op.all_reduce(self._exchange, tensor, options.reduceOp) for tensor in tensors]
        return self._run(each, options)

    allreduce_coalesced = allreduce

    def broadcast(self, tensors, options):
        return self._run([op.broadcast(self._exchange, tensors[0], options.rootRank)], options)

    def reduce(self, tensors, options):
        (tensor,) = tensors
        one = op.reduce(self._exchange, tensor, tensor, options.reduceOp, options.rootRank)
        return self._run([one], options)

    def all_gather_single(self, output, tensor, options):
        return self._run([op.all_gather(self._exchange, [output], tensor)], options)

    _allgather_base = all_gather_single

    def all_gather_single_coalesced(self, outputs, tensors, options):
        each = [op.all_gather(self._exchange, [o], t) for o, t in zip(outputs, tensors)]
        return self._run(each, options)

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def allgather(self, output_lists, tensors, options):
        (outputs,), (tensor,) = output_lists, tensors
        if len({output.numel() for output in outputs}) == 1:
            return self._run([op.all_gather(self._exchange, list(outputs), tensor)], options)
        each = [
            op.broadcast(self._exchange, o, i, tensor) for i, o in enumerate(outputs) if o.numel()
        ]
        return self._run(each, options)

    def reduce_scatter_single(self, output, tensor, options):
        one = op.reduce_scatter(self._exchange, output, [tensor], options.reduceOp)
        return self._run([one], options)

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(self, outputs, tensors, options):
        each = [
            op.reduce_scatter(self._exchange, o, [t], options.reduceOp)
            for o, t in zip(outputs, tensors)
        ]
        return self._run(each, options)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def reduce_scatter(self, outputs, input_lists, options):
        (output,), (tensors,) = outputs, input_lists
        if len({tensor.numel() for tensor in tensors}) == 1:
            one = op.reduce_scatter(self._exchange, output, list(tensors), options.reduceOp)
            return self._run([one], options)
        each = [
            op.reduce(self._exchange, t, output, options.reduceOp, i) for i, t in enumerate(tensors)
        ]
        return self._run(each, options)

    def all_to_all_single(self, output, tensor, output_rows, input_rows, options):
        one = op.all_to_all_single(self._exchange, output, tensor, output_rows, input_rows)
        return self._run([one], options)

    alltoall_base = all_to_all_single

    def alltoall(self, outputs, tensors, options):
        return self._run([op.all_to_all(self._exchange, outputs, tensors)], options)

    def gather(self, output_lists, tensors, options):
        outputs = list(output_lists[0]) if output_lists else []
        return self._run(
            [op.gather(self._exchange, outputs, tensors[0], options.rootRank)], options
        )

    def scatter(self, outputs, input_lists, options):
        tensors = list(input_lists[0]) if input_lists else []
        return self._run(
            [op.scatter(self._exchange, outputs[0], tensors, options.rootRank)], options
        )

    def barrier(self, options):
        asynchronous = getattr(options, "asyncOp", False)
        work = self._group.issue([op.barrier(self._exchange)], asynchronous)
        if asynchronous:
            work.blocking = True
            return work
        torch.accelerator.current_stream().synchronize()
        return None

    # ---- messages

    def send(self, tensors, peer, tag):
        return self._message(op.send, tensors[0], peer)

    def recv(self, tensors, peer, tag):
        return self._message(op.receive, tensors[0], peer)

    def recv_anysource(self, tensors, tag):
        raise NotImplementedError("ProcessGroupNCCL does not support recv from any source")

    def _message(self, make, tensor, peer):
        if self._batch is not None:
            return self._put([make(self._exchange, tensor, peer)], True)
        if self._eager:
            return self._group.issue([make(self._exchange, tensor, peer)], True)
        pair = self._pair(peer)
        return pair.issue([make(pair.exchange, tensor, pair.ranks.index(self.ranks[peer]))], True)

    def _pair(self, peer):
        """The communicator of this rank and that one, made at their first message."""
        low, high = sorted((self._rank, peer))
        if (low, high) not in self._pairs:
            store = dist.PrefixStore(f"{low}:{high}", self._store)
            comm, name = f"{self.comm}:{low}:{high}", f"{self._id}:{low}:{high}"
            ranks = [self.ranks[low], self.ranks[high]]
            self._pairs[low, high] = Communicator(store, comm, name, ranks, int(self._rank == high))
        return self._pairs[low, high]


if not hasattr(dist.Backend, NAME.upper()):
    # Gloo groups of the program itself: all ranks are on this machine.
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.Backend.register_backend(NAME, RecordedBackend, extended_api=True, devices=[NAME])
