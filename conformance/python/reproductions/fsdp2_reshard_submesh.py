"""torch 2.15.0: fully_shard(reshard_after_forward=2) on a dimension of a larger mesh hangs.

Eight processes, CPU, gloo: python fsdp2_reshard_submesh.py
"""

import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

_RANKS = 8
_SECONDS = 60


def train(rank, file, dims, after_forward, trained):
    """One step of a layer that is sharded over the dimension dp: of 8 x 1 or 4 x 2 ranks."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=_RANKS)
    mesh = init_device_mesh("cpu", dims, mesh_dim_names=("dp", "tp"))
    net = torch.nn.Linear(8, 8, bias=False)
    fully_shard(net, mesh=mesh["dp"], reshard_after_forward=after_forward)
    net(torch.ones(2, 8)).sum().backward()
    with trained.get_lock():
        trained.value += 1
    dist.barrier()
    os._exit(0)


def ranks_that_train(dims, after_forward):
    """How many of the ranks come through the step."""
    context, trained = mp.get_context("spawn"), mp.get_context("spawn").Value("i", 0)
    with tempfile.TemporaryDirectory() as folder:
        of_each = (folder + "/store", dims, after_forward, trained)
        ranks = [context.Process(target=train, args=(rank, *of_each)) for rank in range(_RANKS)]
        for one in ranks:
            one.start()
        end = time.monotonic() + _SECONDS
        for one in ranks:
            one.join(max(0, end - time.monotonic()))
            one.kill()
    return trained.value


def main():
    whole = True
    for dims, after_forward in (((8, 1), 2), ((4, 2), True), ((4, 2), 2)):
        trained = ranks_that_train(dims, after_forward)
        whole = whole and trained == _RANKS
        print(
            f"mesh (dp, tp) of {dims[0]} x {dims[1]}, reshard_after_forward={after_forward}: "
            f"{trained} of {_RANKS} ranks trained in {_SECONDS} s",
            flush=True,
        )
    return int(not whole)


if __name__ == "__main__":
    sys.exit(main())
