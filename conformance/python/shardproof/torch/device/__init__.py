"""A recorded accelerator for PyTorch, the device type "shardproof".

Device memory is host memory and every operation runs at once, on the CPU, on the thread that issues
it; so results are right whatever streams say. What streams, events, frees and kernels say about
order is written as a trace (conformance/trace/FORMAT.md). Importing this module makes the device
known to torch; nothing is recorded until a trace is opened (shardproof.torch.trace).
"""

import os
import pathlib
import sysconfig

import torch

from shardproof.torch.device import build, module

NAME = "shardproof"

native = build.load()


def _folder(path):
    return str(pathlib.Path(path).resolve()) + os.sep


class _Engine:
    """Autograd's engine, which tells the recorder where a backward pass begins and ends."""

    def __init__(self, engine):
        self._engine = engine

    def __getattr__(self, name):
        return getattr(self._engine, name)

    def run_backward(self, *args, **keys):
        native.begin_backward()
        try:
            return self._engine.run_backward(*args, **keys)
        finally:
            native.end_backward()


class _Nothing(torch.autograd.Function):
    """A pass without a kernel and without memory."""

    @staticmethod
    def forward(ctx, tensor):
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx, grad):
        return None


def wait_for_backward():
    """Returns when autograd's thread of this device has let go of the last backward pass.

    backward() returns when the pass is through; the thread gives up the graph, the final callbacks and what those hold
    (FSDP2's hold the model) only then. It takes one pass after the other: when this one is through, it has.
    """
    root = _Nothing.apply(torch.empty(0, device=NAME, requires_grad=True))
    torch.autograd.backward([root], [torch.empty(0, device=NAME)])


def set_free_rule(rule):
    """When freed memory comes back: "pool" (default), at the next allocation on its stream, as
    PyTorch's pool for CUDA; or "order", as an operation of its stream. FSDP2 has a hook for devices
    of the second kind, which it does not use on CUDA.
    """
    native.set_free_rule(rule)
    if rule == "order":
        import torch.distributed.fsdp  # defines the hook

        @torch.library.impl("fsdp::record_grad_output_stream", "PrivateUse1")
        def _(buffer, stream_id, device_index, device_type):
            native.use_on_stream(buffer, stream_id)


def _install():
    native.install()
    torch.utils.rename_privateuse1_backend(NAME)
    torch._register_device_module(NAME, module.make(native))
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    # As it is imported: among links (Bazel's) the code's file names are those of the links.
    own = pathlib.Path(__file__).absolute().parents[2]
    native.set_library_folders(
        _folder(own),
        _folder(pathlib.Path(torch.__file__).parent),
        _folder(sysconfig.get_path("stdlib")),
        _folder(os.getcwd()),
    )
    # torch/autograd/graph.py asks for the engine by this name at each call.
    torch.autograd.Variable._execution_engine = _Engine(torch.autograd.Variable._execution_engine)


_install()
