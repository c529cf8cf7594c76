"""megatron-fsdp 0.6.1, ZeRO-3: backward gathers the layer that it needs first last; from step 1
on, forward prefetches less.

One process, CPU, gloo: python megatron_fsdp_gather_order.py [--cured]
"""

import sys

import torch
import torch.distributed as dist
from megatron_fsdp_cpu import run, wrapped
from torch import nn

CURED = "--cured" in sys.argv


class Layer(nn.Linear):
    pass


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Linear(4, 4, bias=False)
        self.layers = nn.ModuleList(Layer(4, 4, bias=False) for _ in range(3))
        self.head = nn.Linear(4, 4, bias=False)

    def forward(self, x):
        x = self.embedding(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x).sum()


def _reverse_in_backward(buffers):
    """The two lines that cure the order: buckets are issued in the order of the pass."""
    import inspect
    import textwrap

    pipeline = buffers.AllGatherPipeline
    source = textwrap.dedent(inspect.getsource(pipeline.all_gather_params))
    before = "    # Divide buckets into aggregate groups."
    patch = "    if prefetch_order == PrefetchOrder.BACKWARD_PASS_ORDER:\n"
    patch += "        ag_buckets.reverse()\n"
    assert before in source
    made = {}
    exec(source[source.index("def ") :].replace(before, patch + before), vars(buffers), made)
    pipeline.all_gather_params = torch.no_grad()(made["all_gather_params"])


def show(_rank, _world, wrong, cured):
    import megatron_fsdp.param_and_grad_buffer as buffers

    if cured:
        _reverse_in_backward(buffers)
    pipeline, events = buffers.AllGatherPipeline, []
    gather, wait = pipeline.async_bucket_gather, pipeline.all_gather_params

    def names(self, bucket):
        return self.buffer.param_to_name[self.buffer.parameter_groups[bucket].params[0]]

    def issued(self, bucket, bwd):
        if self.bucket_status[self.get_bucket_key(bucket, bwd)] in (
            buffers.BucketStatus.EMPTY, buffers.BucketStatus.PRESERVED
        ):
            events[-1][2].append(names(self, bucket).replace(".weight", ""))
        return gather(self, bucket, bwd)

    def needed(self, params, *arguments, **keys):
        events.append((bool(keys.get("bwd")), [self.buffer.param_to_name[p] for p in params], []))
        return wait(self, params, *arguments, **keys)

    pipeline.async_bucket_gather, pipeline.all_gather_params = issued, needed
    model, optimizer = wrapped(Model(), Layer, lambda p: torch.optim.SGD(p, lr=0.1, foreach=False))
    # One layer ahead; the package's own limit is 500 million elements.
    model.suggested_AG_prefetch_size = 16
    for step in range(2):
        events.clear()
        loss = model(torch.ones(1, 4))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        for backward, params, buckets in events:
            if not buckets:
                continue
            late = backward and params[0].replace(".weight", "") in buckets[1:]
            wrong.value += late
            direction = "backward" if backward else "forward"
            print(
                f"step {step}, {direction} needs {params[0]}: gathers {', '.join(buckets)}"
                + ("  NOT FIRST" if late else ""),
                flush=True,
            )
    dist.barrier()


def main():
    wrong = torch.multiprocessing.get_context("spawn").Value("i", 0)
    run(1, show, wrong, CURED, port=29813)
    return int(wrong.value > 0)


if __name__ == "__main__":
    sys.exit(main())
