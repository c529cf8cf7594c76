"""Lightning Fabric 2.6.6: DDPStrategy builds DistributedDataParallel on a stream that nobody joins.

No device is needed: streams of torch.cuda are stood in for, and what is asked of them is printed.
    python fabric_ddp_side_stream.py
"""

import contextlib
import sys

import lightning_fabric.strategies.ddp as fabric
import torch

SAID = []


class Stream:
    def wait_stream(self, other):
        SAID.append("wait_stream")

    def wait_event(self, event):
        SAID.append("wait_event")

    def synchronize(self):
        SAID.append("synchronize")

    def record_event(self, event=None):
        SAID.append("record_event")


@contextlib.contextmanager
def stream(side):
    SAID.append("entered")
    yield
    SAID.append("left")


def main():
    current = Stream()
    torch.cuda.Stream, torch.cuda.stream = Stream, stream
    torch.cuda.current_stream = lambda device=None: current
    torch.cuda.synchronize = lambda device=None: SAID.append("synchronize")
    fabric.DistributedDataParallel = lambda module, **_: SAID.append(
        "DistributedDataParallel (broadcasts the parameters)"
    )
    strategy = fabric.DDPStrategy(parallel_devices=[torch.device("cuda", 0)])
    strategy.setup_module(torch.nn.Linear(2, 2))
    print("setup_module:", ", ".join(SAID))
    joined = any(word in SAID for word in ("wait_stream", "wait_event", "synchronize"))
    print("the side stream is joined" if joined else "nothing joins the side stream")
    return int(not joined)


if __name__ == "__main__":
    sys.exit(main())
