"""Schedule plans of megatron-core whose callables are the fixture's nodes: a plan for each microbatch."""

import types

import torch
from megatron.core.models.common.model_chunk_schedule_plan import (
    ModelChunkState,
    TransformerLayerSchedulePlan,
    TransformerModelChunkSchedulePlan,
)
from megatron.core.models.gpt.fine_grained_callables import (
    TransformerLayerNode,
    TransformerLayerState,
)
from megatron.core.pipeline_parallel.utils import (
    NoopScheduleNode,
    ScheduleNode,
    get_comm_stream,
    get_comp_stream,
)

from shardproof import model as api
from shardproof.torch.fixture.nodes import ids, uses

_LAYER_NODES = ("attn", "moe_dispatch", "mlp", "moe_combine")


def _sections(model, program):
    """[name, layer's module or None, nodes] in the program's order."""
    layer_of = {}
    for n in program:
        module = model.nodes[n][0]
        while module > 0 and model.modules[module][2] != "TransformerLayer":
            module = model.modules[module][0]
        layer_of[n] = module if module > 0 else None
    layers = list(dict.fromkeys(layer for layer in layer_of.values() if layer is not None))
    first = next(at for at, n in enumerate(program) if layer_of[n] is not None)
    before, after = program[:first], [n for n in program[first:] if layer_of[n] is None]
    made = [("pre_process", None, before)]
    for layer in layers:
        made += [
            (name, layer, nodes)
            for name, nodes in _of_layer(model, [n for n in program if layer_of[n] == layer])
        ]
    return made + [("post_process", None, after)]


def _of_layer(model, nodes):
    """Attention to router and permutation, dispatch, experts, combine; of a dense layer attention and MLP."""
    exchanges = [at for at, n in enumerate(nodes) if _exchanges_rows(model, model.nodes[n])]
    if exchanges:
        first, last = exchanges[0], exchanges[-1]
        between = next(at for at in range(first, last) if at not in exchanges)
        parts = nodes[:first], nodes[first:between], nodes[between:last], nodes[last:]
        return list(zip(_LAYER_NODES, parts))
    mlp = next(at for at, n in enumerate(nodes) if model.nodes[n][2].endswith(".mlp_norm"))
    return [("attn", nodes[:mlp]), ("mlp", nodes[mlp:])]


def _exchanges_rows(model, row):
    if row[1] != api.EXCHANGE:
        return False
    (written,) = ids(uses(row, api.FWD), api.ACT, api.WRITE)
    return model.values[written][2] == api.F32


class _Section:
    """What a schedule node computes; next: values that the next one alone reads, kept: those that others read."""

    def __init__(self, fixture, name, layer, nodes, before, later):
        model = fixture.model
        self.name, self.layer = name, layer
        following = self._read(model, later[0]) if later else set()
        others = {i for nodes_ in later[1:] for i in self._read(model, nodes_)}
        losses = {i for i, v in enumerate(model.values) if v[1] & api.LOSS}
        self.block = fixture.block(nodes, following | others | losses)
        floats = [i for i in self.block.wanted if model.values[i][2] == api.F32]
        self.next = [i for i in floats if i not in others]
        self.kept = [i for i in self.block.wanted if i not in self.next]
        self.given = before.next if before else []

    @staticmethod
    def _read(model, nodes):
        return {i for n in nodes for i in ids(uses(model.nodes[n], api.FWD), api.ACT, api.READ)}

    def carry_out(self, fixture, run, values, detach, given):
        found = {**values, **dict(zip(self.given, given))}
        made = fixture.carry_out_block(self.block, run, *[found[i] for i in self.block.reads])
        made = dict(zip(self.block.wanted, made))
        for i in self.kept:
            values[i] = detach(made[i]) if made[i].is_floating_point() else made[i]
        out = tuple(made[i] for i in self.next)
        return out[0] if len(out) == 1 else out


def _plan_of(fixture, program):
    parts = _sections(fixture.model, program)
    sections = []
    for at, (name, layer, nodes) in enumerate(parts):
        later = [other for _, _, other in parts[at + 1 :]]
        before = sections[-1] if sections else None
        sections.append(_Section(fixture, name, layer, nodes, before, later))
    return sections


class _LayerPlan(TransformerLayerSchedulePlan):
    """One layer's four nodes."""

    def __init__(self, sections, config, chunk_state, event, call):
        self.config, self.chunk_state, self.event = config, chunk_state, event
        self.layer = types.SimpleNamespace(config=config)  # asked for fp8 alone
        self.layer_state = TransformerLayerState()
        self.mtp_post_process = NoopScheduleNode()
        self.moe_dispatch = self.moe_combine = NoopScheduleNode()
        options = {"config": config, "is_moe": len(sections) == len(_LAYER_NODES)}
        for section in sections:
            stream = get_comm_stream() if section.name.startswith("moe_") else get_comp_stream()
            node = TransformerLayerNode(
                stream,
                event,
                self.layer_state,
                chunk_state,
                lambda node, *given, section=section: call(section, node.detach, given),
                name=section.name,
                extra_args=options,
            )
            if section.name == "mlp":
                node.free_input = False
            setattr(self, section.name, node)


class ChunkPlan(TransformerModelChunkSchedulePlan):
    """One microbatch's way through the whole model; run, which schedules, is Megatron's."""

    def __init__(self, fixture, config, run):
        self._model_chunk_state, self._event = ModelChunkState(), torch.cuda.Event()
        self._transformer_layers, self.vp_stage = [], None
        values = {}  # what others than the next node read

        def call(section, detach, given):
            return section.carry_out(fixture, run, values, detach, given)

        def outer(section):
            whole = lambda *given: call(section, lambda value: value, given)  # noqa: E731
            return ScheduleNode(whole, get_comp_stream(), self._event, name=section.name)

        first, *sections, last = _plan_of(fixture, fixture.program(run))
        self.pre_process, self.post_process = outer(first), outer(last)
        for layer in dict.fromkeys(section.layer for section in sections):
            mine = [section for section in sections if section.layer == layer]
            self._transformer_layers.append(
                _LayerPlan(mine, config, self._model_chunk_state, self._event, call)
            )
