"""Names and values in an engine's declaration that the suite does not know: they would be passed over."""

import difflib
import re

from shardproof import command

_PLACES = ("world", "place")  # where a case takes place: no engine says which it takes
_FREE = ("script", "units", "order", "recompute")  # others are legal, too


def check(engine, judge):
    """ValueError names the first one, and what was meant if one is close."""
    knobs = command.list_knobs(judge)
    listed = {}
    for factors in command.list_values(judge).values():
        for name, some in factors.items():
            listed.setdefault(name, set()).update(some)
    names = sorted({*listed, *knobs} - {*_PLACES})
    for name, some in engine.knobs.items():
        if name not in knobs:
            of = "a name for `takes`, and no knob" if name in names else "no knob"
            raise ValueError(f"knobs of {engine.name}: {_what(name, of, knobs)}; `shardproof list knobs` has all")
        words = _words(knobs[name])
        if words and not isinstance(some, type):
            _check_values(f"knobs of {engine.name}", name, some, words | listed.get(name, set()), "knobs")
    given = [("takes", engine.takes), *(("without", names) for names, _ in engine.without)]
    for where, factors in given:
        for name, some in factors.items():
            if name not in names:
                of = _what(name, "no knob, trait or axis", names)
                raise ValueError(f"{where} of {engine.name}: {of}; `shardproof list values` has all")
            if not isinstance(some, list):
                raise ValueError(f"{where} of {engine.name}: {name!r} has {some!r}; wanted a list of values")
            if name in listed and name not in _FREE:
                _check_values(f"{where} of {engine.name}", name, some, listed[name], "values")


def _words(column):
    """The values of a knob that has a few words, or switches; none: it has others."""
    words = column.split(", ")
    others = {"n", "real", "integer", "bytes"} & {*words}
    return {*words} if len(words) > 1 and not others and all(re.fullmatch(r"\w+", word) for word in words) else set()


def _check_values(where, name, given, known, page):
    switch = known <= {"0", "1"}
    for value in map(str, given):
        if value in known or (not switch and re.fullmatch(r"-?\d+(\.\d+)?", value)):  # sizes: of other cases too
            continue
        of = f"no value of {name!r}"
        raise ValueError(f"{where}: {_what(value, of, sorted(known))}; `shardproof list {page}` has all")


def _what(name, of, known):
    close = difflib.get_close_matches(name, known, 1)
    return f"{name!r} is {of}" + (f", did you mean {close[0]!r}?" if close else "")
