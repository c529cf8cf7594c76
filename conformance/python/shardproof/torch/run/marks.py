"""Hooks of an engine, announced by the labels that it gives the profiler (torch.profiler.record_function).

An engine declares marks={"FSDP::pre_forward": "PRE_FORWARD"}: a label up to its first blank, and the hook of
conformance/abi/shardproof.h (spf_hook) that it stands for. What follows in brackets is the module's name, the root
without. A hook whose label does not come is not judged. A label that
comes in no case of a profile is none of the engine's: that turns the run red (that_never_came).

FSDP2 gives two labels where the hook is none: a layer that is run again in backward begins as a root of its own, and at
the end of a pass each unit is asked to reshard, also one whose backward did not run. Neither is announced.
"""

import json
import pathlib
import re

import torch
from torch.autograd.profiler import record_function

from shardproof.torch import trace
from shardproof.torch.declaration import HOOKS

_FORWARD, _PRE_BACKWARD, _POST_BACKWARD = (
    HOOKS.index(hook) + 1 for hook in ("FORWARD", "PRE_BACKWARD", "POST_BACKWARD")
)
_LABEL = re.compile(r"(\S+)(?: \(([^()]*)\))?")


class Marks:
    """Of one rank. microbatch: which one runs, None outside of all."""

    def __init__(self, labels):
        self._labels = {label: HOOKS.index(hook) + 1 for label, hook in labels.items()}
        self._came = set()
        self._modules = {}
        self._in_backward = set()
        self.microbatch = None

    def follow(self, fixture):
        """Names of modules are this model's from now on; None: of none."""
        modules = fixture.named_modules() if fixture is not None else ()
        self._modules = {name: module.index for name, module in modules if hasattr(module, "index")}

    def install(self):
        """From now on each label that begins is looked at, in this process."""
        enter = record_function.__enter__

        def begin(record):
            self._begins(record.name)
            return enter(record)

        record_function.__enter__ = begin

    def tell(self, folder, rank):
        """Writes which labels came, for that_never_came()."""
        if self._labels:
            (pathlib.Path(folder) / f"labels.{rank:05d}").write_text(json.dumps(sorted(self._came)))

    def _begins(self, label):
        name, module = _LABEL.match(label).groups() if _LABEL.match(label) else (label, None)
        if name in self._labels:
            self._came.add(name)
        index = self._modules.get(module or "")
        if name in self._labels and index is not None and self._is_hook(self._labels[name], index):
            trace.event("mark", id=self._labels[name], m=index, mb=self.microbatch)

    def _is_hook(self, hook, module):
        if hook == _FORWARD:
            return torch._C._current_graph_task_id() < 0
        if hook == _PRE_BACKWARD:
            self._in_backward.add(module)
        if hook == _POST_BACKWARD:
            ran = module in self._in_backward
            self._in_backward.discard(module)
            return ran
        return True


def that_never_came(labels, folders):
    """Of these labels those that no rank saw in the cases of these folders; none if no rank told."""
    told = [file for folder in folders for file in pathlib.Path(folder).glob("labels.*")]
    came = {label for file in told for label in json.loads(file.read_text())}
    return sorted(set(labels) - came) if told else []
