"""What did each rank do? Reads traces of `shardproof run --trace FOLDER`, or anybody's (conformance/trace/FORMAT.md).

    for trace in shardproof.traces.read("FOLDER/w2.zero3.k2"):
        print(trace.rank, sum(event.kind == "collective" for event in trace.events))

`shardproof check trace:FOLDER` judges traces, and refuses what breaks a rule of the format; this reads what is whole.
"""

import dataclasses
import pathlib
import re

from shardproof import rows

VERSION = 1
# Of keys that an event does not have.
_DEFAULTS = {"t": 0, "n": 0, "c": -1, "s": -1, "ev": -1, "g": -1, "pg": -1, "a": -1, "p": -1, "id": -1, "rq": -1, "red": "sum",
             "ph": "fwd", "st": "ok", "for": "other", "m": -1, "mb": -1, "sm": -1, "o": 0, "k": 0, "f": False, "d": "0"}


@dataclasses.dataclass(frozen=True)
class Event:
    """index: its number in its trace. event["s"] is a key of FORMAT.md, or its default, or None where there is none."""

    index: int
    kind: str
    row: dict

    def __getitem__(self, key):
        return self.row.get(key, _DEFAULTS.get(key))


@dataclasses.dataclass(frozen=True)
class Trace:
    """groups, streams: by number, their lines. status: complete, aborted or died; reason: in words."""

    path: pathlib.Path
    rank: int
    world: int
    case: str
    provides: tuple
    groups: dict
    streams: dict
    events: tuple
    status: str
    reason: str


def _read_rank(path):
    (first, header), *lines = rows.read(path)
    if header.get("shardproof_trace") != VERSION:
        raise rows.FormatError(f"{path}:{first}: a trace begins with \"shardproof_trace\":{VERSION}")
    rank, world, case = rows.need(path, first, header, "rank", "world", "case")
    if not lines or "end" not in lines[-1][1]:
        raise rows.FormatError(f"{path}: it has no last line: it was cut off")
    last, footer = lines.pop()
    groups, streams, events = {}, {}, []
    for number, row in lines:
        if "group" in row:
            groups[row["group"]] = row
        elif "stream" in row:
            streams[row["stream"]] = row
        else:
            (kind,) = rows.need(path, number, row, "e")
            if row.get("i", len(events)) != len(events):
                raise rows.FormatError(f"{path}:{number}: event {row['i']} stands where {len(events)} is due")
            events.append(Event(len(events), kind, row))
    if footer["end"] != len(events):
        raise rows.FormatError(f"{path}:{last}: the end counts {footer['end']} events, there are {len(events)}")
    return Trace(path, rank, world, case, tuple(header.get("provides", ())), groups, streams, tuple(events),
                 footer.get("status", ""), footer.get("reason", ""))


def read(folder):
    """The traces of a run, by rank: a folder with trace.00000.jsonl and so on. rows.FormatError names what is missing or wrong."""
    folder = pathlib.Path(folder)
    paths = sorted(path for path in folder.glob("trace.*.jsonl") if re.fullmatch(r"trace\.\d{5,}\.jsonl", path.name))
    traces = sorted((_read_rank(path) for path in paths), key=lambda trace: trace.rank)
    if not traces:
        raise rows.FormatError(f"{folder}: there is no trace.00000.jsonl in it")
    worlds = {trace.world for trace in traces}
    if [trace.rank for trace in traces] != list(range(traces[0].world)) or len(worlds) > 1:
        raise rows.FormatError(f"{folder}: traces of ranks {[trace.rank for trace in traces]}, of a world of {max(worlds)}")
    return traces
