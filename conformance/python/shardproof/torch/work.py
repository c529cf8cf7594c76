"""What a collective answers: works whose wait() orders streams, as ProcessGroupNCCL's do."""

import torch
import torch.distributed as dist

from shardproof.torch.device import NAME, native


def future_on(stream, outputs):
    """A future that is complete and carries the stream's event: C++ code (DDP's reducer) waits for
    futures.
    """
    future = torch.futures.Future(
        devices=[torch.device(NAME, torch.accelerator.current_device_index())]
    )
    with torch.shardproof.stream(stream):
        future.set_result(outputs)
    return future


class Done(dist._Work):
    """A synchronous operation: it is in the current stream, there is nothing to wait for."""

    def __init__(self, stream, future, outputs):
        super().__init__()
        self._stream, self._future, self._outputs = stream, future, outputs

    def wait(self, timeout=None):
        return True

    synchronize = wait

    def is_completed(self):
        return self._stream.query()

    def is_success(self):
        return True

    def get_future(self):
        return self._future

    def result(self):
        return self._outputs


class StreamWork(Done):
    """An asynchronous operation on another stream."""

    def __init__(self, stream, future, outputs, kept):
        super().__init__(stream, future, outputs)
        self._event = stream.record_event()
        self._kept = kept
        self.blocking = False  # a barrier: the host waits

    def wait(self, timeout=None):
        current = torch.accelerator.current_stream()
        current.wait_event(self._event)
        self._kept = None
        if timeout or self.blocking:
            current.synchronize()
        return True

    synchronize = wait

    def is_completed(self):
        return self._event.query()

    def __del__(self):
        # Nobody waited: NCCL's watchdog keeps the tensors until the device is done with them.
        for tensor in self._kept or ():
            native.use_on_stream(tensor, self._stream.stream_id)
