"""Names by which unmodified scripts ask for their backend: "nccl", "gloo" and none mean the
recorded device's groups.
"""

import torch.distributed as dist

from shardproof.torch import process_group  # registers the backend
from shardproof.torch.device import NAME

BOTH = f"cpu:gloo,{NAME}:{NAME}"


def backend_for(name):
    """What a script's backend is here. Tensors of the CPU go by gloo, those of the device are
    recorded.
    """
    if name is None:
        return BOTH
    parts = dict(
        part.split(":") if ":" in part else ("", part) for part in str(name).lower().split(",")
    )
    known = {"nccl", "gloo", NAME}
    for device, backend in parts.items():
        if backend not in known or device not in ("", "cpu", "cuda", NAME):
            raise ValueError(f'shardproof: no backend "{name}" here; wanted "nccl", "gloo" or none')
    if str(name).lower() == NAME:
        return NAME
    return BOTH


def _wrap(function, place):

    def wrapped(*args, **keys):
        args = list(args)
        if len(args) > place:
            args[place] = backend_for(args[place])
        else:
            keys["backend"] = backend_for(keys.get("backend"))
        device = keys.get("device_id")
        keys.pop("pg_options", None)
        result = function(*args, **keys)
        return result

    wrapped.__name__, wrapped.__doc__ = function.__name__, function.__doc__
    return wrapped


def install(cuda=False):
    """For this process, until its end."""
    init, group = dist.init_process_group, dist.new_group
    for module in (dist, dist.distributed_c10d):
        module.init_process_group = _wrap(init, 0)
    if cuda:
        from shardproof.torch import cuda_names

        cuda_names.install()
