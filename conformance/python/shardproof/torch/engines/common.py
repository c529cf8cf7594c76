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

# Numbers of routed experts in a layer that cases ask for.
ROUTED = ["4", "8", "16"]


def has_experts(case):
    """Are there parameters that are reduced over expt_dp instead of dp_cp?"""
    return "experts" in case.traits or "moe.experts" in case.traits


# Scripts of an engine without checkpoints.
NO_SAVES = {"script": ["ttt", "tett", "tettt", "etrte", "etrtet", "tetet"]}


def refuse_experts(case):
    if has_experts(case):
        raise Unsupported("experts need process groups of their own")
