"""Names by which unmodified scripts ask for their backend: "nccl", "gloo" and none mean the
recorded device's groups.
"""

import functools

import torch.distributed as dist

from shardproof.torch import process_group  # noqa: F401, registers the backend
from shardproof.torch import unsupported
from shardproof.torch.device import NAME

# What no backend at all means to torch: one for each kind of device.
EACH = f"cpu:gloo,{NAME}:{NAME}"


def backend_for(name):
    """The backend here of one that a script names. Tensors of the CPU go by gloo and are not
    recorded.
    """
    if name is None:
        return EACH
    text = str(name).lower()
    if text in ("nccl", NAME, f"cuda:nccl"):
        return NAME
    if text in ("gloo", "cpu:gloo,cuda:nccl", EACH):
        return EACH
    if text == "cpu:gloo":
        return text
    raise ValueError(f'shardproof: no backend "{name}" here; wanted "nccl", "gloo" or none')


def _with_backend(function, place):
    """The function, its argument `backend` (the place-th) translated."""

    @functools.wraps(function)
    def call(*args, **keys):
        args = list(args)
        if len(args) > place:
            args[place] = backend_for(args[place])
        else:
            keys["backend"] = backend_for(keys.get("backend"))
        keys.pop("pg_options", None)  # of ProcessGroupNCCL: priorities of streams, settings of NCCL
        return function(*args, **keys)

    return call


def _new_group(function):
    """new_group without a backend takes that of the default group: nothing is translated then."""
    translated = _with_backend(function, 2)

    @functools.wraps(function)
    def call(*args, **keys):
        named = len(args) > 2 and args[2] is not None or keys.get("backend") is not None
        keys.pop("pg_options", None)
        return translated(*args, **keys) if named else function(*args, **keys)

    return call


def install(cuda=False):
    """For this process, until its end. cuda: torch.cuda's names too."""
    init, group = _with_backend(dist.init_process_group, 0), _new_group(dist.new_group)
    for module in (dist, dist.distributed_c10d):
        module.init_process_group, module.new_group = init, group
    unsupported.install()
    if cuda:
        from shardproof.torch import cuda_names

        cuda_names.install()
