"""What the reproductions of megatron-fsdp 0.6.1 share: the package on CPUs, with gloo. Streams and
events do nothing.

torch.cuda is replaced because the package names it throughout, and collectives run one by one, as
gloo cannot coalesce. What is shown is what the package computes and in which order it asks for
it; no stream is needed for that.
"""

import contextlib
import logging
import os
import sys
import types

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


class _Stream:
    def wait_stream(self, other):
        pass

    def record_event(self):
        return types.SimpleNamespace(wait=lambda: None)


class _Done:
    def wait(self):
        pass


def _reduced(tensor, op, group):
    """A copy, reduced; gloo has no pre-multiplied sum."""
    total = tensor * op if isinstance(op, float) else tensor.clone()
    _all_reduce(total, group=group)
    return total


_all_reduce = dist.all_reduce


def _collectives():
    def all_reduce(tensor, op=None, group=None, **_):
        tensor.copy_(_reduced(tensor, op, group))
        return _Done()

    def reduce_scatter_tensor(output, input, op=None, group=None, **_):
        count = output.numel()
        first = dist.get_rank(group) * count
        output.copy_(_reduced(input, op, group)[first : first + count])
        return _Done()

    gather = dist.all_gather_into_tensor

    def all_gather_into_tensor(output_tensor, input_tensor, group=None, **_):
        gather(output_tensor, input_tensor.clone(), group=group)
        return _Done()

    dist.all_gather_into_tensor = all_gather_into_tensor
    dist.all_reduce, dist.reduce_scatter_tensor = all_reduce, reduce_scatter_tensor
    dist._make_nccl_premul_sum = lambda factor: factor  # what op is, above


@contextlib.contextmanager
def _one_by_one(*_, **__):
    yield _Done()


def prepare():
    """Before megatron_fsdp is imported."""
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    sys.modules["megatron"] = None  # the DistributedDataParallelConfig of megatron-core 0.16.1
    cuda = torch.cuda
    cuda.Stream, cuda.current_stream = _Stream, lambda *_: _Stream()
    cuda.stream = lambda _: contextlib.nullcontext()
    cuda.current_device = lambda: 0
    cuda.synchronize = cuda.empty_cache = lambda *_: None
    torch.Tensor.cuda = lambda tensor, *_, **__: tensor
    import megatron_fsdp.param_and_grad_buffer as buffers

    buffers._coalescing_manager = _one_by_one
    _collectives()
    return buffers


def _rank(rank, world, port, work, arguments):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    prepare()
    dist.init_process_group("gloo", rank=rank, world_size=world)
    work(rank, world, *arguments)
    dist.destroy_process_group()


def run(world, work, *arguments, port=29811):
    """work(rank, world, *arguments) in a process a rank."""
    mp.spawn(_rank, (world, port, work, arguments), nprocs=world)


def wrapped(model, unit, optimizer=None, **options):
    """fully_shard over all ranks; answers the model, or model and optimizer."""
    from megatron_fsdp.fully_shard import fully_shard_model, fully_shard_optimizer
    from torch.distributed.device_mesh import init_device_mesh

    made = fully_shard_model(
        model,
        device_mesh=init_device_mesh(
            "cpu", (dist.get_world_size(), 1), mesh_dim_names=("dp", "tp")
        ),
        dp_shard_dim="dp",
        tp_dim="tp",
        fsdp_unit_modules=[unit],
        device=torch.device("cpu"),
        preproc_state_dict_for_dcp_ckpt=False,
        **options,
    )
    if optimizer is None:
        return made
    return made, fully_shard_optimizer(
        optimizer(made.parameters()), preproc_state_dict_for_dcp_ckpt=False
    )
