"""How does a training engine in PyTorch say what it implements, and how is it built for a case?

It decorates build(case, model, device) with engine(); README.md of conformance/python has an example.

A knob that is not declared is not read: cases that set it are unsupported. A value that is not among those declared
is unsupported too. microbatches and lr are read for every engine.
"""

import contextlib
import dataclasses
import importlib
import importlib.metadata
import importlib.util
import pathlib
import traceback

from shardproof.torch.fixture.case import Unsupported

ALWAYS = {"microbatches": int, "lr": float}
# spf_hook of conformance/abi/shardproof.h, from 1 on.
HOOKS = (
    "FORWARD",
    "PRE_FORWARD",
    "REGISTER_BACKWARD",
    "POST_FORWARD",
    "ROOT_PRE_BACKWARD",
    "PRE_BACKWARD",
    "POST_BACKWARD",
    "ACCUMULATE",
    "ROOT_POST_BACKWARD",
    "FINISH_GRAD_SYNC",
    "INSTALL_WEIGHTS",
    "START_PARAM_SYNC",
    "ZERO_GRAD",
    "OPTIMIZER_STEP",
)
TAKES = {"experts": ["0"], "moe.experts": ["0"]}  # unless an engine says more


@dataclasses.dataclass
class Training:
    """What build returns; a pair (model, optimizer) stands for a Training of them."""

    model: object  # called with a pass, gives the loss
    optimizer: object
    # step(passes) -> {microbatch: loss} runs forward and backward of all microbatches, evaluate(passes) forward alone:
    # an engine with a schedule of its own. Losses are those that this rank has. model is not called then.
    step: object = None
    evaluate: object = None
    # microbatch(index, last) is entered around forward and backward of each: no_sync and the like.
    microbatch: object = None
    # shard(parameter, tensor) -> (first element in the logical tensor, the elements that are held here), or None.
    shard: object = None
    # The process group over which shards of one parameter lie; None: every rank holds whole parameters.
    shard_group: object = None
    # gradient(i) -> (first element, elements held here) of parameter i, or None; where param.grad is not where it is.
    gradient: object = None
    averages: bool = False  # the engine itself divides gradients by the number of microbatches
    save: object = None  # save(folder), load(folder): checkpoints; None: unsupported
    load: object = None
    close: object = None  # before the process groups are destroyed

    def around(self, index, last):
        return self.microbatch(index, last) if self.microbatch else contextlib.nullcontext()


def as_training(built):
    """What build returned. TypeError: it is none of what it may return."""
    if isinstance(built, Training):
        return built
    if isinstance(built, tuple) and len(built) == 2:
        return Training(*built)
    what = f"{len(built)} values" if isinstance(built, tuple) else f"a {type(built).__name__}"
    raise TypeError(f"build must return model, optimizer or a shardproof.torch.Training, and returned {what}")


@dataclasses.dataclass
class Engine:
    build: object
    knobs: dict  # name -> list of values, or int, float, str: any value of that type
    name: str
    marks: dict = None  # labels of torch.profiler.record_function -> hook (run/marks.py)
    traits: object = (
        None  # traits(case): raises Unsupported where the model or the groups are beyond the engine
    )
    # Of traits and axes (`shardproof list values`) those values that it takes; not named: all.
    takes: dict = dataclasses.field(default_factory=lambda: dict(TAKES))
    # Pairs: values that it does not take together, by knob, trait or axis; why.
    without: list = dataclasses.field(default_factory=list)
    # Ids that profiles run besides: combinations of knobs that no space of the suite has.
    cases: list = dataclasses.field(default_factory=list)
    # Its optimizer works on param.grad of the model's parameters and rounds its own way, as torch.optim's do: what a
    # step makes of parameters is judged within a bound, all else bit for bit (fixture/anchor.py).
    bounded_updates: bool = False

    def refuse(self, case):
        """Raises Unsupported, before anything is made, if the case asks for what the engine does not declare."""
        unknown = sorted(set(case.asked["knobs"]) - set(self.knobs))
        if unknown:
            raise Unsupported(f"{self.name} does not read {', '.join(unknown)}")
        for name, allowed in self.knobs.items():
            value = case.value(name)  # None: a knob without a default that is not set
            if value is not None and not _allowed(value, allowed):
                raise Unsupported(f"{self.name} does not implement {name} = {value}")
        for name, allowed in self.takes.items():
            if case.traits.get(name, allowed[0]) not in allowed:
                raise Unsupported(f"{self.name} takes no case with {name} = {case.traits[name]}")
        for combination, why in self.without:
            if all(_asked(case, name) in values for name, values in combination.items()):
                raise Unsupported(why)
        if self.traits:
            self.traits(case)

    def allows(self, name, value):
        """Is that value declared?"""
        return name in self.knobs and _allowed(value, self.knobs[name])

    def read_knobs(self, case):
        for name in self.knobs:
            if case.value(name) is not None:
                case.knob(name)


def _asked(case, name):
    """The value of a knob, a trait or an axis; None: a trait's default."""
    return case.traits.get(name, case.value(name))


def _allowed(value, allowed):
    if isinstance(allowed, type):
        try:
            allowed(value)
            return True
        except ValueError:
            return False
    return value in [str(v) for v in allowed]


def _texts(values):
    """As the suite writes them: takes={"tied": [0]} is the same as ["0"]. What is no list run/misspelt.py refuses."""
    return {
        name: [str(value) for value in some] if isinstance(some, (list, tuple)) else some
        for name, some in values.items()
    }


def engine(
    knobs, marks=None, traits=None, takes=None, without=(), cases=(), bounded_updates=False
):
    """Decorates build(case, model, device)."""
    if not isinstance(knobs, dict):
        raise TypeError(f"knobs is {knobs!r}; wanted a dict, name to values")
    takes = {**TAKES, **_texts(takes or {})}
    without = [(_texts(combination), why) for combination, why in without]
    for name, allowed in knobs.items():
        if not isinstance(allowed, (list, tuple, type)):
            raise TypeError(f"knobs[{name!r}]: a list of values, or int, float or str")
    for label, hook in (marks or {}).items():
        if hook not in HOOKS:
            raise TypeError(f"marks[{label!r}]: {hook!r} is no hook: {', '.join(HOOKS)}")

    def decorate(build):
        return Engine(
            build,
            {**ALWAYS, **knobs},
            build.__name__,
            marks,
            traits,
            takes,
            without,
            list(cases),
            bounded_updates,
        )

    return decorate


BUILTIN = (
    "ddp",
    "fsdp2",
    "deepspeed",
    "zero_redundancy",
    "megatron_fsdp",
    "megatron_ddp",
    "megatron_layer_wise",
    "megatron_1f1b",
    "pipelining",
)


# Engines of packages beside torch: what pip installs, in the version that they were judged in.
PACKAGES = {
    "deepspeed": ("deepspeed", "0.19.8"),
    "megatron_fsdp": ("megatron-fsdp", "0.6.1"),
    "megatron_ddp": ("megatron-core", "0.16.1"),
    "megatron_layer_wise": ("megatron-core", "0.16.1"),
    "megatron_1f1b": ("megatron-core", "0.16.1"),
}


def need(name):
    """ValueError if the package of that engine is absent, or is another version."""
    if name not in PACKAGES:
        return
    package, wanted = PACKAGES[name]
    try:
        found = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        found = None
    if found != wanted:
        raise ValueError(
            f"engine {name} needs {package} {wanted}, and "
            + (f"{found} is installed" if found else "it is not installed")
            + f": pip install {package}=={wanted}"
        )


def find(name):
    """The engine of that name, or the one that a file.py defines. ValueError says what is wrong with it."""
    if name in BUILTIN:
        need(name)
        return importlib.import_module(f"shardproof.torch.engines.{name}").ENGINE
    path = pathlib.Path(name)
    if not path.is_file():
        raise ValueError(
            f"there is no engine {name}: wanted one of {', '.join(BUILTIN)}, or a file"
        )
    found = [value for value in vars(_load(path)).values() if isinstance(value, Engine)]
    if len(found) != 1:
        raise ValueError(f"{name} decorates {len(found)} functions with engine(), wanted one")
    found[0].name = path.stem
    return found[0]


def _load(path):
    """The module of that file. ValueError: it is none, or ends with an error; where, in that file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None:
        raise ValueError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        lines = [at.lineno for at in traceback.extract_tb(error.__traceback__) if at.filename == spec.origin]
        where = f", line {lines[-1]}" if lines else ""
        raise ValueError(f"{path}{where}: {type(error).__name__}: {error}") from error
    return module
