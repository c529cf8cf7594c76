"""DeepSpeed 0.19.8, ZeRO-3: a parameter that a step does not use is stepped with its gradient of an
earlier step.

One process, CPU, gloo: python deepspeed_zero3_stale_gradient.py [--cured]
"""

import os
import sys

os.environ.update(DS_ACCELERATOR="cpu", RANK="0", LOCAL_RANK="0", WORLD_SIZE="1")
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29801")

import deepspeed  # noqa: E402
import deepspeed.comm.torch  # noqa: E402,F401
import torch  # noqa: E402
from torch import nn  # noqa: E402

sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None  # no operator is compiled
torch.set_num_threads(1)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.always = nn.Linear(4, 4, bias=False)
        self.sometimes = nn.Linear(4, 4, bias=False)

    def forward(self, x, use):
        y = self.always(x)
        return (y + self.sometimes(x) if use else y).sum()


def changes(stage, cured):
    """How far `sometimes` moves in three steps; it is used in the first only."""
    torch.manual_seed(0)
    model = Model()
    weight = model.sometimes.weight
    engine, *_ = deepspeed.initialize(
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        config={
            "train_micro_batch_size_per_gpu": 1,
            "gradient_clipping": 0.0,
            "zero_optimization": {"stage": stage},
            "zero_allow_untested_optimizer": True,
        },
    )

    def value():
        if stage < 3:
            return weight.detach().clone()
        with deepspeed.zero.GatheredParameters(weight):
            return weight.detach().clone()

    moved = []
    for use in (True, False, False):
        before = value()
        engine.backward(engine(torch.ones(1, 4), use))
        engine.step()
        if cured and stage == 3:
            engine.optimizer.grad_partitions_flat_buffer.zero_()
        moved.append(round((value() - before).abs().max().item(), 6))
    return moved


def main():
    deepspeed.init_distributed("gloo")
    wrong = False
    for stage in (1, 2, 3):
        moved = changes(stage, "--cured" in sys.argv)
        wrong |= moved[1:] != [0.0, 0.0]
        print(f"ZeRO-{stage}: used in step 0 only, moved by {moved}", flush=True)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
