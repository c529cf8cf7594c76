"""Cases that an engine declines are not run: traces of a create that answers "unsupported" say so on every rank."""

import json

from shardproof.torch.fixture.case import Unsupported

PROVIDES = ["groups", "collectives", "sync", "memory", "work", "digests", "results", "calls"]


def reason(engine, case):
    """Why the engine does not implement the case, or None."""
    if len(case.facts["instances"]) > 1:
        return "this host runs one engine in a world"
    if "moe.experts" in case.traits:
        return "the fixture in torch has no exchanges of experts' rows yet"
    try:
        engine.refuse(case)
    except Unsupported as why:
        return str(why)
    return None


def header(facts, rank, provides=PROVIDES):
    """The first line of a rank's trace."""
    return {"shardproof_trace": 1, "rank": rank, "world": facts["world"], "case": facts["id"], "provides": list(provides)}


def write(engine, facts, folder, why):
    """The traces of all ranks."""
    for rank in range(facts["world"]):
        rows = [header(facts, rank)]
        rows += _events(facts, list(engine.knobs), why)
        rows.append({"end": len(rows) - 1, "status": "complete"})
        with open(f"{folder}/trace.{rank:05d}.jsonl", "w", encoding="utf-8") as out:
            out.writelines(json.dumps(row) + "\n" for row in rows)


def _events(facts, read, why):
    asked = facts["instances"][0]["knobs"]
    yield {"e": "call_begin", "x": "create", "c": 0}
    for name in read:
        yield {"e": "knob", "x": name, "f": name in asked, "c": 0}
    yield {"e": "explain", "x": why, "c": 0}
    yield {"e": "call_end", "x": "create", "st": "unsupported", "c": 0}
