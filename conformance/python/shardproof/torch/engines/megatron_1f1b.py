"""megatron-core 0.16.1: the 1F1B schedule that hides experts' all-to-alls (combined_1f1b.py), under DistributedDataParallel
with a whole or a distributed optimizer.

Schedule, streams, events, nodes and their backward are Megatron's. What is redirected, besides what megatron_core.py lists:
- combined_forward_backward_step wants a GPTModel: _Model is one, whose parts are the fixture's.
- A layer's callables are the fixture's nodes (megatron_1f1b_plan.py) instead of those of build_layer_callables.
- The mlp node keeps its input (free_input): the fixture's experts read in backward what they were sent; Megatron's
  read a sorted copy.
- parallel_state is asked for the sizes of cp and pp; it is given groups of one rank.
- The two streams, which are globals of pipeline_parallel/utils.py, are forgotten before the process groups end.
"""

import dataclasses

import torch
from megatron.core import parallel_state
from megatron.core.enums import ModelType
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.pipeline_parallel import schedules, utils

from shardproof.torch.declaration import engine
from shardproof.torch.engines import megatron_core, megatron_ddp
from shardproof.torch.engines.common import NO_SAVES, ROUTED, has_experts
from shardproof.torch.engines.megatron_1f1b_plan import ChunkPlan
from shardproof.torch.fixture.case import Unsupported


class _Model(GPTModel):
    """The fixture in the place of a GPTModel."""

    def __init__(self, fixture):
        torch.nn.Module.__init__(self)
        self.fixture = fixture
        self.model_type = ModelType.encoder_or_decoder

    @property
    def model(self):
        return self.fixture.model

    def parameter(self, i):
        return self.fixture.parameter(i)

    def forward(self, run):
        return self.fixture(run)

    def set_input_tensor(self, input_tensor):
        """Of the previous stage: there is none."""

    def build_schedule_plan(self, run):
        return ChunkPlan(self.fixture, self.config, run)


def _traits(case):
    megatron_core.refuse(case)
    if not has_experts(case) or "moe.experts" not in case.traits:
        raise Unsupported("the schedule hides exchanges of routed experts, and there are none")
    for trait in ("mtp", "reused", "unused"):
        if trait in case.traits:
            raise Unsupported(f"a model with {trait} is not mapped onto the schedule's layers")


def _forward_step(passes, model, return_schedule_plan=False):
    run = next(passes)
    made = model.build_schedule_plan(run) if return_schedule_plan else model(run)
    # Tokens are not counted: with calculate_per_token_loss the loss stays as it is.
    return made, lambda loss: (loss, torch.tensor(0, dtype=torch.int), loss.detach())


def _configure(case, wrapped):
    """What the schedule reads."""
    config = wrapped.config
    config.overlap_moe_expert_parallel_comm = True
    early = case.value("ep_overlap_early_attn_memory_release") == "1"
    config.ep_overlap_early_attn_memory_release = early
    config.calculate_per_token_loss = True  # the loss is not divided by the microbatches
    config.no_sync_func = wrapped.no_sync
    wrapped.module.config = config


@engine(
    knobs={
        **{name: value for name, value in megatron_core.KNOBS.items() if name != "recompute"},
        "strategy": ["no_shard", "optim"],
        "overlap_param_gather": ["0"],
        "overlap_moe_expert_parallel_comm": ["1"],
        "ep_overlap_early_attn_memory_release": ["0", "1"],
    },
    traits=_traits,
    takes={**NO_SAVES, "moe.experts": ROUTED, "ep": ["2", "4", "8"], "mtp": ["0"]},
    without=megatron_core.WITHOUT,
)
def build(case, model, device):
    sharded = case.value("strategy") == "optim"
    groups = megatron_core.process_groups(case)
    groups.embd = groups.pos_embd = None
    parallel_state._CONTEXT_PARALLEL_GROUP = groups.cp
    parallel_state._PIPELINE_MODEL_PARALLEL_GROUP = groups.pp
    wrapped = megatron_core.distributed(
        case, _Model(model), groups, use_distributed_optimizer=sharded
    )
    _configure(case, wrapped)
    config = megatron_core.optimizer_config(case, use_distributed_optimizer=sharded)
    optimizer = megatron_core.megatron_optimizer(case, wrapped, groups, config)
    owned = megatron_ddp.owner(model, optimizer, sharded)
    made = megatron_core.training(case, model, wrapped, optimizer, owned)

    def step(passes):
        with made.around(0, True):  # the schedule itself enters no_sync
            losses = schedules.forward_backward_no_pipelining(
                forward_step_func=_forward_step,
                data_iterator=iter(passes),
                model=wrapped,
                num_microbatches=len(passes),
                seq_length=1,
                micro_batch_size=1,
                pg_collection=groups,
            )
        return {run.microbatch: loss for run, loss in zip(passes, losses)}

    def close():
        utils._COMP_STREAM = utils._COMM_STREAM = None
        wrapped.config.no_sync_func = None  # it keeps the model
        parallel_state._CONTEXT_PARALLEL_GROUP = None
        parallel_state._PIPELINE_MODEL_PARALLEL_GROUP = None

    return dataclasses.replace(made, step=step, close=close)


ENGINE = build
ENGINE.name = "megatron_1f1b"
