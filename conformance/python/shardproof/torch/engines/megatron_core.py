"""What the engines of megatron-core 0.16.1 have in common: DistributedDataParallel, its
optimizers, explicit process groups.

What is redirected, and why:
- torch.cuda's names are answered by the recorded device (cuda_names.py): the package names
  torch.cuda throughout.
- torch.optim.AdamW is a subclass of itself while an optimizer is built (_clothed):
  DistributedOptimizer accepts Adam alone, and torch's differs from the suite's in the last place.
  Its step is the fixture's SGD or AdamW.

Process groups are given (ProcessGroupCollection), so parallel_state is not initialised. Axes that
are not data-parallel have groups of one rank. The division of gradients by the number of
microbatches is the driver's, after finish_grad_sync, as Megatron's schedules do it by the loss.
Its own clipping and norm are fp32: clip_grad and grad_norm are not declared.
"""

import contextlib
import logging
import warnings

import torch
import torch.distributed as dist

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of TransformerEngine and apex, which are not there
    from megatron.core.distributed import (
        DistributedDataParallel,
        DistributedDataParallelConfig,
    )
    from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
    from megatron.core.process_groups_config import ProcessGroupCollection
    from megatron.core.transformer import TransformerConfig

from shardproof import model as api
from shardproof.torch import cuda_names
from shardproof.torch.declaration import Training
from shardproof.torch.engines.common import has_experts
from shardproof.torch.fixture.case import Unsupported
from shardproof.torch.fixture.optimizers import ExactAdamW, ExactSGD

logging.getLogger("megatron.core").setLevel(logging.ERROR)

KNOBS = {
    "overlap_grad_reduce": ["0", "1"],
    "average_in_collective": ["0", "1"],
    "bucket_size": int,
    "optimizer": ["sgd", "adamw"],
    "weight_decay": float,
    "recompute": ["0", "1"],
}


# What distributed_data_parallel.py does not do: __init__, _make_backward_post_hook.
WITHOUT = [
    (
        {"unused": ["step", "rank"], "overlap_grad_reduce": ["1"]},
        "a parameter without a gradient is not legal with overlap_grad_reduce",
    ),
    (
        {"bucket_size": ["300", "1", "1000"], "overlap_grad_reduce": ["0"]},
        "bucket_size is read with overlap_grad_reduce alone",
    ),
]


def refuse(case):
    """Sizes of buckets that WITHOUT does not list."""
    if int(case.value("bucket_size")) and case.value("overlap_grad_reduce") == "0":
        raise Unsupported("bucket_size is read with overlap_grad_reduce alone")


def process_groups(case):
    """dp and dp_cp as the case has them, one rank for each other axis."""
    data = case.group("dp_cp")
    alone = [dist.new_group([rank]) for rank in range(case.world)][case.rank]
    groups = ProcessGroupCollection()
    groups.dp = groups.dp_cp = groups.intra_dist_opt = data
    for name in ("tp", "pp", "cp", "ep", "mp", "tp_ep_pp", "expt_dp", "expt_tp", "intra_expt_dp"):
        setattr(groups, name, alone)
    if has_experts(case):
        groups.ep = case.group("ep")
        groups.expt_dp = groups.intra_expt_dp = case.group("expt_dp")
    if int(case.value("num_optimizer_instances")) > 1:
        groups.inter_dist_opt = case.group("inter_dp_cp")
        groups.intra_dp_cp = groups.intra_dist_opt = case.group("intra_dp_cp")
    return groups


def distributed(case, model, groups, **options):
    """The model in Megatron's DistributedDataParallel."""
    cuda_names.install()
    for i, row in enumerate(model.model.params):  # as MLP and GroupedMLP mark those of experts
        model.parameter(i).allreduce = not row[2] & api.EXPERT
    if case.value("recompute") == "1":
        model.recompute_layers()
    return DistributedDataParallel(
        TransformerConfig(num_layers=2, hidden_size=16, num_attention_heads=2),  # of no effect here
        DistributedDataParallelConfig(
            overlap_grad_reduce=case.value("overlap_grad_reduce") == "1",
            average_in_collective=case.value("average_in_collective") == "1",
            bucket_size=int(case.value("bucket_size")) or None,
            **options,
        ),
        model,
        pg_collection=groups,
    )


def _clothed(kind):
    """torch.optim.AdamW with the step of kind (ExactSGD, ExactAdamW)."""

    class AdamW(torch.optim.AdamW):
        scale = 1.0
        update = kind.update

        @torch.no_grad()
        def step(self, closure=None):
            return kind.step(self, closure)

    return AdamW


@contextlib.contextmanager
def _adamw_is(kind):
    kept, torch.optim.AdamW = torch.optim.AdamW, _clothed(kind)
    try:
        yield
    finally:
        torch.optim.AdamW = kept


def optimizer_config(case, **options):
    return OptimizerConfig(
        optimizer="adam",
        lr=float(case.value("lr")),
        weight_decay=float(case.value("weight_decay")),
        clip_grad=0.0,
        **options,
    )


def megatron_optimizer(case, wrapped, groups, config):
    """get_megatron_optimizer, with the fixture's step; weight decay for biases too."""
    with _adamw_is({"sgd": ExactSGD, "adamw": ExactAdamW}[case.value("optimizer")]):
        return get_megatron_optimizer(
            config,
            [wrapped],
            config_overrides={},
            use_gloo_process_groups=False,
            pg_collection=groups,
        )


class _Optimizer:
    """Megatron's optimizer in the shape that the training loop calls."""

    def __init__(self, inner, after_step):
        self.inner, self._after_step = inner, after_step

    def step(self):
        done, _norm, _zeros = self.inner.step()
        assert done, "the optimizer skipped the step"
        self._after_step()

    def zero_grad(self, set_to_none=True):
        """Where an iteration begins, as in megatron/training/training.py: train_step."""


def training(case, model, wrapped, optimizer, owned):
    """owned(i, gradient) -> (first element, number) of what is published here, or None."""

    @contextlib.contextmanager
    def microbatch(index, last):
        if index == 0:
            wrapped.zero_grad_buffer()
            optimizer.zero_grad()
        with contextlib.nullcontext() if last else wrapped.no_sync():
            yield
        if last:
            wrapped.finish_grad_sync()
            if case.microbatches > 1:
                for buffer in wrapped.buffers + wrapped.expert_parallel_buffers:
                    buffer.grad_data.div_(case.microbatches)

    hooked = wrapped.use_forward_hook
    if hooked:
        wrapped.disable_forward_pre_hook(param_sync=False)  # on after the first step: train()

    def after_step():
        nonlocal hooked
        if hooked:
            wrapped.enable_forward_pre_hook()
            hooked = False

    def cut(i, tensor, gradient):
        held = owned(i, gradient)
        return held and (held[0], tensor.detach().view(-1)[held[0] : held[0] + held[1]])

    return Training(
        wrapped,
        _Optimizer(optimizer, after_step),
        microbatch=microbatch,
        shard=lambda i, tensor: cut(i, tensor, False),
        gradient=lambda i: cut(i, model.parameter(i).main_grad, True),
        averages=True,
    )
