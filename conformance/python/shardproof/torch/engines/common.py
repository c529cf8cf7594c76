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

# Tokens that profiles combine for engines with experts (run/combinations.py).
EXPERTS = {"experts": ["", "ep2.moe4", "moe4", "ep2.experts"]}


def has_experts(case):
    """Are there parameters that are reduced over expt_dp instead of dp_cp?"""
    return "experts" in case.traits or "moe.experts" in case.traits


def refuse_experts(case):
    if has_experts(case):
        raise Unsupported("experts need process groups of their own")
