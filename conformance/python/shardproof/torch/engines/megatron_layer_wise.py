"""megatron-core 0.16.1: LayerWiseDistributedOptimizer with DistributedDataParallel, as they are.

megatron_core.py lists what is redirected. Gradients are all-reduced; whole parameters are dealt
to ranks, which step their own and gather them in a list: torch runs a gather of uneven tensors as
one broadcast a rank, so the transport that is declared is broadcast.
"""

from megatron.core.optimizer.layer_wise_optimizer import LayerWiseDistributedOptimizer

from shardproof.torch.declaration import engine
from shardproof.torch.engines import megatron_core
from shardproof.torch.engines.common import NO_SAVES, refuse_experts
from shardproof.torch.fixture.case import Unsupported


def _traits(case):
    refuse_experts(case)
    megatron_core.refuse(case)


def _deals_evenly(model, ranks):
    """As shard_params of layer_wise_optimizer.py deals: by size, to ranks there and back."""
    sizes = sorted(param.numel() for param in model.parameters() if param.requires_grad)
    turns = [*range(ranks), *reversed(range(ranks))]
    owned = [0] * ranks
    for at, size in enumerate(sizes):
        owned[turns[at % len(turns)]] += size
    return ranks > 1 and len(set(owned)) == 1


@engine(
    knobs={
        **megatron_core.KNOBS,
        "optimizer": ["sgd", "adamw"],
        "strategy": ["layer_wise"],
        "layer_wise_layout": ["dealt"],
        "layer_wise_transport": ["broadcast"],
        "num_optimizer_instances": ["1"],
    },
    traits=_traits,
    takes=NO_SAVES,
    without=megatron_core.WITHOUT,
)
def build(case, model, device):
    if _deals_evenly(model, len(case.members("dp_cp"))):
        raise Unsupported("ranks own equally many elements, which torch gathers at once")
    groups = megatron_core.process_groups(case)
    wrapped = megatron_core.distributed(case, model, groups)
    config = megatron_core.optimizer_config(case)
    whole = megatron_core.megatron_optimizer(case, wrapped, groups, config)
    optimizer = LayerWiseDistributedOptimizer(whole.chained_optimizers, config, groups)

    dealt = optimizer.dp_cp_params_list

    def owned(i, gradient):
        """Gradients are whole on each rank; parameters are published by their owners."""
        param = model.parameter(i)
        if gradient or dealt is None or not param.requires_grad:
            return 0, param.numel()
        mine = dealt[groups.dp_cp.rank()]
        return (0, param.numel()) if any(param is other for other in mine) else None

    return megatron_core.training(case, model, wrapped, optimizer, owned)


ENGINE = build
ENGINE.name = "megatron_layer_wise"
