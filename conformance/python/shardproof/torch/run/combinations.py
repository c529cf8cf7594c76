"""Which cases ask an engine for what it declares, in combination?

The suite's profiles combine all knobs that there are, so most of their cases ask for something that a given engine does
not implement. Here only what the engine declares is combined, with traits of the model and sizes of the world: of every
t factors each combination of their values occurs in some case, if any legal case has it. Greedy, and the same for the
same engine, strength and seed.
"""

import itertools
import random

from shardproof import model
from shardproof.torch.fixture.case import Case
from shardproof.torch.run import declined

# Knob or trait: pairs of value and token of an id; "" is the token of a default. (conformance/cases/README.md)
KNOBS = {
    "strategy": [
        ("no_shard", "ddp"),
        ("optim", "zero1"),
        ("optim_grads", "zero2"),
        ("optim_grads_params", "zero3"),
        ("layer_wise", "lw"),
    ],
    "layer_wise_transport": [("all_gather_v", ""), ("broadcast", "bcast")],
    "bucket_size": [("0", ""), ("500", "bs500")],
    "num_optimizer_instances": [("1", ""), ("2", "n2")],
    "microbatches": [("1", ""), ("2", "k2"), ("3", "k3")],
    "lr": [("0.015625", ""), ("0.0625", "lr0p0625")],
    "param_dtype": [("fp32", ""), ("bf16", "bf16")],
    "grad_comm_dtype": [("fp32", ""), ("bf16", "wire16")],
    "average_in_collective": [("0", ""), ("1", "avg")],
    "overlap_grad_reduce": [("0", ""), ("1", "ogr")],
    "overlap_param_gather": [("0", ""), ("1", "opg")],
    "calculate_per_token_loss": [("0", ""), ("1", "pertoken")],
    "units": [
        ("TransformerLayer", ""),
        ("none", "units=none"),
        ("TransformerLayer,Embedding", "units=TransformerLayer,Embedding"),
    ],
    "recompute": [("0", ""), ("1", "recompute")],
    "optimizer": [("sgd", ""), ("adamw", "adamw")],
    "weight_decay": [("0", ""), ("0.1", "wd0p1")],
    "clip_grad": [("0", ""), ("0.5", "clip0p5")],
    "grad_norm": [("0", ""), ("1", "norm")],
    "log_num_zeros_in_grad": [("0", ""), ("1", "zeros")],
}
TRAITS = {
    "world": ["w2", "w3", "w4", "w8"],
    "axes": ["", "tp2", "pp2"],
    "tied": ["", "tied"],
    "biases": ["", "bias"],
    "odd_sizes": ["", "odd"],
    "root_param": ["", "root"],
    "reused": ["", "reused"],
    "frozen": ["", "frozen=embedding", "frozen=layer", "frozen=norms"],
    "unused": ["", "unused=step"],
    "layers": ["", "layers3"],
    "script": ["", "do=tett"],
}
_TRIES = 60  # rows that are drawn for a combination before it counts as impossible
_CANDIDATES = 6  # rows that are compared for each one kept


def factors(engine):
    """{factor: tokens} of what the engine declares; microbatches and lr are every engine's."""
    found = dict(TRAITS)
    for name, values in KNOBS.items():
        tokens = [token for value, token in values if engine.allows(name, value)]
        if tokens:
            found[name] = tokens
    return {**found, **engine.factors}


def case_id(row):
    """The id as the suite writes it, or None: no such case, an illegal one, or one that the engine declines."""
    try:
        facts = model.case_facts(".".join(token for token in row.values() if token))
    except model.ModelError:
        return None
    return facts if not facts["illegal"] else None


class _Search:
    def __init__(self, engine, strength, seed):
        self.engine, self.factors = engine, factors(engine)
        self.random = random.Random(seed)
        self.names = list(self.factors)
        self.open = {
            frozenset(zip(names, tokens))
            for names in itertools.combinations(self.names, strength)
            for tokens in itertools.product(*[self.factors[n] for n in names])
        }
        self.strength = strength
        self.impossible = 0

    def _covered(self, row):
        return [
            c
            for c in map(frozenset, itertools.combinations(row.items(), self.strength))
            if c in self.open
        ]

    def _draw(self, wanted):
        """A row with the wanted combination, as near the defaults as chance has it, that is a case of the engine."""
        plain = self.random.random()
        row = {
            name: tokens[0] if self.random.random() < plain else self.random.choice(tokens)
            for name, tokens in self.factors.items()
        }
        row.update(wanted)
        facts = case_id(row)
        if facts is None or declined.reason(self.engine, Case(facts, 0)):
            return None
        return facts["id"], row

    def ids(self):
        found = []
        for wanted in sorted(self.open, key=sorted):
            if wanted not in self.open:
                continue
            drawn = [d for d in (self._draw(dict(wanted)) for _ in range(_CANDIDATES)) if d]
            tries = 0
            while not drawn and tries < _TRIES:
                drawn = [d for d in [self._draw(dict(wanted))] if d]
                tries += 1
            if not drawn:
                self.open.discard(wanted)
                self.impossible += 1
                continue
            best = max(drawn, key=lambda d: len(self._covered(d[1])))
            self.open.difference_update(self._covered(best[1]))
            found.append(best[0])
        return list(dict.fromkeys(found))


def cases(engine, strength, seed=1):
    """Ids, in a fixed order, and how many combinations no case of the engine has."""
    search = _Search(engine, strength, seed)
    return search.ids(), search.impossible
