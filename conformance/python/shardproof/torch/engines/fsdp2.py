"""torch.distributed.fsdp.fully_shard, as it is.

| knob | of fully_shard |
|---|---|
| strategy = optim_grads_params | its default: parameters are resharded after forward, but the root's |
| strategy = optim_grads | reshard_after_forward=False; set_reshard_after_backward(False) until the last microbatch |
| strategy = optim | the same, and set_requires_gradient_sync(False) until the last microbatch |
| reshard_after_forward | of units: False, True or a number of ranks; the root's stay |
| num_optimizer_instances | a mesh of two dimensions; set_requires_all_reduce(False) until the last microbatch |
| param_dtype, grad_comm_dtype | param_dtype, reduce_dtype of MixedPrecisionPolicy |
| overlap_param_gather | set_modules_to_forward_prefetch and _backward_prefetch: one unit ahead |
| prefetch_limit_bytes | the same: as many units ahead as fit, two at most |
| calculate_per_token_loss | set_gradient_divide_factor(1), sums; shards are divided at the end of the step |

unused=rank is not taken: a unit is gathered when its forward runs, so a rank that leaves a unit out
issues other collectives. set_reduce_scatter_unused_params is for parameters of units that run.
"""

import contextlib

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

from shardproof.torch.declaration import Training, engine
from shardproof.torch.engines import checkpoint
from shardproof.torch.engines.common import COMMON_KNOBS, ROUTED, has_experts
from shardproof.torch.fixture.case import mesh
from shardproof.torch.fixture.optimizers import local, optimizer

_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
_MOST_AHEAD = 2  # units
_UNUSED = "units that are named for a prefetch are gathered, used in the step or not"
_EXPERT_UNITS = "experts are units: their gradients travel in another group"
_EXPERT_SUMS = "gradients of experts are multiplied and summed in their collective"


def _precision(case):
    """Parameters as nodes read them, gradients as they travel: fp32 unless the case says otherwise."""
    param, wire = case.value("param_dtype"), case.value("grad_comm_dtype")
    return MixedPrecisionPolicy(
        param_dtype=None if param == "fp32" else _DTYPES[param],
        reduce_dtype=_DTYPES[wire],
        cast_forward_inputs=False,
    )


def _after_forward(case):
    """Of units: 1 and 0 are a bool, more is a number of ranks, which experts do not have."""
    ranks = int(case.value("reshard_after_forward"))
    return {"reshard_after_forward": ranks if ranks > 1 else ranks == 1}


def _shard_experts(case, model, options):
    """As torchtitan does: over the ranks that have the same experts, divided as dense parameters are."""
    stays = case.value("reshard_after_forward") == "0"
    options = {"reshard_after_forward": not stays, **options, "mesh": mesh(case, "expt_dp")}
    for experts in model.experts():
        fully_shard(experts, **options)
        experts.set_gradient_divide_factor(float(len(case.members("dp_cp"))))


def _ahead(case, units):
    """How many units are gathered ahead explicitly; 0: as fully_shard does it by itself."""
    limit = int(case.value("prefetch_limit_bytes"))
    if limit < 0:
        return int(case.value("overlap_param_gather"))
    width = _DTYPES[case.value("param_dtype")].itemsize
    largest = max((sum(p.numel() for p in u.parameters()) * width for u in units), default=1)
    return min(_MOST_AHEAD, limit // largest)


def _prefetch(model, units, ahead):
    """units: in forward order."""
    model.set_modules_to_forward_prefetch(units[:ahead])
    model.set_modules_to_backward_prefetch(units[::-1][:ahead])
    for i, unit in enumerate(units):
        unit.set_modules_to_forward_prefetch(units[i + 1 : i + 1 + ahead])
        unit.set_modules_to_backward_prefetch(units[:i][::-1][:ahead])


def _sum_gradients(model):
    """Gradients are summed, and divided by nobody."""
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)


class _Microbatches:
    """What is set around each microbatch of a step."""

    def __init__(self, case, model, ranks):
        self.model, self.strategy = model, case.value("strategy")
        self.replicas = ranks.ndim > 1
        tokens = case.value("calculate_per_token_loss") == "1" and case.value("tokens_per_step")
        self.tokens = int(tokens) if tokens else None

    @contextlib.contextmanager
    def __call__(self, _index, last):
        if self.strategy != "optim_grads_params":
            self.model.set_reshard_after_backward(last)
        if self.strategy == "optim":
            self.model.set_requires_gradient_sync(last)
        elif self.replicas:
            self.model.set_requires_all_reduce(last)  # over replicas once a step
        yield
        if last and self.tokens:
            for param in self.model.parameters():
                if param.grad is not None:
                    local(param.grad).div_(self.tokens)


@engine(
    knobs={
        **COMMON_KNOBS,
        "strategy": ["optim_grads_params", "optim_grads", "optim"],
        "reshard_after_forward": int,
        "num_optimizer_instances": int,
        "param_dtype": ["fp32", "bf16"],
        "grad_comm_dtype": ["fp32", "bf16"],
        "average_in_collective": ["0", "1"],
        "calculate_per_token_loss": ["0", "1"],
        "tokens_per_step": int,
        "overlap_grad_reduce": ["0", "1"],
        "overlap_param_gather": ["0", "1"],
        "prefetch_limit_bytes": ["-1", "1048576"],
        "units": str,
    },
    marks={  # _fsdp_param_group.py, _fsdp_state.py
        "FSDP::root_pre_forward": "FORWARD",
        "FSDP::pre_forward": "PRE_FORWARD",
        "FSDP::post_forward": "POST_FORWARD",
        "FSDP::pre_backward": "PRE_BACKWARD",
        "FSDP::post_backward_reshard": "POST_BACKWARD",
        "FSDP::root_post_backward_callback": "ROOT_POST_BACKWARD",
    },
    takes={
        "unused": ["none", "step"],
        "experts": ["0", "1"],
        "moe.experts": ["0", *ROUTED],
    },
    without=[
        (
            {"tied": ["1"], "units": ["TransformerLayer,Embedding"]},
            "fully_shard refuses a parameter that two of its units share",
        ),
        (
            {"param_dtype": ["bf16"], "grad_comm_dtype": ["fp32"]},
            "gradients are bf16 before they travel as fp32: the suite has no exact answer to that",
        ),
        (
            {"unused": ["step"], "overlap_param_gather": ["1"]},
            _UNUSED,
        ),
        ({"unused": ["step"], "prefetch_limit_bytes": ["1048576"]}, _UNUSED),
        ({"experts": ["1"], "units": ["none"]}, _EXPERT_UNITS),
        ({"moe.experts": ROUTED, "units": ["none"]}, _EXPERT_UNITS),
        ({"experts": ["1"], "average_in_collective": ["1"]}, _EXPERT_SUMS),
        ({"moe.experts": ROUTED, "average_in_collective": ["1"]}, _EXPERT_SUMS),
    ],
)
def build(case, model, device):
    if case.value("recompute") == "1":
        model.recompute_layers()
    ranks: DeviceMesh = mesh(case)
    options = {"mesh": ranks, "mp_policy": _precision(case)}
    if case.value("strategy") != "optim_grads_params":
        options["reshard_after_forward"] = False
    if has_experts(case):
        _shard_experts(case, model, options)
    units = model.units(case.value("units").split(","))
    for unit in reversed(units):  # children before parents
        fully_shard(unit, **{**_after_forward(case), **options})
    ahead = _ahead(case, units)
    fully_shard(model, **options)
    if ahead:
        _prefetch(model, units, ahead)
    if "unused" in case.traits:
        model.set_reduce_scatter_unused_params(True)
    microbatches = _Microbatches(case, model, ranks)
    if microbatches.tokens:
        _sum_gradients(model)
    made = optimizer(case, model)
    return Training(
        model,
        made,
        microbatch=microbatches,
        shard_group=ranks.get_group("shard"),
        averages=bool(microbatches.tokens),
        save=lambda folder: checkpoint.save(folder, model, made),
        load=lambda folder: checkpoint.load(folder, model, made),
    )


ENGINE = build
ENGINE.name = "fsdp2"
