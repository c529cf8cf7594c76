"""What the recorded device has not: one sentence, at once, instead of an error from far below."""

import importlib.abc
import importlib.machinery
import os
import sys

import torch

_REASONS = {
    "triton": "Triton kernels run on GPUs alone; give the script a path without them",
    "transformer_engine": "TransformerEngine needs CUDA; give the script another path",
    "apex": "apex needs CUDA's kernels; give the script a path without it",
    "flash_attn": "flash_attn needs CUDA's kernels; use scaled_dot_product_attention",
    "graph": "CUDA graphs are not supported on the recorded device; run the script without them",
    "compile": "torch.compile makes Triton kernels, which the recorded device cannot run; set "
    "TORCHDYNAMO_DISABLE=1 to run the model as it is written",
}


class Unsupported(NotImplementedError):
    """Raised where a script uses what the recorded device has not."""

    def __init__(self, what):
        super().__init__(f"shardproof: {_REASONS[what]}")


class _Refuser(importlib.abc.MetaPathFinder):
    """Libraries of CUDA kernels cannot be imported. An ImportError: most programs then go without
    them.
    """

    def find_spec(self, name, path=None, target=None):
        package = name.partition(".")[0]
        if package in ("transformer_engine", "apex", "flash_attn"):
            raise ImportError(f"shardproof: {_REASONS[package]}")
        return None


class _TritonLoader(importlib.abc.Loader):
    """Loads triton.runtime.jit, and lets launches of kernels raise."""

    def __init__(self, loader):
        self._loader = loader

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        self._loader.exec_module(module)
        if hasattr(module, "JITFunction"):
            module.JITFunction.run = refuse("triton")


class _TritonFinder(importlib.abc.MetaPathFinder):

    def find_spec(self, name, path=None, target=None):
        if name != "triton.runtime.jit":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None:
            spec.loader = _TritonLoader(spec.loader)
        return spec


def refuse(what):
    """A function that raises."""

    def call(*_, **__):
        raise Unsupported(what)

    return call


class RefusedGraph:
    """Stands for torch.cuda.CUDAGraph."""

    def __init__(self, *_, **__):
        raise Unsupported("graph")


def install():
    """For this process, until its end."""
    sys.meta_path[:0] = [_Refuser(), _TritonFinder()]
    if "triton.runtime.jit" in sys.modules:
        sys.modules["triton.runtime.jit"].JITFunction.run = refuse("triton")
    if os.environ.get("TORCHDYNAMO_DISABLE") != "1":
        torch.compile = refuse("compile")
    torch.cuda.CUDAGraph = torch.cuda.graph = RefusedGraph
    torch.cuda.make_graphed_callables = refuse("graph")
