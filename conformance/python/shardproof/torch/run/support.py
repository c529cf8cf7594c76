"""Which cases of the suite ask an engine for what it declares, and nothing else?

The declaration is written as a file for `shardproof --supports`
(conformance/runner/support/supports_file.h): the suite then combines every pair (core) or triple
(full) of the values in it, and says at the end how many were judged. Values that the suite combines
are those of `shardproof list values`.
"""

import collections
import dataclasses
import json

from shardproof import command, model
from shardproof.torch.fixture.case import Case
from shardproof.torch.run import declined

MOST_RANKS = 8
# Knobs in which a case differs from the plainest one: more than the suite's own 5, because a case of PyTorch takes a
# second, not a hundredth. Fewer cases have the same pairs.
_CHANGES = 8
# Axes: with explicit groups an engine sees them in groups alone.
_AXES = ("tp", "cp", "pp", "ep", "order")
# Factors that set several knobs at once: what an engine must declare for a value.
_SEVERAL = {
    "recompute": {
        "nothing": {"recompute": "0"},
        "layers": {"recompute": "1"},
        "norm": {"recompute_modules": "norm"},
        "core_attn": {"recompute_modules": "core_attn"},
        "norm,core_attn": {"recompute_modules": "norm,core_attn"},
    },
    "prefetch": {
        "one unit": {},
        "nothing": {"prefetch_limit_bytes": "0"},
        "two units": {"prefetch_limit_bytes": "1"},  # bytes that depend on the model: any number
    },
}


_EXPERTS = {"none": "0", "one each": "1"}  # of the space layer_wise; moe4: not taken


def _taken(engine, factor, value, knobs, ranks):
    """Does the engine take that value of a factor? knobs: names that are knobs of engines."""
    if factor == "world":
        return int(value) <= ranks
    if factor == "place":
        return value == "whole"
    if factor in engine.takes:
        if factor == "experts":
            value = _EXPERTS.get(value, value)
        return value in engine.takes[factor]
    if value in _SEVERAL.get(factor, ()):
        wanted = _SEVERAL[factor][value]
        return all(name in engine.knobs and engine.allows(name, v) for name, v in wanted.items())
    if factor in engine.knobs:
        return engine.allows(factor, value)
    return factor in _AXES or factor not in knobs


def _has_space(engine, space, factors, defaults):
    """Does the engine take cases of the space at all?"""
    for name in engine.knobs:  # one that the space leaves alone
        default = defaults.get(name)
        if name in (*factors, "strategy") or default is None:
            continue
        if not engine.allows(name, default):
            return False
    if space == "experts":
        return engine.takes["moe.experts"] != ["0"]
    return space != "layer_wise" or engine.allows("strategy", "layer_wise")


def _known(combination, factors, defaults):
    """Of a combination what the space has, nothing if no case of the space has it. What the space leaves alone has
    its default.
    """
    if any(name not in factors and defaults.get(name) not in values for name, values in combination.items()):
        return {}
    row = {
        name: [v for v in values if v in factors[name]]
        for name, values in combination.items()
        if name in factors
    }
    return row if all(row.values()) else {}


def _lists(allowed):
    return isinstance(allowed, (list, tuple)) and len(allowed) > 0


def supports(engine, known, ranks=MOST_RANKS):
    """By space: lists of values by factor, what is not taken together, what is usual.

    known: all that the suite combines, by space.
    """
    knobs = model.case_facts("w1.ddp")["defaults"]
    found = {}
    for space, factors in known.items():
        if not _has_space(engine, space, factors, knobs):
            continue
        taken = {}
        for factor, values in factors.items():
            if factor in knobs and factor not in (*engine.knobs, *engine.takes, *_AXES):
                continue  # not named: its default
            taken[factor] = [v for v in values if _taken(engine, factor, v, knobs, ranks)]
        if all(taken.values()):
            fixed = knobs | {"strategy": space} if space == "layer_wise" else knobs
            rows = [_known(combination, factors, fixed) for combination, _ in engine.without]
            taken["without"] = [row for row in rows if row]
            # The first value that is declared is the usual one.
            plain = {f: str(engine.knobs[f][0]) for f in taken if _lists(engine.knobs.get(f))}
            taken["plain"] = {f: value for f, value in plain.items() if value in taken[f]}
            taken["changes"] = _CHANGES
            found[space] = taken
    return found


def _inline(value):
    """As TOML: a list of texts, or of tables of such lists."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(k)} = {_inline(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return json.dumps(value)


def text(engine, found):
    """The file."""
    lines = [f"# what {engine.name} declares"]
    for space, taken in found.items():
        lines += ["", f"[{space}]"]
        lines += [f"{json.dumps(k)} = {_inline(v)}" for k, v in taken.items() if v]
    return "\n".join(lines) + "\n"


def _few(ids):
    """Of ids some that have each token of them, those with most tokens that are new first."""
    tokens = {i: set(i.split(".")) for i in ids}
    open_, few = set().union(*tokens.values()), []
    while open_:
        best = max(ids, key=lambda i: len(tokens[i] & open_))
        open_ -= tokens[best]
        few.append(best)
    return few


def _share_gradients(facts):
    """Does an engine train parameters that lie on several ranks?"""
    return any(
        "t" in asked["script"]
        and any(name in ("dp_cp", "expt_dp") and len(ranks) > 1 for name, ranks in asked.get("groups", ()))
        for asked in facts["instances"]
    )


class Selection:
    """Cases to run, and why others of the profile are not."""

    def __init__(self, engine, judge, profile, file, seed=1, ranks=MOST_RANKS):
        """Writes what the engine declares to a file. ValueError: it takes no case of the suite."""
        found = supports(engine, command.list_values(judge), ranks)
        if not found and not engine.cases:
            raise ValueError(f"{engine.name} declares no strategy that the suite has")
        ids = list(engine.cases)
        self.file = file if found else None  # what `check` counts values of, pairs or triples
        fitted = "core" if profile == "smoke" else profile
        options = [f"--seed={seed}"]
        if found:
            file.write_text(text(engine, found))
            options.append(f"--supports={file}")
        ids += command.list_cases(judge, fitted, *options)
        self.left_out = collections.Counter()
        self._declined = []  # with gradients to reduce, and refused by the engine's traits() alone
        self.ids = list(filter(lambda i: self._asks(engine, i, ranks), ids))
        if profile == "smoke":
            own = command.list_cases(judge, profile)
            legal = [i for i in self.ids if not model.case_facts(i)["illegal"]]
            asked = [i for i in own if self._asks(engine, i, ranks)]
            self.ids = list(dict.fromkeys(asked + _few(legal)))
        if not any(_share_gradients(model.case_facts(i)) for i in self.ids):
            self.ids += dict.fromkeys(self._declined)  # `check` then says that no reduction was judged

    def _asks(self, engine, case_id, ranks):
        if ".then." in case_id:
            self.left_out["they have several legs, which only shardproof run plays"] += 1
            return False
        facts = model.case_facts(case_id)
        if facts["world"] > ranks:
            self.left_out[f"they need more than {ranks} ranks"] += 1
            return False
        why = declined.reason(engine, Case(facts, 0))
        if why:
            illegal = f"illegal, with what {engine.name} does not declare"
            self.left_out[illegal if facts["illegal"] else why] += 1
            declared = dataclasses.replace(engine, traits=None)
            if not facts["illegal"] and _share_gradients(facts) and not declined.reason(declared, Case(facts, 0)):
                self._declined.append(case_id)
        return not why
