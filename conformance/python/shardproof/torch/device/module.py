"""What torch.shardproof holds: the names that torch and programs expect of a device's module (as
torch.cuda has).
"""

import types

import torch

NAME = "shardproof"
MEMORY_BYTES = 80 << 30  # what the device claims to have


class Properties:
    """What get_device_properties answers. No program should depend on it; the figures are those of
    an H100.
    """

    name = "Shardproof recorded device"
    major, minor = 9, 0
    total_memory = MEMORY_BYTES
    multi_processor_count = 132
    warp_size = 32
    max_threads_per_multi_processor = 2048
    gcnArchName = ""
    is_integrated = False


class Stream(torch.Stream):

    def __new__(cls, device=None, priority=0, **keys):
        return super().__new__(cls, device=_device(device), priority=priority, **keys)


class Event(torch.Event):

    def __new__(cls, enable_timing=False, blocking=False, interprocess=False, **_):
        if interprocess:
            raise NotImplementedError("shardproof: events between processes are not supported")
        return super().__new__(cls, device=NAME, enable_timing=enable_timing)


class StreamContext:
    """with torch.shardproof.stream(s): ..."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        self._before = torch.accelerator.current_stream()
        if self.stream is not None:
            torch.accelerator.set_stream(self.stream)
        return self.stream

    def __exit__(self, *_):
        torch.accelerator.set_stream(self._before)


class DeviceContext:
    """with torch.shardproof.device(0): ..."""

    def __init__(self, device):
        self.index = _index(device)

    def __enter__(self):
        self._before = torch.accelerator.current_device_index()
        torch.accelerator.set_device_index(self.index)

    def __exit__(self, *_):
        torch.accelerator.set_device_index(self._before)


def _index(device):
    if device is None:
        return torch.accelerator.current_device_index()
    if isinstance(device, int):
        return device if device >= 0 else torch.accelerator.current_device_index()
    device = torch.device(device)
    return torch.accelerator.current_device_index() if device.index is None else device.index


def _device(device=None):
    return torch.device(NAME, _index(device))


def _random(module, native):

    def manual_seed(seed):
        native.manual_seed(int(seed))

    def set_rng_state(state, device=None):
        native.set_rng_state(state.cpu())

    module.manual_seed = module.manual_seed_all = manual_seed
    module.seed = module.seed_all = lambda: native.manual_seed(torch.initial_seed())
    module.initial_seed = native.initial_seed
    module.get_rng_state = lambda device=None: native.get_rng_state()
    module.get_rng_state_all = lambda: [native.get_rng_state()]
    module.set_rng_state = set_rng_state
    module.set_rng_state_all = lambda states: set_rng_state(states[0])
    module.default_generators = (native.default_generator(),)


def _memory(module, native):

    def figures(device=None):
        allocated, peak, _ = native.memory()
        return {
            "allocated_bytes.all.current": allocated,
            "allocated_bytes.all.peak": peak,
            "reserved_bytes.all.current": allocated,
            "reserved_bytes.all.peak": peak,
            "num_ooms": 0,
            "num_alloc_retries": 0,
        }

    module.memory_allocated = module.memory_reserved = lambda device=None: native.memory()[0]
    module.max_memory_allocated = module.max_memory_reserved = lambda device=None: native.memory()[
        1
    ]
    module.memory_stats = figures
    module.reset_peak_memory_stats = module.reset_max_memory_allocated = (
        lambda device=None: native.reset_peak()
    )
    module.mem_get_info = lambda device=None: (MEMORY_BYTES - native.memory()[0], MEMORY_BYTES)
    module.empty_cache = lambda: native.drain_pools()
    module.set_per_process_memory_fraction = lambda fraction, device=None: None


def _streams(module):

    def set_stream(stream):
        if stream is not None:
            torch.accelerator.set_stream(stream)

    def default_stream(device=None):
        return torch.Stream(
            stream_id=0,
            device_index=_index(device),
            device_type=torch.accelerator.current_stream().device_type,
        )

    module.Stream, module.Event, module.StreamContext = Stream, Event, StreamContext
    module.stream = StreamContext
    module.current_stream = lambda device=None: torch.accelerator.current_stream(_device(device))
    module.default_stream = default_stream
    module.set_stream = set_stream
    module.synchronize = lambda device=None: torch.accelerator.synchronize(_device(device))


def make(native):
    """The module torch.shardproof over the extension."""
    module = types.ModuleType(f"torch.{NAME}")
    _streams(module)
    _memory(module, native)
    _random(module, native)
    module.device = DeviceContext
    module.is_available = module.is_initialized = lambda: True
    module.init = module._lazy_init = lambda: None
    module._is_in_bad_fork = lambda: False
    module.device_count = native.device_count
    module.current_device = torch.accelerator.current_device_index
    module.set_device = lambda device: torch.accelerator.set_device_index(_index(device))
    module.get_device_properties = lambda device=None: Properties()
    module.get_device_name = lambda device=None: Properties.name
    module.get_device_capability = lambda device=None: (Properties.major, Properties.minor)
    module.get_amp_supported_dtype = lambda: [torch.bfloat16, torch.float16]
    module.is_bf16_supported = lambda *_, **__: True
    module.ipc_collect = lambda: None
    return module
