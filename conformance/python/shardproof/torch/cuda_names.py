"""torch.cuda's names, answered by the recorded device, for scripts that say "cuda".

README.md lists what is answered. A name of torch.cuda that is not raises what torch raises on a
machine without a GPU.
"""

import contextlib
import functools

import torch
import torch.distributed as dist

from shardproof.torch.device import NAME

# Names of torch.shardproof that torch.cuda has too, with the same meaning.
SAME = (
    "Stream Event StreamContext stream current_stream default_stream set_stream synchronize "
    "is_available is_initialized init _lazy_init device_count current_device set_device device "
    "get_device_properties get_device_name get_device_capability is_bf16_supported "
    "memory_allocated memory_reserved max_memory_allocated max_memory_reserved memory_stats "
    "reset_peak_memory_stats reset_max_memory_allocated mem_get_info empty_cache ipc_collect "
    "set_per_process_memory_fraction manual_seed manual_seed_all seed seed_all initial_seed "
    "get_rng_state get_rng_state_all set_rng_state set_rng_state_all default_generators"
).split()

_device_class = torch.device


def _here(device):
    """The device that a script names, here: "cuda:1" is this rank's device."""
    if isinstance(device, str) and device.partition(":")[0] == "cuda":
        return NAME + device[4:]
    if isinstance(device, _device_class) and device.type == "cuda":
        return (
            _device_class(NAME, device.index) if device.index is not None else _device_class(NAME)
        )
    return device


class _DeviceType(type):

    def __instancecheck__(cls, value):
        return isinstance(value, _device_class)


class Device(metaclass=_DeviceType):
    """Stands for torch.device: "cuda" is the recorded device."""

    def __new__(cls, *args, **keys):
        keys = {key: _here(value) for key, value in keys.items()}
        return _device_class(*map(_here, args), **keys)


class _CudaMeansHere(torch.overrides.TorchFunctionMode):
    """Devices in the arguments of torch's functions: torch.empty(2, device="cuda"),
    tensor.to("cuda").
    """

    def __torch_function__(self, function, types, args=(), kwargs=None):
        keys = kwargs or {}
        if "device" in keys:
            keys = {**keys, "device": _here(keys["device"])}
        if any(type(arg) in (str, _device_class) for arg in args):
            args = tuple(map(_here, args))
        return function(*args, **keys)


class _Marks:
    """Stands for torch.cuda.nvtx: nobody reads its ranges."""

    @staticmethod
    def range_push(message):
        return 0

    @staticmethod
    def range_pop():
        return 0

    @staticmethod
    def mark(message):
        return None

    range_start = range_push
    range_end = mark


class MemPool:
    """Stands for torch.cuda.MemPool: a pool of its own changes no order, so all memory is of one.
    """

    def __init__(self, *_, **__):
        self.id = (0, 0)

    use_count = snapshot = lambda self: []


@contextlib.contextmanager
def _use_mem_pool(pool, device=None):
    yield


def _tensors():
    """Tensor.cuda, Module.cuda and what they say about themselves."""

    def to_device(tensor, device=None, non_blocking=False, memory_format=torch.preserve_format):
        index = torch.accelerator.current_device_index() if device is None else device
        place = _device_class(NAME, index) if isinstance(index, int) else _here(index)
        return tensor.to(place, non_blocking=non_blocking, memory_format=memory_format)

    def module_to_device(module, device=None):
        return module._apply(lambda tensor: to_device(tensor, device))

    torch.Tensor.cuda, torch.nn.Module.cuda = to_device, module_to_device
    torch.Tensor.is_cuda = property(lambda tensor: tensor.device.type == NAME)
    type_of = torch.Tensor.type

    def named_type(tensor, *args, **keys):  # "torch.cuda.FloatTensor": megatron-core compares it
        answer = type_of(tensor, *args, **keys)
        if isinstance(answer, str):
            answer = answer.replace(f"torch.{NAME}.", "torch.cuda.")
        return answer

    torch.Tensor.type = named_type


def _autocast():
    init = torch.autocast.__init__

    @functools.wraps(init)
    def autocast(self, device_type, *args, **keys):
        init(self, NAME if device_type == "cuda" else device_type, *args, **keys)

    torch.autocast.__init__ = autocast


def _distributed():
    get_backend = dist.get_backend

    @functools.wraps(get_backend)
    def nccl(group=None):
        name = get_backend(group)
        return "nccl" if name == NAME else name

    dist.get_backend = nccl
    dist.is_nccl_available = lambda: True


def install():
    """For this process, until its end."""
    here = torch.get_device_module(NAME)
    for name in SAME:
        setattr(torch.cuda, name, getattr(here, name))
    torch.cuda.is_current_stream_capturing = lambda: False
    torch.cuda.nvtx = _Marks
    torch.cuda.MemPool, torch.cuda.use_mem_pool = MemPool, _use_mem_pool
    _tensors()
    _autocast()
    _distributed()
    torch.device = Device
    _CudaMeansHere().__enter__()
