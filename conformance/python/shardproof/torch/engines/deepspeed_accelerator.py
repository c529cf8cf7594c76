"""What DeepSpeed asks of a device (deepspeed/accelerator/abstract_accelerator.py, 0.19.8), answered
by the recorded one.

Answers that decide which path DeepSpeed takes are those of its CUDA_Accelerator: work is
asynchronous, streams and events exist. Operators that DeepSpeed would compile are not offered.
"""

import contextlib
import functools

import torch
from deepspeed.accelerator.abstract_accelerator import DeepSpeedAccelerator

from shardproof.torch.device import NAME

_DEVICE = getattr(torch, NAME)

# DeepSpeed's name of a function -> the device module's.
_FUNCTIONS = {
    "set_device": "set_device",
    "current_device": "current_device",
    "device_count": "device_count",
    "synchronize": "synchronize",
    "set_rng_state": "set_rng_state",
    "get_rng_state": "get_rng_state",
    "manual_seed": "manual_seed",
    "manual_seed_all": "manual_seed_all",
    "initial_seed": "initial_seed",
    "stream": "stream",
    "current_stream": "current_stream",
    "default_stream": "default_stream",
    "empty_cache": "empty_cache",
    "memory_allocated": "memory_allocated",
    "max_memory_allocated": "max_memory_allocated",
    "reset_max_memory_allocated": "reset_max_memory_allocated",
    "memory_cached": "memory_reserved",
    "max_memory_cached": "max_memory_reserved",
    "reset_max_memory_cached": "reset_peak_memory_stats",
    "memory_stats": "memory_stats",
    "reset_peak_memory_stats": "reset_peak_memory_stats",
    "memory_reserved": "memory_reserved",
    "max_memory_reserved": "max_memory_reserved",
    "is_available": "is_available",
}
# What has one answer.
_ANSWERS = {
    "is_synchronized_device": False,
    "use_host_timers": False,
    "resolves_data_dependency": False,
    "handles_memory_backpressure": False,
    "is_bf16_supported": True,
    "is_fp16_supported": True,
    "is_triton_supported": False,
    "supported_dtypes": [torch.float, torch.half, torch.bfloat16],
    "communication_backend_name": NAME,
    "range_push": None,
    "range_pop": None,
    "create_graph": None,
    "replay_graph": None,
    "op_builder_dir": "deepspeed.ops.op_builder.cpu",
    "export_envs": [],
    "visible_devices_envs": [],
    "set_visible_devices_envs": None,
    "get_compile_backend": "inductor",
    "set_compile_backend": None,
}
_TYPES = {
    "BFloat16Tensor": torch.bfloat16,
    "ByteTensor": torch.uint8,
    "DoubleTensor": torch.double,
    "FloatTensor": torch.float,
    "HalfTensor": torch.half,
    "IntTensor": torch.int,
    "LongTensor": torch.long,
}


def _function(name):
    return lambda self, *arguments, **keys: getattr(_DEVICE, name)(*arguments, **keys)


def _answer(value):
    return lambda self, *_, **__: value


def _tensor_type(dtype):
    return property(lambda self: functools.partial(torch.tensor, dtype=dtype, device=NAME))


_TABLES = {
    **{theirs: _function(ours) for theirs, ours in _FUNCTIONS.items()},
    **{name: _answer(value) for name, value in _ANSWERS.items()},
    **{name: _tensor_type(dtype) for name, dtype in _TYPES.items()},
}


class _Tables(DeepSpeedAccelerator):
    """The tables' answers as methods."""

    vars().update(_TABLES)


class RecordedAccelerator(_Tables):
    def __init__(self):
        super().__init__()
        self._name, self._communication_backend_name = NAME, NAME

    Stream = property(lambda self: _DEVICE.Stream)
    Event = property(lambda self: _DEVICE.Event)

    def device_name(self, device_index=None):
        return NAME if device_index is None else f"{NAME}:{device_index}"

    def device(self, device_index=None):
        return torch.device(NAME, device_index or 0)

    def current_device_name(self):
        return f"{NAME}:{self.current_device()}"

    def random(self):
        return torch.random

    def default_generator(self, device_index):
        return _DEVICE.default_generators[0]

    def total_memory(self, device_index=None):
        return _DEVICE.mem_get_info()[1]

    def available_memory(self, device_index=None):
        return _DEVICE.mem_get_info()[0]

    def lazy_call(self, callback):
        return callback()

    def capture_to_graph(self, graph, pool=None, stream=None):
        return contextlib.nullcontext()

    def on_accelerator(self, tensor):
        return tensor.device.type == NAME

    def get_op_builder(self, class_name):
        """None, as a CUDA machine says of what it has no operator for."""
        return None

    create_op_builder = get_op_builder

    def build_extension(self):
        raise NotImplementedError("operators of DeepSpeed are not built for the recorded device")
