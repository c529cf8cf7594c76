"""Published faults of FSDP2, put back into torch 2.15.0: one function is edited at run time.

A fault is made in the process of a rank, a fork, so no other run has it. Each says where such a
fault, or the rule that it breaks, was published, the case that shows it, and the requirement that
finds it there.
"""

import contextlib
import dataclasses
import inspect
import textwrap
import typing

import torch
from torch.distributed.fsdp._fully_shard import _fsdp_collectives as collectives
from torch.distributed.fsdp._fully_shard import _fsdp_param_group as groups
from torch.distributed.fsdp._fully_shard._fsdp_state import FSDPState

from shardproof.torch.declaration import Training, engine
from shardproof.torch.engines import fsdp2

Group = groups.FSDPParamGroup


def _nothing(*_arguments):
    pass


@dataclasses.dataclass
class Fault:
    name: str
    source: str  # owner/repository#number
    engine: object
    case: str
    finds: str  # requirement
    make: typing.Callable  # in the rank's process, before the engine is built
    # No fault: what the case needs to show it. setup(case, training), and before(), which is before
    # the engine is built.
    setup: typing.Callable = _nothing
    before: typing.Callable = _nothing


def edit(owner, name, old, new, count=1):
    """Replaces text in the source of a function; the old text must be there so many times."""
    function = inspect.unwrap(getattr(owner, name))
    source = textwrap.dedent(inspect.getsource(function))  # of torch's file: one edit a function
    decorators, definition = source[: source.index("def ")], source[source.index("def ") :]
    if definition.count(old) != count:
        raise AssertionError(f"{name} has {old!r} {definition.count(old)} times, wanted {count}")
    # Lines keep their numbers, so that findings point into torch's file.
    first = "\n" * (function.__code__.co_firstlineno + decorators.count("\n") - 1)
    made = {}
    text = "from __future__ import annotations;" + first + definition.replace(old, new)
    exec(compile(text, inspect.getsourcefile(function), "exec"), function.__globals__, made)
    function = torch.no_grad()(made[name]) if "torch.no_grad" in decorators else made[name]
    if "staticmethod" in decorators:
        function = staticmethod(function)
    if "contextmanager" in decorators:
        function = contextlib.contextmanager(function)
    setattr(owner, name, function)
    if owner is collectives and hasattr(groups, name):  # imported there by name
        setattr(groups, name, function)


def _edit(owner, name, old, new="pass"):
    return lambda: edit(owner, name, old, new)


def _unheld_all_reduce_input():
    edit(collectives, "foreach_reduce", "all_reduce_input = reduce_output", "pass", count=2)


# Both streams: the second is ordered after the first anyway.
_WAITS_FOR_THE_OPTIMIZER = """self._comm_ctx.all_gather_copy_in_stream.wait_stream(current_stream)
            self._comm_ctx.all_gather_stream.wait_stream(current_stream)"""


def _divides_by_all_ranks(case, training):
    training.model.set_gradient_divide_factor(float(case.world))


def _sums_are_divided_again():
    old = "reduce_scatter_op, ReduceOp.SUM"
    edit(collectives, "_get_gradient_divide_factors", old, old.replace("SUM", "AVG"))


_FSDP2 = fsdp2.ENGINE
_HSDP = "w4.zero3.n2"

FAULTS = [
    Fault(
        "parameters are copied out before their all-gather has ended",
        "pytorch/pytorch#73314",
        _FSDP2,
        "w2.zero3",
        "GE-05",
        _edit(
            collectives,
            "foreach_all_gather_copy_out",
            "device_handle.current_stream().wait_event(all_gather_event)",
        ),
    ),
    Fault(
        "gathers of a step do not wait for the optimizer of the step before",
        "pytorch/pytorch#66911",
        _FSDP2,
        "w2.zero3",
        "GE-05",
        _edit(FSDPState, "_root_pre_forward", _WAITS_FOR_THE_OPTIMIZER),
    ),
    Fault(
        "an all-gather does not wait for its copy-in",
        "pytorch/pytorch#197827",
        _FSDP2,
        "w2.zero3",
        "GE-05",
        _edit(
            collectives,
            "foreach_all_gather",
            "all_gather_stream.wait_stream(all_gather_copy_in_stream)",
        ),
    ),
    Fault(
        "the buffer of an all-gather is given back before it is copied out",
        "pytorch/pytorch#196460",
        _FSDP2,
        "w2.zero3",
        "GE-11",
        _edit(
            groups.FSDPCommContext,
            "release_all_gather_state_for_comm_reuse",
            "self.wait_all_gather_streams_on_event(all_gather_state.event)",
        ),
    ),
    Fault(
        "a reduce-scatter does not wait for the gradients",
        "pytorch/pytorch#64803",
        _FSDP2,
        "w2.zero3",
        "GE-05",
        _edit(
            collectives,
            "foreach_reduce",
            "    reduce_scatter_stream.wait_stream(current_stream)",
            "    pass",
        ),
    ),
    Fault(
        "the input of a reduce-scatter is given back before it has been read",
        "ROCm/pytorch#3500",
        _FSDP2,
        "w2.zero3",
        "GE-11",
        _edit(Group, "post_backward", "oldest.allocation_stream.wait_event(oldest.event)"),
    ),
    Fault(
        "units that were to stay are resharded after forward all the same",
        "pytorch/pytorch#149029",
        _FSDP2,
        "w2.zero3.reshard0",
        "KN-10",
        _edit(Group, "reshard", "return\n        if", "pass\n        if"),
    ),
    Fault(
        "a unit's part for backward is not kept: its gather is over all ranks again",
        "pytorch/pytorch#118017",
        _FSDP2,
        "w4.zero3.reshard2",
        "KN-11",
        _edit(Group, "reshard", "self._use_post_forward_mesh", "False"),
    ),
    Fault(
        "backward's gather does not wait for the part that it sends",
        "pytorch/pytorch#118017",
        _FSDP2,
        "w4.zero3.reshard2",
        "GE-05",
        _edit(Group, "reshard", "self._reshard_after_forward_event.record()"),
    ),
    Fault(
        "the optimizer does not wait for the gradients",
        "pytorch/pytorch#181218",
        _FSDP2,
        _HSDP,
        "GE-05",
        _edit(FSDPState, "_end_backward_iteration", "current_stream.wait_event(event)"),
    ),
    Fault(
        "the input of HSDP's all-reduce is given back while it is reduced",
        "pytorch/pytorch#140044",
        _FSDP2,
        _HSDP + ".bf16.wire16",
        "GE-11",
        _unheld_all_reduce_input,
    ),
    Fault(
        "the gradients of HSDP's earlier microbatches are left out of the all-reduce",
        "pytorch/pytorch#126166",
        _FSDP2,
        _HSDP + ".k2",
        "FS-15",
        _edit(collectives, "foreach_reduce", "reduce_output += partial_reduce_output"),
    ),
    Fault(
        "HSDP's all-reduce is skipped",
        "pytorch/pytorch#125484",
        _FSDP2,
        _HSDP,
        "FS-15",
        _edit(collectives, "foreach_reduce", "dist.all_reduce(", "(lambda *_, **__: None)("),
    ),
    Fault(
        "HSDP divides by the replicas once more than it was asked to",
        "pytorch/pytorch#155903",
        _FSDP2,
        _HSDP,
        "FS-17",
        _sums_are_divided_again,
        setup=_divides_by_all_ranks,
    ),
    Fault(
        "the gradient of a microbatch replaces those of the microbatches before",
        "ServiceNow/Fast-LLM#551",
        _FSDP2,
        "w2.zero3.k2",
        "FS-15",
        _edit(
            collectives,
            "foreach_reduce",
            "fsdp_param.sharded_param.grad._local_tensor += new_sharded_grad",
            "fsdp_param.sharded_param.grad._local_tensor.copy_(new_sharded_grad)",
        ),
    ),
    Fault(
        "the unit whose gradient is next is prefetched last",
        "pytorch/pytorch#108190",
        _FSDP2,
        "w2.zero3",
        "FS-08",
        _edit(
            Group,
            "_backward_prefetch",
            "post_forward_order[curr_index - 1]",
            "post_forward_order[0]",
        ),
    ),
    Fault(
        "the hook after a unit's backward does not fire",
        "pytorch/pytorch#116792",
        _FSDP2,
        "w2.zero3",
        "FS-03",
        _edit(groups.RegisterPostBackwardFunction, "backward", "ctx.param_group.post_backward()"),
    ),
]


def engine_with(fault, made):
    """The fault's engine as it is, with what the fault needs; made: with the fault."""
    base = fault.engine

    @engine(knobs=base.knobs, traits=base.traits)
    def build(case, model, device):
        fault.before()
        if made:
            fault.make()
        training = base.build(case, model, device)
        fault.setup(case, training)
        return training if isinstance(training, Training) else Training(*training)

    build.name = base.name
    return build
