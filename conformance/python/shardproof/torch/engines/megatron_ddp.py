"""megatron-core 0.16.1: DistributedDataParallel, alone or with DistributedOptimizer, as they are.

megatron_core.py lists what is redirected. Strategy no_shard is DistributedDataParallel with a
whole optimizer, optim is use_distributed_optimizer: gradients are reduced once a step, into
shards of their buffers.
"""

from shardproof.torch.declaration import engine
from shardproof.torch.engines import megatron_core
from shardproof.torch.engines.common import NO_SAVES, ROUTED, has_experts
from shardproof.torch.fixture.case import Unsupported


_GATHERS = (
    "overlap_param_gather needs the distributed optimizer and overlap_grad_reduce "
    "(megatron/training/arguments.py: validate_args)"
)
_INSTANCES = "more than one optimizer instance needs the distributed optimizer"
_EXPERTS = "experts under several optimizer instances are not driven here"


def _traits(case):
    megatron_core.refuse(case)
    if int(case.value("num_optimizer_instances")) > 1:
        if has_experts(case):
            raise Unsupported(_EXPERTS)
        if case.value("strategy") == "no_shard":
            raise Unsupported(_INSTANCES)


def owner(model, optimizer, sharded):
    """Which part of a parameter this rank steps: what lies in its shard of the bucket, or all."""
    if not sharded:
        return lambda i, gradient: (0, model.parameter(i).numel())

    def owned(i, gradient):
        param = model.parameter(i)
        for inner in optimizer.chained_optimizers:
            if param in inner.model_param_gbuf_map:
                index, dtype, bucket = inner.model_param_gbuf_map[param]
                held = inner.gbuf_ranges[index][dtype][bucket]["param_map"][param]["param"]
                return held.start, held.size
        return None if param.requires_grad else (0, param.numel())

    return owned


@engine(
    knobs={
        **megatron_core.KNOBS,
        "strategy": ["no_shard", "optim"],
        "num_optimizer_instances": int,
        "overlap_param_gather": ["0", "1"],
    },
    traits=_traits,
    takes={**NO_SAVES, "experts": ["0", "1"], "moe.experts": ["0", *ROUTED]},
    without=[
        *megatron_core.WITHOUT,
        ({"overlap_param_gather": ["1"], "strategy": ["no_shard"]}, _GATHERS),
        ({"overlap_param_gather": ["1"], "overlap_grad_reduce": ["0"]}, _GATHERS),
        ({"num_optimizer_instances": ["2", "4"], "strategy": ["no_shard"]}, _INSTANCES),
        ({"num_optimizer_instances": ["2", "4"], "experts": ["1"]}, _EXPERTS),
        ({"num_optimizer_instances": ["2", "4"], "moe.experts": ROUTED}, _EXPERTS),
    ],
)
def build(case, model, device):
    sharded = case.value("strategy") == "optim"
    gathers = case.value("overlap_param_gather") == "1"
    groups = megatron_core.process_groups(case)
    wrapped = megatron_core.distributed(
        case,
        model,
        groups,
        use_distributed_optimizer=sharded,
        overlap_param_gather=gathers,
        num_distributed_optimizer_instances=int(case.value("num_optimizer_instances")),
    )
    config = megatron_core.optimizer_config(
        case, use_distributed_optimizer=sharded, overlap_param_gather=gathers
    )
    optimizer = megatron_core.megatron_optimizer(case, wrapped, groups, config)
    owned = owner(model, optimizer, sharded)
    return megatron_core.training(case, model, wrapped, optimizer, owned)


ENGINE = build
ENGINE.name = "megatron_ddp"
