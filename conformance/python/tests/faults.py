"""Published faults put back into an engine at run time: one function is edited while it runs.

A fault is made in the process of a rank, a fork, so no other run has it.
"""

import dataclasses
import inspect
import textwrap
import typing

import torch


@dataclasses.dataclass
class Fault:
    name: str
    source: str  # owner/repository#number
    case: str
    finds: str  # requirement
    make: typing.Callable  # in the rank's process, before the engine is built
    first_step: int = None  # what is found in earlier steps is the engine's own
    side_stream: bool = False  # the program trains on a stream of its own, which it joins


def edit(owner, name, old, new):
    """Replaces text in the source of a method; the old text must be there."""
    key = f"_{owner.__name__.lstrip('_')}{name}" if name.startswith("__") else name
    function = _body(getattr(owner, key), inspect.getsourcefile(owner))
    source = textwrap.dedent(inspect.getsource(function))
    source = source[source.index("def ") :]
    if old not in source:
        raise AssertionError(f"{owner.__name__}.{name} has no {old!r}")
    # In a class of that name, which private names are spelt with; `__class__` has what it inherits.
    text = f"class {owner.__name__}({owner.__name__}):\n"
    text += textwrap.indent(source.replace(old, new), "    ")
    made = {}
    exec(compile(text, inspect.getsourcefile(function), "exec"), function.__globals__, made)
    setattr(owner, key, torch.no_grad()(vars(made[owner.__name__])[key]))


def _body(function, file):
    """The function that the decorators stand around; deepspeed.utils.nvtx's has no __wrapped__."""
    while function.__code__.co_filename != file:
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        function = cells["func"].cell_contents if "func" in cells else function.__wrapped__
    return function
