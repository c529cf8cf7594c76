"""Moves the bytes of collectives: a background thread for each communicator, in the order in which
they were issued.

On a GPU a collective is queued: the host goes on, and who needs the bytes waits on the device. Here
the host goes on too. It waits where an operation of the CPU touches bytes that are still in flight
(every operation of the device does that, see device/csrc/transfers.h), and where the program
synchronises with a stream that the collective is on.

Why threads: two communicators in opposite order on two streams are legal on a GPU, so no
communicator may wait for another, and none for the thread of the program. What is read is copied at
issue, so a program that writes its buffers again after it ordered its streams need not wait. If
what is read is itself still in flight, the transfer waits for that on its own thread.

A program that computes with the bytes of a collective before it issues another one, on which the
first depends by way of another rank, is legal on a GPU where the computation is queued too. Here it
waits; supervise.py ends it.
"""

import dataclasses
import queue
import threading

from shardproof.torch.device import native

_lock = threading.Lock()
_in_flight = {}  # block -> transfers that write it or read it late
_supervised = False  # somebody ends this process when another rank is gone


def expect_supervisor():
    """When another rank is gone its bytes never come: wait, as on a GPU, until the supervisor ends
    this process. Without a supervisor, who touches the bytes gets an exception.
    """
    global _supervised
    _supervised = True


@dataclasses.dataclass
class Transfer:
    """Bytes that move. move(inputs, outputs): inputs are flat copies, outputs aliases of the
    device's memory.
    """

    what: str  # for messages: all_gather of group 2
    inputs: list
    outputs: list
    move: object
    flight: int = -1
    blocks: list = dataclasses.field(default_factory=list)
    after: list = dataclasses.field(
        default_factory=list
    )  # transfers whose bytes this one reads or overwrites
    late: bool = (
        False  # inputs were in flight at the issue: they are read when those transfers are done
    )
    done: threading.Event = dataclasses.field(default_factory=threading.Event)
    error: str = ""


class Mover:
    """One communicator's transfers, in order."""

    def __init__(self, name, leave):
        """leave(): after the last transfer."""
        self._queue, self._leave = queue.SimpleQueue(), leave
        self._thread = threading.Thread(target=self._work, name=f"shardproof {name}", daemon=True)
        self._thread.start()

    def issue(self, transfer, stream):
        """Queues the transfer as an operation of this stream."""
        transfer.flight = native.begin_flight(stream)
        _begin(transfer)
        self._queue.put(transfer)

    def stop(self):
        """Ends the thread after what is queued."""
        self._queue.put(None)

    def _work(self):
        while True:
            transfer = self._queue.get()
            if transfer is None:
                self._leave()
                return
            try:
                _carry_out(transfer)
            except Exception as error:
                if _supervised and isinstance(error, native.Gone):
                    return
                transfer.error = f"shardproof: the bytes of {transfer.what} never came: {error}"
            _end(transfer)


def _begin(transfer):
    reads = {native.block(t) for t in transfer.inputs}
    writes = {native.block(t) for t in transfer.outputs}
    with _lock:
        transfer.after = list(
            {id(t): t for b in reads | writes for t in _in_flight.get(b, ())}.values()
        )
        transfer.late = any(_in_flight.get(b) for b in reads)
        held = list(transfer.outputs)
        if transfer.late:
            held += transfer.inputs
        transfer.blocks = [b for b in map(native.begin_transfer, held) if b >= 0]
        for block in transfer.blocks:
            _in_flight.setdefault(block, []).append(transfer)
    # The transfer holds no tensors: when the program frees one, that is in the trace at once.
    transfer.inputs = [native.raw_host_alias(t) for t in transfer.inputs]
    if not transfer.late:
        transfer.inputs = [t.clone() for t in transfer.inputs]
    transfer.outputs = [native.raw_host_alias(t) for t in transfer.outputs]


def _carry_out(transfer):
    for before in transfer.after:
        before.done.wait()
    inputs = [t.clone() for t in transfer.inputs] if transfer.late else transfer.inputs
    transfer.move(inputs, transfer.outputs)


def _end(transfer):
    with _lock:
        for block in transfer.blocks:
            _in_flight[block].remove(transfer)
            if not _in_flight[block]:
                del _in_flight[block]
    transfer.inputs = transfer.outputs = transfer.move = None
    for block in transfer.blocks:
        native.end_transfer(block, transfer.error)
    native.end_flight(transfer.flight)
    transfer.after = []
    transfer.done.set()
