"""DeepSpeed 0.19.8, ZeRO-3 with overlap_comm: nothing orders the all-gather after the optimizer's
write of the shards.

DeepSpeed's own accelerator for CPUs is given streams and events that only keep a clock (who has
waited for whom), and CUDA's answers to what decides DeepSpeed's paths. What waits on the host on
CUDA waits here: .item(), .cpu(), bool(), synchronize(). Then each all-gather is asked whether its
stream has waited for the write of the shards that it sends.

One process, gloo: python deepspeed_zero3_gather_race.py [--cured] [--timer] [--persistent] [--item]
  --cured: the gather's stream waits for the current one first
  --timer: DeepSpeed's throughput timer, which is on by default
  --persistent: small parameters stay gathered, as by default
  --item: loss.item() after each step
"""

import contextlib
import os
import sys

os.environ.update(DS_ACCELERATOR="cpu", RANK="0", LOCAL_RANK="0", WORLD_SIZE="1")
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29804")

import deepspeed  # noqa: E402
import deepspeed.comm.torch  # noqa: E402,F401
import torch  # noqa: E402
from deepspeed.accelerator import set_accelerator  # noqa: E402
from deepspeed.accelerator.cpu_accelerator import CPU_Accelerator  # noqa: E402
from deepspeed.runtime.zero.partitioned_param_coordinator import (  # noqa: E402
    PartitionedParameterCoordinator,
)
from deepspeed.runtime.zero.stage3 import DeepSpeedZeroOptimizer_Stage3  # noqa: E402
from torch import nn  # noqa: E402

sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None  # no operator is compiled
torch.set_num_threads(1)

HOST = {}  # what the host has waited for: stream -> its clock
CURRENT = []


def join(into, other):
    for stream, clock in other.items():
        into[stream] = max(into.get(stream, 0), clock)


class Stream:
    def __init__(self, *_, **__):
        self.seen = {}

    def work(self):
        """Issues something; what it has waited for."""
        join(self.seen, HOST)
        self.seen[self] = self.seen.get(self, 0) + 1
        return dict(self.seen)

    def wait_stream(self, other):
        join(self.seen, other.work())

    def wait_event(self, event):
        join(self.seen, event.seen)

    def synchronize(self):
        join(HOST, self.work())

    def query(self):
        return True


class Event:
    def __init__(self, *_, **__):
        self.seen = {}

    def record(self, stream=None):
        self.seen = (stream or CURRENT[-1]).work()

    def synchronize(self):
        join(HOST, self.seen)

    def query(self):
        return False  # not known to be done: nobody may rely on it

    def wait(self, stream=None):
        (stream or CURRENT[-1]).wait_event(self)

    def elapsed_time(self, _):
        return 0.0


DEFAULT = Stream()
CURRENT.append(DEFAULT)
STREAMS = [DEFAULT]


class Streamed(CPU_Accelerator):
    """The CPU, with streams."""

    Event = property(lambda self: Event)

    def is_synchronized_device(self):
        return False

    def Stream(self, *_, **__):
        STREAMS.append(Stream())
        return STREAMS[-1]

    @contextlib.contextmanager
    def stream(self, stream):
        CURRENT.append(stream)
        yield
        CURRENT.pop()

    def current_stream(self, device_index=None):
        return CURRENT[-1]

    def default_stream(self, device_index=None):
        return DEFAULT

    def synchronize(self, device_index=None):
        for stream in STREAMS:
            stream.synchronize()


def host_waits(name):
    """A method of tensors that on CUDA waits for the current stream."""
    plain = getattr(torch.Tensor, name)

    def call(self, *arguments, **keys):
        CURRENT[-1].synchronize()
        return plain(self, *arguments, **keys)

    setattr(torch.Tensor, name, call)


def watch(found, cured):
    """Notes each write of the shards, and asks each gather."""
    written = {}
    write = DeepSpeedZeroOptimizer_Stage3._reassign_or_swap_out_partitioned_parameters
    key = "_PartitionedParameterCoordinator__all_gather_params_"
    gather = getattr(PartitionedParameterCoordinator, key)

    def watched_write(self, sub_group):
        write(self, sub_group)
        written.update(CURRENT[-1].work())

    def watched_gather(self, params, *arguments, **keys):
        stream = self._PartitionedParameterCoordinator__allgather_stream
        if cured:
            stream.wait_stream(CURRENT[-1])
        seen = stream.work()
        late = [s for s, clock in written.items() if seen.get(s, 0) < clock]
        if late and params:
            found.append(f"the shards of {len(params)} parameters")
        return gather(self, params, *arguments, **keys)

    DeepSpeedZeroOptimizer_Stage3._reassign_or_swap_out_partitioned_parameters = watched_write
    setattr(PartitionedParameterCoordinator, key, watched_gather)


def train(options):
    model = nn.Sequential(*[nn.Linear(16, 16) for _ in range(4)])
    engine, *_ = deepspeed.initialize(
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        config={
            "train_micro_batch_size_per_gpu": 1,
            "zero_optimization": {
                "stage": 3,
                "overlap_comm": True,
                "stage3_param_persistence_threshold": 100 if "--persistent" in options else 0,
            },
            "zero_allow_untested_optimizer": True,
            "timers": {"throughput": {"enabled": "--timer" in options}},
        },
    )
    for _ in range(4):
        loss = engine(torch.ones(1, 16)).sum()
        engine.backward(loss)
        engine.step()
        if "--item" in options:
            loss.item()


def main():
    set_accelerator(Streamed())
    deepspeed.init_distributed("gloo")
    for name in ("item", "cpu", "__bool__", "tolist"):
        host_waits(name)
    torch.Tensor.record_stream = lambda self, stream: None
    found = []
    watch(found, "--cured" in sys.argv)
    train(sys.argv)
    for text in found:
        print(f"an all-gather reads {text}, and has not waited for the optimizer's write of them")
    print(f"{len(found)} all-gathers that nothing orders after the write")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
