"""torch.distributed.pipelining: Interleaved1F1B over stages that are replicated by DistributedDataParallel, as they are.

A rank's model chunks are its stages. Shapes of messages are given (input_args, output_args): inferring them runs the
model once more. Microbatches are given already split (arg_mbs, kwarg_mbs, target_mbs).
"""

from torch.distributed.pipelining import PipelineStage, ScheduleInterleaved1F1B
from torch.nn.parallel import DistributedDataParallel

from shardproof.torch.declaration import Training, engine
from shardproof.torch.engines.common import COMMON_KNOBS, refuse_experts
from shardproof.torch.fixture.case import mesh
from shardproof.torch.fixture.optimizers import optimizer
from shardproof.torch.fixture.stages import stages


def _stages(case, model, device, data):
    """This rank's stages of the pipeline: stage v is chunk v // ranks of rank v % ranks."""
    pipeline = case.group("pp")
    ranks, place = pipeline.size(), pipeline.rank()
    made = stages(model)
    for part in made:
        received, sent = part.examples()
        yield PipelineStage(
            DistributedDataParallel(part, process_group=data) if data.size() > 1 else part,
            part.chunk * ranks + place,
            len(made) * ranks,
            device,
            input_args=received,
            output_args=sent,
            group=pipeline,
        )


@engine(
    knobs={
        **COMMON_KNOBS,
        "strategy": ["no_shard"],
        "overlap_grad_reduce": ["1", "0"],
        "virtual_pipeline_model_parallel_size": ["2", "3", "4"],
    },
    traits=refuse_experts,
    factors={
        "world": ["w4", "w2", "w8"],
        "axes": ["pp2", "pp4"],
        "microbatches": ["k4", "k8", "k2"],
        "virtual_pipeline_model_parallel_size": ["layers8.vpp2", "layers8.vpp4", "layers12.vpp3"],
        "layers": [""],
    },
)
def build(case, model, device):
    if case.value("recompute") == "1":
        model.recompute_layers()
    parts = list(_stages(case, model, device, mesh(case).get_group("shard")))
    last = any(part.is_last for part in parts)
    schedule = ScheduleInterleaved1F1B(
        parts, case.microbatches, loss_fn=lambda loss, _target: loss.view(()), scale_grads=True
    )

    def given(passes):
        return {
            "arg_mbs": [()] * len(passes),
            "kwarg_mbs": [{"run": run} for run in passes],
            "target_mbs": [()] * len(passes) if last else None,  # the loss node has its labels
        }

    def losses(run, passes):
        found = []
        run(**given(passes), losses=found)
        return {each.microbatch: loss for each, loss in zip(passes, found)} if last else {}

    return Training(
        model,
        optimizer(case, model),
        step=lambda passes: losses(
            lambda **how: schedule.step(**how, return_outputs=False), passes
        ),
        evaluate=lambda passes: losses(schedule.eval, passes),
        shard_group=case.group("pp"),  # each of its ranks has other parameters
        averages=True,
    )


ENGINE = build
ENGINE.name = "pipelining"
