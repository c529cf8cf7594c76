"""DeepSpeed 0.19.8, ZeRO stages 1, 2 and 3, as it is.

What is redirected, and why:
- deepspeed.accelerator.set_accelerator: its accelerator is the recorded device
  (deepspeed_accelerator.py).
- The throughput timer is off ("timers" of DeepSpeed's configuration): from its third step on it
  synchronises the device each step, which would hide what streams forget.

The optimizer is the fixture's, given to deepspeed.initialize (zero_allow_untested_optimizer);
backward is loss.backward(). DeepSpeed divides the loss by the number of microbatches, so only
powers of two can be compared bit for bit. Its own clipping and norm round in another order:
clip_grad and grad_norm are not declared. overlap_grad_reduce is its overlap_comm;
overlap_param_gather gives ZeRO-3 a prefetch bucket. With param_dtype = bf16 the main weights are
its fp32 ones; ZeRO-1 then is its BF16_Optimizer, unless gradients are accumulated in bf16.
"""

import contextlib
import logging
import os

import torch

os.environ.setdefault("DS_BUILD_OPS", "0")
os.environ.setdefault("DS_ACCELERATOR", "cpu")  # until the recorded one is set, below

import deepspeed  # noqa: E402
import deepspeed.comm.comm  # noqa: E402

# Calls torch.compile when it is imported, which ranks refuse; so before there are ranks.
import deepspeed.runtime.zero.muon.muon_optimizer  # noqa: E402,F401
from deepspeed.accelerator import set_accelerator  # noqa: E402

from shardproof.torch.declaration import Training, engine  # noqa: E402
from shardproof.torch.device import NAME  # noqa: E402
from shardproof.torch.engines.common import refuse_experts  # noqa: E402
from shardproof.torch.engines.deepspeed_accelerator import RecordedAccelerator  # noqa: E402
from shardproof.torch.fixture.case import Unsupported  # noqa: E402
from shardproof.torch.fixture.optimizers import optimizer  # noqa: E402

set_accelerator(RecordedAccelerator())
logging.getLogger("DeepSpeed").setLevel(logging.WARNING)

_STAGES = {"optim": 1, "optim_grads": 2, "optim_grads_params": 3}
_ELEMENTS = 1000  # of a bucket, and gathered ahead: so that the fixture has several


def _traits(case):
    refuse_experts(case)
    if case.microbatches & (case.microbatches - 1):
        raise Unsupported("DeepSpeed divides the loss by the number of microbatches, which rounds")
    groups = case.asked.get("groups", [])
    if ["dp_cp", list(range(case.world))] not in [list(group) for group in groups]:
        raise Unsupported("the data-parallel ranks are not the world")


def configuration(case):
    """What deepspeed.initialize is given."""
    stage = _STAGES[case.value("strategy")]
    zero = {
        "stage": stage,
        "overlap_comm": case.value("overlap_grad_reduce") == "1",
        "contiguous_gradients": True,
        "reduce_bucket_size": _ELEMENTS,
        "allgather_bucket_size": _ELEMENTS,
    }
    if stage == 3:
        zero.update(
            # What is gathered ahead of need.
            stage3_prefetch_bucket_size=_ELEMENTS * int(case.value("overlap_param_gather")),
            stage3_param_persistence_threshold=0,
            stage3_max_live_parameters=2 * _ELEMENTS,
            stage3_max_reuse_distance=0,  # a module's parameters go when it has run
        )
    return {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": case.microbatches,
        "zero_optimization": zero,
        "zero_allow_untested_optimizer": True,
        "gradient_clipping": 0.0,
        "steps_per_print": 10**9,
        "timers": {"throughput": {"enabled": False}},
        "bf16": {"enabled": case.value("param_dtype") == "bf16"},
        "communication_data_type": case.value("grad_comm_dtype"),
        "data_types": {"grad_accum_dtype": case.value("main_grads_dtype")},
    }


class _Optimizer:
    """engine.step() in the shape that the training loop calls."""

    def __init__(self, wrapped):
        self._wrapped = wrapped

    def step(self):
        self._wrapped.step()

    def zero_grad(self, set_to_none=True):
        """DeepSpeed does that in step()."""


class _Shards:
    """Where this rank holds its share of each parameter and of its gradient."""

    def __init__(self, params, wrapped, rank, stage):
        self.params, self.wrapped, self.rank, self.stage = params, wrapped, rank, stage

    def value(self, i, tensor):
        """The main weight: what the optimizer steps."""
        param = self.params[i]
        if self.stage == 3:
            main = deepspeed.utils.safe_get_local_fp32_param if param.requires_grad else _shard
            return self._held(param, main(param).detach())
        if tensor.dtype == torch.float32 or not param.requires_grad:
            return 0, tensor  # whole, after its gather
        mapping = param._hp_mapping
        return mapping and (mapping.lp_fragment_address.start, mapping.hp_fragment)

    def _held(self, param, flat):
        """Stage 3: equal shards of the flat parameter, the last padded."""
        size = param.ds_tensor.ds_numel
        first = self.rank * size
        count = min(param.ds_numel - first, size)
        return (first, flat.view(-1)[:count]) if count > 0 else None

    def gradient(self, i):
        param = self.params[i]
        if self.stage == 3:
            return self._held(param, deepspeed.utils.safe_get_local_grad(param))
        mapping = param._hp_mapping
        if mapping is None:  # it lies wholly in others' partitions
            return None
        mine = mapping.lp_fragment_address
        held = mapping.get_lp_grad_fragment(param._index_in_param_group).view(-1)
        if held.numel() > mine.numel:  # BF16_Optimizer accumulates the whole parameter's
            held = held.narrow(0, mine.start, mine.numel)
        return mine.start, held


def _shard(param):
    return param.ds_tensor


@engine(
    knobs={
        "strategy": list(_STAGES),
        "overlap_grad_reduce": ["0", "1"],
        "overlap_param_gather": ["0", "1"],
        "optimizer": ["sgd", "adamw"],
        "weight_decay": float,
        "param_dtype": ["fp32", "bf16"],
        "grad_comm_dtype": ["fp32", "bf16"],
        "main_grads_dtype": ["fp32", "bf16"],
        "recompute": ["0", "1"],
    },
    traits=_traits,
    takes={"tp": ["1"], "pp": ["1"]},  # the data-parallel ranks are the world
    without=[
        ({"microbatches": ["3"]}, "DeepSpeed divides the loss by their number, which rounds"),
        (
            {"param_dtype": ["bf16"], "grad_comm_dtype": ["fp32"]},
            "DeepSpeed makes gradients of bf16 parameters in bf16",
        ),
        (
            {"main_grads_dtype": ["bf16"], "param_dtype": ["fp32"]},
            "ZeRO-1 and 2 accumulate gradients of fp32 parameters in fp32, whatever "
            "grad_accum_dtype says",
        ),
    ],
)
def build(case, model, device):
    if case.value("recompute") == "1":
        model.recompute_layers()
    case.group("dp_cp")
    deepspeed.init_distributed(NAME, auto_mpi_discovery=False, dist_init_required=False)
    params = [model.parameter(i) for i in range(len(model.model.params))]
    wrapped, *_ = deepspeed.initialize(
        model=model, optimizer=optimizer(case, model), config=configuration(case)
    )

    @contextlib.contextmanager
    def microbatch(_index, last):
        yield
        if not last:
            wrapped.step()  # counts the microbatch

    def close():
        wrapped.destroy()
        deepspeed.comm.destroy_process_group()

    shards = _Shards(params, wrapped, case.rank, _STAGES[case.value("strategy")])
    return Training(
        wrapped,
        _Optimizer(wrapped),
        microbatch=microbatch,
        shard=shards.value,
        gradient=shards.gradient,
        averages=True,
        save=wrapped.save_checkpoint,
        load=wrapped.load_checkpoint,
        close=close,
    )


ENGINE = build
ENGINE.name = "deepspeed"
