"""DeepSpeed 0.19.8, ZeRO-3: engine, optimizer and model stay alive after engine.destroy() and the
last reference.

One process, CPU, gloo: python deepspeed_zero3_kept_alive.py
"""

import functools
import gc
import os
import sys
import weakref

os.environ.update(DS_ACCELERATOR="cpu", RANK="0", LOCAL_RANK="0", WORLD_SIZE="1")
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29802")

import deepspeed  # noqa: E402
import deepspeed.comm.torch  # noqa: E402,F401
import torch  # noqa: E402
from deepspeed.runtime.zero import parameter_offload  # noqa: E402
from torch import nn  # noqa: E402

sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None  # no operator is compiled
torch.set_num_threads(1)


def trained_and_destroyed(stage):
    """Weak references to engine, optimizer and model."""
    model = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 4))
    engine, *_ = deepspeed.initialize(
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        config={
            "train_micro_batch_size_per_gpu": 1,
            "zero_optimization": {"stage": stage, "stage3_param_persistence_threshold": 0},
            "zero_allow_untested_optimizer": True,
        },
    )
    for _ in range(3):
        engine.backward(engine(torch.ones(1, 16)).sum())
        engine.step()
    engine.destroy()
    return [weakref.ref(x) for x in (engine, engine.optimizer, model)]


def left(references):
    gc.collect()
    names = ("engine", "optimizer", "model")
    return [name for name, reference in zip(names, references) if reference() is not None]


def forget_caches():
    """What functools.lru_cache holds of ZeRO-3's methods: self is a key."""
    found = []
    for x in gc.get_objects():
        if isinstance(x, functools._lru_cache_wrapper) and x.__module__.startswith("deepspeed"):
            if x.cache_info().currsize:
                found.append(f"{x.__qualname__}: {x.cache_info().currsize} entries")
                x.cache_clear()
    return found


def empty_stack():
    found = [f"FWD_MODULE_STACK: {len(parameter_offload.FWD_MODULE_STACK)} entry"]
    parameter_offload.FWD_MODULE_STACK.clear()
    return found


def main():
    deepspeed.init_distributed("gloo")
    print("ZeRO-2, after destroy:", left(trained_and_destroyed(2)) or "nothing", flush=True)
    for first, second in ((forget_caches, empty_stack), (empty_stack, forget_caches)):
        references = trained_and_destroyed(3)
        after = left(references)
        print("ZeRO-3, after destroy:", after or "nothing")
        for empty in (first, second):
            print("  emptied", empty(), "->", left(references) or "nothing")
    return int(bool(after))


if __name__ == "__main__":
    sys.exit(main())
