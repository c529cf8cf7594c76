"""Cases that an engine declines are not run: traces of a create that answers "unsupported" say so on every rank."""

import json

from shardproof.torch.fixture.case import Unsupported
from shardproof.torch.trace import file_of as trace_file

PROVIDES = ["groups", "collectives", "sync", "memory", "work", "digests", "results", "calls"]


def reason(engine, case):
    """Why the engine does not implement the case, or None."""
    if len(case.facts["instances"]) > 1:
        return "this host runs one engine in a world"
    try:
        engine.refuse(case)
    except Unsupported as why:
        return str(why)
    return None


def header(facts, rank, provides=PROVIDES):
    """The first line of a rank's trace."""
    return {
        "shardproof_trace": 1,
        "rank": rank,
        "world": facts["world"],
        "case": facts["id"],
        "provides": list(provides),
    }


def write(engine, facts, folder, why):
    """The traces of all ranks."""
    for rank in range(facts["world"]):
        rows = [header(facts, rank)]
        for index, asked in enumerate(facts["instances"]):
            if not asked["explicit_groups"] or 0 <= rank - asked["first_rank"] < asked["ranks"]:
                rows += _create(index, asked["knobs"], engine.knobs, why)
        rows.append({"end": len(rows) - 1, "status": "complete"})
        with open(trace_file(folder, rank), "w", encoding="utf-8") as out:
            out.writelines(json.dumps(row) + "\n" for row in rows)


def _create(instance, asked, read, why):
    """The events of a create that answers at once."""
    common = {"n": instance, "c": 0}
    yield {"e": "call_begin", "x": "create", **common}
    for name in read:
        yield {"e": "knob", "x": name, "f": name in asked, **common}
    yield {"e": "explain", "x": why, **common}
    yield {"e": "call_end", "x": "create", "st": "unsupported", **common}
