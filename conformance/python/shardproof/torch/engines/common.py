"""What engines of torch.distributed have in common."""

from shardproof.torch.fixture.case import Unsupported

# Read by the training loop and the optimizers of the fixture.
COMMON_KNOBS = {
    "optimizer": ["sgd", "adamw"],
    "weight_decay": float,
    "clip_grad": float,
    "grad_norm": ["0", "1"],
    "recompute": ["0", "1"],
}


def refuse_experts(case):
    if "experts" in case.traits or "moe.experts" in case.traits:
        raise Unsupported("experts need process groups of their own")
