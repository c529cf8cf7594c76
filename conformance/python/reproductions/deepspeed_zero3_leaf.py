"""DeepSpeed 0.19.8, ZeRO-3: a leaf module (set_z3_leaf_module) whose inputs need no gradient ends
backward with an error.

One process, CPU, gloo: python deepspeed_zero3_leaf.py
"""

import os
import sys

os.environ.update(DS_ACCELERATOR="cpu", RANK="0", LOCAL_RANK="0", WORLD_SIZE="1")
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29803")

import deepspeed  # noqa: E402
import deepspeed.comm.torch  # noqa: E402,F401
import torch  # noqa: E402
from torch import nn  # noqa: E402

sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None  # no operator is compiled
torch.set_num_threads(1)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.head = nn.Linear(16, 50)

    def forward(self, x):
        return nn.functional.cross_entropy(self.head(self.embedding(x)).view(-1, 50), x.view(-1))


def outcome(leaf):
    torch.manual_seed(0)
    model = Model()
    if leaf:
        deepspeed.utils.set_z3_leaf_module(model.embedding, True)
    engine, *_ = deepspeed.initialize(
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        config={
            "train_micro_batch_size_per_gpu": 1,
            "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0},
            "zero_allow_untested_optimizer": True,
        },
    )
    try:
        for _ in range(3):
            engine.backward(engine(torch.arange(8).view(1, 8)))
            engine.step()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return "trained"


def main():
    deepspeed.init_distributed("gloo")
    print("embedding as it is:     ", outcome(False), flush=True)
    said = outcome(True)
    print("embedding a leaf module:", said)
    return int(said != "trained")


if __name__ == "__main__":
    sys.exit(main())
