"""torch.distributed.fsdp.fully_shard, as it is."""

import contextlib

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

from shardproof.torch.declaration import Training, engine
from shardproof.torch.engines import checkpoint
from shardproof.torch.engines.common import COMMON_KNOBS, EXPERTS, has_experts
from shardproof.torch.fixture.case import Unsupported, mesh
from shardproof.torch.fixture.optimizers import optimizer

_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def _precision(case):
    """Parameters as nodes read them, gradients as they travel: fp32 unless the case says otherwise."""
    param, wire = case.value("param_dtype"), case.value("grad_comm_dtype")
    return MixedPrecisionPolicy(
        param_dtype=None if param == "fp32" else _DTYPES[param],
        reduce_dtype=_DTYPES[wire],
        cast_forward_inputs=False,
    )


def _shard_experts(case, model, options):
    """As torchtitan does: over the ranks that have the same experts, divided as dense parameters are."""
    for experts in model.experts():
        fully_shard(experts, **{**options, "mesh": mesh(case, "expt_dp")})
        experts.set_gradient_divide_factor(float(len(case.members("dp_cp"))))


def _traits(case):
    if has_experts(case) and case.value("units") == "none":
        raise Unsupported("experts are units: their gradients travel in another group")
    if has_experts(case) and case.value("average_in_collective") == "1":
        raise Unsupported("gradients of experts are multiplied and summed in their collective")
    if case.value("param_dtype") == "bf16" and case.value("grad_comm_dtype") == "fp32":
        raise Unsupported(
            "FSDP2 hands gradients to their reduction in param_dtype: fp32 gradients of bf16 parameters "
            "do not exist in it"
        )
    if "tied" in case.traits and "Embedding" in case.value("units"):
        raise Unsupported("fully_shard refuses a parameter that two of its units share")


@engine(
    knobs={
        **COMMON_KNOBS,
        "strategy": ["optim_grads_params"],
        "num_optimizer_instances": int,
        "param_dtype": ["fp32", "bf16"],
        "grad_comm_dtype": ["fp32", "bf16"],
        "average_in_collective": ["0", "1"],
        "overlap_grad_reduce": ["0", "1"],
        "overlap_param_gather": ["0", "1"],
        "units": str,
    },
    traits=_traits,
    factors=EXPERTS,
)
def build(case, model, device):
    if case.value("recompute") == "1":
        model.recompute_layers()
    ranks: DeviceMesh = mesh(case)
    options = {"mesh": ranks, "mp_policy": _precision(case)}
    if has_experts(case):
        _shard_experts(case, model, options)
    for unit in reversed(model.units(case.value("units").split(","))):  # children before parents
        fully_shard(unit, **options)
    fully_shard(model, **options)
    if "unused" in case.traits:
        model.set_reduce_scatter_unused_params(True)
    made = optimizer(case, model)

    def microbatch(_index, last):
        if ranks.ndim > 1:
            model.set_requires_all_reduce(last)  # over replicas once a step
        return contextlib.nullcontext()

    return Training(
        model,
        made,
        microbatch=microbatch,
        shard_group=ranks.get_group("shard"),
        save=lambda folder: checkpoint.save(folder, model, made),
        load=lambda folder: checkpoint.load(folder, model, made),
    )


ENGINE = build
ENGINE.name = "fsdp2"
