"""Writes what a rank does as a trace: conformance/trace/FORMAT.md has the words.

The device writes its own events (shardproof.torch.device), process groups theirs
(process_group.py). This module opens and closes the trace, and writes what an engine's driver says:
entry calls, results, marks.
"""

import contextlib
import json
import os
import pathlib

import torch

from shardproof.torch.device import native

# FORMAT.md's `ty`. What has no name there travels as bytes.
DTYPES = {
    torch.uint8: "u8",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.bfloat16: "bf16",
    torch.float16: "f16",
    torch.float32: "f32",
    torch.float64: "f64",
}
READ, WRITE, BOTH = 1, 2, 3
ALL_EVIDENCE = ("groups", "collectives", "sync", "memory", "work")

_groups = []  # names of this trace's communicators, by number


def file_of(folder, rank):
    return pathlib.Path(folder) / f"trace.{rank:05d}.jsonl"


def open_trace(folder, rank, world, case, provides=ALL_EVIDENCE, bounded_updates=False):
    """Opens this process's trace: from here on all that the device does is an event. `case`: any
    text, or a case's id. bounded_updates: the optimizer rounds its own way (FORMAT.md, "updates").
    """
    os.makedirs(folder, exist_ok=True)
    header = {
        "shardproof_trace": 1,
        "rank": rank,
        "world": world,
        "case": case,
        "provides": list(provides),
    }
    if bounded_updates:
        header["updates"] = "bounded"
    native.open(str(file_of(folder, rank)), _text(header))
    line({"stream": 0, "name": "compute"})
    _groups.clear()


def close_trace(status="complete", reason=""):
    """Ends the trace: complete, aborted or died."""
    native.close(status, reason)


def release_device():
    """At the end of a run in order: what the pools hold goes back, and the streams end."""
    native.drain_pools()
    native.destroy_streams()


class Text(str):
    """Of a key of an event: as it stands in the trace."""


_text = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def line(row):
    """A line that is no event: a group, a stream."""
    native.line(_text(row))


def event(kind, **keys):
    """An event. `for_` stands for the key "for"; keys that are None are left out."""
    row, written = {"e": kind}, ""
    for key, value in keys.items():
        if isinstance(value, Text):
            written += f',"{key}":{value}'
        elif value is not None:
            row["for" if key == "for_" else key] = value
    native.event(_text(row)[1:-1] + written)


def new_group(comm, name, ranks):
    """A communicator's line; the group's number in this trace."""
    _groups.append(name)
    line({"group": len(_groups) - 1, "comm": comm, "name": name, "ranks": list(ranks)})
    return len(_groups) - 1


def ranges(*pairs):
    """Key `r`, of pairs (tensor, access)."""
    return Text("[" + native.ranges(_plain(pairs)) + "]")


def ranges_each(*pairs):
    """The same with one entry a pair, of contiguous tensors; what has no elements has no block."""
    return Text("[" + native.ranges_each(_plain(pairs)) + "]")


def _plain(pairs):
    return [(tensor.detach(), access) for tensor, access in pairs]


def values(tensor):
    """Key `v`, of a tensor of the CPU."""
    return Text(native.values_text(tensor))


@contextlib.contextmanager
def purpose(for_, module=-1, microbatch=-1):
    """What is allocated and launched inside is for that."""
    before = native.set_label(for_, module, microbatch)
    try:
        yield
    finally:
        native.set_label(*before)


def entry_call(index):
    """Key `c` of the events that follow; -1: outside of calls."""
    native.set_call(index)


def host_alias(tensor):
    """The bytes of a device's tensor as one of the CPU, without a copy and without an event."""
    return native.host_alias(tensor)


def current_stream():
    return native.current_stream()
