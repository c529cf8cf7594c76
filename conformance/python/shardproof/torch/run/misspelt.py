"""Names in an engine's declaration that the suite does not know: they would be passed over."""

import difflib

from shardproof import command


def check(engine, judge):
    """ValueError names the first one, and what was meant if a name is close."""
    knobs = command.list_knobs(judge)
    values = sorted({name for factors in command.list_values(judge).values() for name in factors} | set(knobs))
    for name in engine.knobs:
        if name not in knobs:
            of = "a name for `takes`, and no knob" if name in values else "no knob"
            raise ValueError(f"knobs of {engine.name}: {_what(name, of, knobs)}; `shardproof list knobs` has all")
    given = [("takes", engine.takes), *(("without", names) for names, _ in engine.without)]
    for where, names in given:
        for name in names:
            if name not in values:
                of = _what(name, "no knob, trait or axis", values)
                raise ValueError(f"{where} of {engine.name}: {of}; `shardproof list values` has all")


def _what(name, of, known):
    close = difflib.get_close_matches(name, known, 1)
    return f"{name!r} is {of}" + (f", did you mean {close[0]!r}?" if close else "")
