"""One rank of a case: the case's script of entry calls on an engine, recorded, with its results published."""

import contextlib
import gc

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

from shardproof import model as api
from shardproof.torch.declaration import as_training
from shardproof.torch import names, process_group, trace, transfers
from shardproof.torch.run.marks import Marks
from shardproof.torch.device import NAME, native, wait_for_backward
from shardproof.torch.fixture.anchor import Anchor
from shardproof.torch.fixture.case import Case, Rejected, Unsupported
from shardproof.torch.fixture.modules import Fixture
from shardproof.torch.fixture.nodes import NUMBERS, Pass, digest, hexadecimal
from shardproof.torch.fixture.optimizers import clip_scale, gradient_norm

PROVIDES = ["groups", "collectives", "sync", "memory", "work", "digests", "results", "calls"]
# What travels in training; a driver that sends something else says so around it.
PURPOSES = {
    "all_gather": "param_full",
    "reduce_scatter": "grad",
    "all_reduce": "grad",
    "send": "pipeline",
    "recv": "pipeline",
}
CALLS = {
    "c": "create",
    "d": "destroy",
    "t": "train_step",
    "e": "eval_step",
    "s": "save",
    "l": "load",
}


def shard_of(tensor, known=None):
    """(first element in the logical tensor, the elements that this rank holds), or None if it holds none.

    known: where a shard of that shape begins, by mesh and placements; asked of torch once.
    """
    if not isinstance(tensor, DTensor):
        return 0, tensor
    local = tensor.to_local()
    if not local.numel():
        return None
    known = {} if known is None else known
    kind = tensor.shape, tensor.device_mesh, tensor.placements
    if kind not in known:
        _, offsets = compute_local_shape_and_global_offset(*kind)
        first, stride = 0, 1
        for size, offset in zip(reversed(tensor.shape), reversed(offsets)):
            first += offset * stride
            stride *= size
        known[kind] = first
    return known[kind], local


class Rank:
    """Plays the script of one rank. Exceptions of the engine pass through: the trace then ends as that of a rank that died of it."""

    def __init__(self, engine, facts, rank, store, marks):
        self.engine, self.case, self.store = engine, Case(facts, rank), store
        self.marks = marks
        self.calls = 0
        self.generation = 0  # of process groups: destroy and create again
        self.training = self.fixture = None
        self.shards = {}  # shard_of()'s
        self.anchor = self.anchored = None  # of bounded updates; as it was when the engine saved

    def play(self):
        """Carries out the script; answers when the engine declined the case too."""
        script = list(self.case.script)
        if not script or script[-1][0] != "d":
            script.append(["d", -1])
        for letter, step in script:
            lacks = letter in "sl" and getattr(self.training, CALLS[letter]) is None
            if lacks:  # a trace that goes on to destroy says that the engine has no such call
                letter, step = "d", -1
            if not self._enter(letter, step, self._lacks() if lacks else None) or lacks:
                return

    def _lacks(self):
        calls = [f"{name}()" for name in ("save", "load") if getattr(self.training, name) is None]
        return f"the engine gives no {' and '.join(calls)}"

    def _enter(self, letter, step, explain=None):
        """One entry call. False: the engine declined, nothing follows. explain: said within it."""
        name = CALLS[letter]
        trace.entry_call(self.calls)
        trace.event("call_begin", x=name, id=step if step >= 0 else None)
        if explain:
            trace.event("explain", x=explain)
        answer = "ok"
        try:
            {
                "c": self._create,
                "d": self._destroy,
                "t": self._train,
                "e": self._evaluate,
                "s": self._save,
                "l": self._load,
            }[letter](step)
        except Unsupported as why:
            trace.event("explain", x=str(why))
            answer = "unsupported"
        except Rejected as why:
            trace.event("explain", x=str(why))
            answer = "rejected"
        trace.event(
            "call_end",
            x=name,
            id=step if step >= 0 else None,
            st=None if answer == "ok" else answer,
        )
        trace.entry_call(-1)
        self.calls += 1
        return answer == "ok"

    # --- create and destroy

    def _create(self, _step):
        self.engine.read_knobs(self.case)
        self.engine.refuse(self.case)
        self.case.reject_what_no_loop_can_do()
        dist.init_process_group(
            NAME,
            rank=self.case.rank,
            world_size=self.case.world,
            store=dist.FileStore(f"{self.store}.{self.generation}", self.case.world),
        )
        self.generation += 1
        model = api.Model(self.case.id, 0, self.case.rank)
        self.fixture = Fixture(model)
        if "moe.experts" in self.case.traits:
            self.fixture.exchange_group = self.case.group("ep")
        built = self.engine.build(self.case, self.fixture, torch.device(NAME, 0))
        self.training = as_training(built)
        if self.engine.bounded_updates:
            self.anchor = Anchor(self.case, self.training.optimizer)
        self.marks.follow(self.fixture)
        self._publish_all("param")

    def _destroy(self, _step):
        torch.accelerator.synchronize()
        if self.training is not None and self.training.close:
            self.training.close()
        self.training = self.fixture = self.anchor = None
        self.shards = {}
        self.marks.follow(None)
        self.case.forget_groups()
        wait_for_backward()
        gc.collect()
        if dist.is_initialized():
            dist.destroy_process_group()
        gc.collect()
        torch.accelerator.synchronize()
        native.drain_pools()
        # torch.cuda's streams are of pools that live as long as the process (c10/cuda/CUDAStream.cpp): an engine
        # cannot give one back, so none is a leak. The next engine's streams are new ones.
        native.destroy_streams()

    # --- steps

    def _sample(self, microbatch):
        model = self.fixture.model
        return microbatch * model.data_ranks + model.data_rank

    def _passes(self, step):
        return [Pass(step, self._sample(i), i) for i in range(self.case.microbatches)]

    def _marked(self, passes):
        """One after the other: hooks that are announced meanwhile are of that microbatch."""
        for run in passes:
            self.marks.microbatch = run.microbatch
            yield run
        self.marks.microbatch = None

    def _publish_losses(self, losses):
        for index, loss in losses.items():
            self._publish("loss", index, 0, loss)

    def _forward_backward(self, step):
        if self.training.step:
            self._publish_losses(self.training.step(self._passes(step)))
            return
        for run in self._marked(self._passes(step)):
            with self.training.around(run.microbatch, run.microbatch == self.case.microbatches - 1):
                loss = self.training.model(run)
                self._publish("loss", run.microbatch, 0, loss)
                loss.backward()
            del loss

    def _train(self, step):
        count = self.case.microbatches
        self._forward_backward(step)
        if count > 1 and not self.training.averages:
            with torch.no_grad():
                for param in self.fixture.parameters():
                    if param.grad is not None:
                        _local(param.grad).div_(count)
        self._publish_all("grad")
        scale = self._statistics()
        if self.anchor:
            self.anchor.before_step(scale)
        else:
            self.training.optimizer.scale = scale
        self.training.optimizer.step()
        self.training.optimizer.zero_grad(set_to_none=True)
        self._publish_all("param")
        if self.anchor:
            self.anchor.after_step()

    def _statistics(self):
        """Publishes the gradient's norm; by how much it is scaled down."""
        most = float(self.case.value("clip_grad"))
        if not most and self.case.value("grad_norm") == "0":
            return 1.0
        norm = gradient_norm(self.fixture.parameters(), self.training.shard_group)
        self._publish("grad_norm", 0, 0, norm)
        return clip_scale(norm.item(), most) if most else 1.0

    def _evaluate(self, step):
        with torch.no_grad():
            if self.training.evaluate:
                self._publish_losses(self.training.evaluate(self._passes(step)))
                return
            for run in self._marked(self._passes(step)):
                self._publish("loss", run.microbatch, 0, self.training.model(run))

    def _save(self, _step):
        self.training.save(self.store + ".saved")
        self.anchored = self.anchor and self.anchor.saved()

    def _load(self, _step):
        self.training.load(self.store + ".saved")
        if self.anchor:
            self.anchor.load(self.anchored)
        self._publish_all("param")

    # --- results

    @torch.no_grad()
    def _publish_all(self, result):
        """Every parameter's value or gradient, as far as this rank holds it."""
        shard = self.training.shard or (lambda i, tensor: shard_of(tensor, self.shards))
        for i, row in enumerate(self.fixture.model.params):
            if result == "grad" and row[2] & api.FROZEN:
                continue
            if result == "grad" and self.training.gradient:
                held = self.training.gradient(i)
            else:
                param = self.fixture.parameter(i)
                tensor = param if result == "param" else param.grad
                if tensor is None:  # unused in this step: its gradient is zero
                    tensor = torch.zeros_like(param)
                held = shard(i, tensor)
            if held is not None and held[1].numel():
                self._publish(result, i, *held)

    def _publish(self, result, i, first, tensor):
        tensor = tensor.detach()
        host = trace.host_alias(tensor).contiguous()
        trace.event(
            "publish",
            res=result,
            s=trace.current_stream(),
            id=i,
            o=first,
            k=tensor.numel(),
            ty=api.DTYPE_NAMES[NUMBERS[tensor.dtype]],
            d=hexadecimal(digest(host, first)),
            v=trace.values(host),
            r=trace.ranges((tensor, api.READ)),
        )


def _local(tensor):
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def play(engine, facts, rank, folder):
    """A whole rank, with its trace in folder."""
    torch.set_num_threads(1)
    native.set_device_count(facts["world"])
    transfers.expect_supervisor()
    names.install()
    process_group.purposes.update(PURPOSES)
    provides = PROVIDES + (["marks"] if engine.marks else [])
    trace.open_trace(
        folder, rank, facts["world"], facts["id"], provides, engine.bounded_updates
    )
    marks = Marks(engine.marks or {})
    marks.install()
    try:
        Rank(engine, facts, rank, f"{folder}/store", marks).play()
    except BaseException as error:
        trace.close_trace("died", f"{type(error).__name__}: {error}")
        raise
    marks.tell(folder, rank)
    trace.close_trace()
    native.wait_for_all()
