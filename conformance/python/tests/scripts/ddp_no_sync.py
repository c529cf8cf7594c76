"""DDP with gradient accumulation (no_sync). Mistakes: unwaited, one_rank, shape. Ends, of
rank 1 or of the rank that the second argument names: raise, exit, die, hang, spin, fork, silent
(the process ends itself, with code 0, before its program does), native (sleeps in C and keeps the
interpreter), lock, chatter (prints without end).
"""

import ctypes
import os
import sys
import threading
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

mistake = sys.argv[1] if len(sys.argv) > 1 else ""
culprit = int(sys.argv[2]) if len(sys.argv) > 2 else 1
device = torch.accelerator.current_accelerator()
dist.init_process_group("nccl")
rank = dist.get_rank()
torch.manual_seed(0)


def end_badly():
    if mistake == "raise":
        raise ValueError("a bad batch")
    if mistake == "exit":
        sys.exit(5)
    if mistake == "die":
        os.kill(os.getpid(), 11)
    if mistake == "silent":
        os._exit(0)
    if mistake == "hang":
        time.sleep(1000)
    if mistake == "native":
        ctypes.PyDLL(None).sleep(1000)
    if mistake == "lock":
        held = threading.Lock()
        held.acquire()
        held.acquire()
    while mistake == "spin":
        pass
    while mistake == "chatter":
        print("still here")
        time.sleep(0.01)
    if mistake == "fork":
        if os.fork() == 0:
            try:
                torch.zeros(1, device=device)  # refused in a forked process
            finally:
                os._exit(0)
        os.wait()


def main():
    layers = [nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)]
    net = DistributedDataParallel(nn.Sequential(*layers).to(device), bucket_cap_mb=0.01)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    total = torch.zeros(1, device=device)
    for _ in range(3):
        for last in (False, True):
            x, y = torch.randn(4, 32).to(device), torch.randint(0, 8, (4,)).to(device)
            if last:
                loss = nn.functional.cross_entropy(net(x), y)
                loss.backward()
            else:
                with net.no_sync():
                    nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
        if mistake == "unwaited":
            work = dist.all_reduce(total, async_op=True)
            total += loss.detach()  # FOUND unwaited
            work.wait()
        if mistake == "one_rank" and rank == 0:
            dist.all_reduce(total)  # FOUND one_rank
        if mistake == "shape":
            dist.all_reduce(torch.zeros(2 + rank, device=device))  # FOUND shape
        if rank == culprit:
            end_badly()
        print(f"loss {loss.item():.4f}")


main()
dist.destroy_process_group()
