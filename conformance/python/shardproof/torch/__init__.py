"""Judges training engines in PyTorch on a recorded accelerator: README.md of conformance/python.

What an engine's file uses stands here; it is imported when it is first asked for, because torch takes seconds.
"""

import importlib

_HOMES = {
    "engine": "shardproof.torch.declaration",
    "Training": "shardproof.torch.declaration",
    "Case": "shardproof.torch.fixture.case",
    "Rejected": "shardproof.torch.fixture.case",
    "Unsupported": "shardproof.torch.fixture.case",
    "mesh": "shardproof.torch.fixture.case",
    "optimizer": "shardproof.torch.fixture.optimizers",
    "torch_optimizer": "shardproof.torch.fixture.optimizers",
}
__all__ = sorted(_HOMES)


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"shardproof.torch has no {name}")
    return getattr(importlib.import_module(_HOMES[name]), name)
