"""megatron-fsdp 0.6.1 (fully_shard_model and fully_shard_optimizer), as it is.

What is redirected, and why:
- torch.cuda's names are answered by the recorded device (cuda_names.py): the package names
  torch.cuda throughout.
- `megatron` is hidden while the package is imported: with megatron-core 0.16.1 beside it, it
  would take that package's DistributedDataParallelConfig, which lacks fields that 0.6.1 passes
  (fully_shard.py, fully_shard_model).

set_model_auto_sync is on for the last microbatch alone, as its text asks. The mesh has a
dimension of tensor-parallel size 1, as the package asks. The optimizer is the fixture's, over
trainable parameters. The unit is the TransformerLayer: others of the fixture have no classes of
their own.
"""

import contextlib
import logging
import sys

import torch
from torch.distributed.device_mesh import DeviceMesh

from shardproof.torch import cuda_names
from shardproof.torch.declaration import Training, engine
from shardproof.torch.device import NAME
from shardproof.torch.engines.common import COMMON_KNOBS, NO_SAVES, refuse_experts
from shardproof.torch.fixture.case import mesh
from shardproof.torch.fixture.modules import TransformerLayer
from shardproof.torch.fixture.optimizers import optimizer


@contextlib.contextmanager
def _hidden(name):
    """A package that cannot be imported meanwhile."""
    kept = {key: sys.modules.pop(key) for key in list(sys.modules) if key.split(".")[0] == name}
    sys.modules[name] = None
    try:
        yield
    finally:
        del sys.modules[name]
        sys.modules.update(kept)


with _hidden("megatron"):
    from megatron_fsdp.fully_shard import fully_shard_model, fully_shard_optimizer

logging.getLogger("megatron_fsdp").setLevel(logging.ERROR)


def _mesh(case, names):
    """This rank's data-parallel mesh, with dimensions of these names, and a last one of one rank.

    It is cut out of a mesh of the whole world: the groups of a mesh are made by all ranks together.
    """
    groups = [ranks for name, ranks in case.asked["groups"] if name == "dp_cp"]
    inner = [ranks for name, ranks in case.asked["groups"] if name == "intra_dp_cp"]
    if len(names) > 1:
        groups = [[i for i in inner if set(i) <= set(group)] for group in groups]
    whole = DeviceMesh(
        NAME,
        torch.tensor(groups).unsqueeze(-1),
        mesh_dim_names=("group", *names, "tp"),
        _init_backend=True,
    )
    return whole[(*names, "tp")]


@engine(
    knobs={
        **COMMON_KNOBS,
        "strategy": ["no_shard", "optim", "optim_grads", "optim_grads_params"],
        "num_optimizer_instances": int,
        "average_in_collective": ["0", "1"],
        "overlap_grad_reduce": ["0", "1"],
        "overlap_param_gather": ["0", "1"],
    },
    traits=refuse_experts,
    takes=NO_SAVES,
)
def build(case, model, device):
    cuda_names.install()
    if case.value("recompute") == "1":
        model.recompute_layers()
    ranks = mesh(case)
    options = {}
    if ranks.ndim > 1:
        options = {"dp_outer_dim": "replicate", "hybrid_fsdp_group": case.group("dp_cp")}
    wrapped = fully_shard_model(
        model,
        device_mesh=_mesh(case, ranks.mesh_dim_names),
        dp_shard_dim="shard",
        tp_dim="tp",
        fsdp_unit_modules=[TransformerLayer],
        zero_dp_strategy=case.value("strategy"),
        device=device,
        overlap_grad_reduce=case.value("overlap_grad_reduce") == "1",
        overlap_param_gather=case.value("overlap_param_gather") == "1",
        average_in_collective=case.value("average_in_collective") == "1",
        preproc_state_dict_for_dcp_ckpt=False,
        **options,
    )
    made = fully_shard_optimizer(optimizer(case, wrapped), preproc_state_dict_for_dcp_ckpt=False)
    sharded = case.value("strategy") != "no_shard"

    @contextlib.contextmanager
    def microbatch(_index, last):
        wrapped.set_model_auto_sync(last)
        yield

    def shard(i, tensor):
        local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
        held = getattr(model.parameter(i), "megatron_fsdp_slice", None)
        return (held.start if sharded and held is not None else 0), local

    return Training(
        wrapped,
        made,
        microbatch=microbatch,
        shard=shard,
        shard_group=ranks.get_group("shard") if sharded else None,
    )


ENGINE = build
ENGINE.name = "megatron_fsdp"
