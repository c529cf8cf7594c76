"""torch.distributed.pipelining: Interleaved1F1B over stages of DistributedDataParallel or fully_shard, as they are.

| knob | of a stage |
|---|---|
| strategy = no_shard | DistributedDataParallel |
| strategy = optim | fully_shard: a stage keeps its parameters from its first microbatch to its last (max_active_stages) and reduces after it |

A rank's model chunks are its stages. Shapes of messages are given (input_args, output_args): inferring them runs the
model once more. Microbatches are given already split (arg_mbs, kwarg_mbs, target_mbs).
"""

from torch import distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, ScheduleInterleaved1F1B
from torch.nn.parallel import DistributedDataParallel

from shardproof.torch.declaration import Training, engine
from shardproof.torch.engines.common import COMMON_KNOBS, refuse_experts
from shardproof.torch.fixture.case import mesh
from shardproof.torch.fixture.optimizers import optimizer
from shardproof.torch.fixture.stages import stages


def _parallel(case, part, model):
    """The stage as its data-parallel ranks have it. Parameters stay after forward, as a pipeline's users set it."""
    ranks = mesh(case)
    if case.value("strategy") == "optim":
        options = {"mesh": ranks, "reshard_after_forward": False}
        for layer in [m for m in part.modules() if m in model.units()]:
            fully_shard(layer, **options)
        return fully_shard(part, **options)
    data = ranks.get_group("shard")
    return DistributedDataParallel(part, process_group=data) if data.size() > 1 else part


def _stages(case, model, device):
    """This rank's stages of the pipeline: stage v is chunk v // ranks of rank v % ranks."""
    pipeline = case.group("pp")
    ranks, place = pipeline.size(), pipeline.rank()
    made = stages(model)
    for part in made:
        received, sent = part.examples()
        yield PipelineStage(
            _parallel(case, part, model),
            part.chunk * ranks + place,
            len(made) * ranks,
            device,
            input_args=received,
            output_args=sent,
            group=pipeline,
        )


# Profiles of the suite draw few pipelines with model chunks that this engine takes.
CASES = """
w8.ddp.pp2.k2.ogr.recompute.adamw.clip0p5.layers8.bias.root.frozen=layer.vpp2
w8.ddp.pp4.k8.lr0p0625.norm.do=tett.layers12.frozen=norms.vpp3
w4.ddp.pp2.k4.wd0p1.layers8.bias.frozen=embedding.vpp4
w2.ddp.pp2.k4.adamw.clip0p5.layers8.bias.odd.root.frozen=embedding.vpp2
w4.ddp.pp2.k4.layers4.vpp2
w4.ddp.pp2.k8.ogr.layers8.vpp2
w2.ddp.pp2.k8.layers8.root.vpp4
w4.ddp.pp4.k4.layers8.bias.vpp2
w2.ddp.pp2.k2.ogr.wd0p1.layers8.vpp2
w4.ddp.pp2.k2.recompute.layers8.vpp4
w2.ddp.pp2.k4.norm.layers12.bias.vpp3
w8.ddp.pp4.k4.clip0p5.layers8.odd.vpp2
w4.ddp.pp4.k4.recompute.wd0p1.layers12.vpp3
w8.ddp.pp2.k8.norm.do=tett.layers8.bias.vpp4
w4.ddp.pp4.k8.adamw.clip0p5.norm.layers8.root.vpp2
w4.ddp.pp2.k2.layers8.odd.root.frozen=embedding.vpp2
w4.ddp.pp2.k2.lr0p0625.layers12.root.frozen=embedding.vpp3
w4.ddp.pp2.k4.ogr.lr0p0625.layers12.root.frozen=norms.vpp3
w2.ddp.pp2.k4.adamw.wd0p1.do=tett.layers8.frozen=norms.vpp4
w8.ddp.pp2.k4.ogr.lr0p0625.norm.layers8.root.frozen=layer.vpp4
w8.ddp.pp2.k8.lr0p0625.wd0p1.layers8.bias.odd.frozen=layer.vpp2
w4.zero1.pp2.k4.layers4.vpp2
w4.zero1.pp2.k4.ogr.layers12.vpp3
w4.zero1.pp2.k4.wd0p1.layers8.bias.frozen=embedding.vpp4
w8.zero1.pp4.k4.adamw.layers8.vpp2
w4.zero1.pp2.k4.recompute.norm.layers4.odd.vpp2
w8.zero1.pp4.k8.lr0p0625.norm.do=tett.layers12.frozen=norms.vpp3
w8.zero1.pp2.k2.ogr.recompute.adamw.clip0p5.layers8.bias.frozen=layer.vpp2
w8.zero1.pp2.k8.ogr.lr0p0625.wd0p1.layers8.bias.odd.frozen=layer.vpp2
w8.ddp.pp4.k8.recompute.clip0p5.norm.do=tett.layers8.frozen=embedding.vpp2
w2.ddp.pp2.k2.ogr.recompute.lr0p0625.clip0p5.layers12.root.frozen=norms.vpp3
w2.ddp.pp2.k8.adamw.lr0p0625.clip0p5.norm.layers12.bias.odd.frozen=layer.vpp3
""".split()


@engine(
    knobs={
        **COMMON_KNOBS,
        "strategy": ["no_shard", "optim"],
        "overlap_grad_reduce": ["1", "0"],
        "virtual_pipeline_model_parallel_size": ["2", "3", "4"],
    },
    traits=refuse_experts,
    without=[
        (
            {"strategy": ["optim"], "root_param": ["1"]},
            "the fixture keeps what the root owns, and fully_shard puts its shard into the stage",
        ),
        (
            {"strategy": ["optim"], "tp": ["2", "4", "8"]},
            "the norm is summed over the world, and ranks of tp have the same shards",
        ),
    ],
    cases=CASES,
)
def build(case, model, device):
    if case.value("recompute") == "1":
        model.recompute_layers()
    parts = list(_stages(case, model, device))
    last = any(part.is_last for part in parts)
    schedule = ScheduleInterleaved1F1B(
        parts,
        case.microbatches,
        loss_fn=lambda loss, _target: loss.view(()),
        scale_grads=True,
        max_active_stages=len(parts),  # none is gathered again
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
        # Each of its ranks has other parameters.
        shard_group=case.group("pp") if case.value("strategy") == "no_shard" else dist.group.WORLD,
        averages=True,
    )


ENGINE = build
ENGINE.name = "pipelining"
