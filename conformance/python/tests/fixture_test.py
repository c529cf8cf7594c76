"""The fixture's parts one by one: modules, optimizers, knobs, declarations. One process, no ranks."""

import pathlib
import tempfile
import threading
import time
import tomllib
import types
import unittest

import numpy as np
import torch

from shardproof import command
from shardproof import model as api
from shardproof.torch import trace
from shardproof.torch.declaration import Engine, engine, find
from shardproof.torch.device import NAME, wait_for_backward
from shardproof.torch.fixture.case import Case, Unsupported
from shardproof.torch.fixture.modules import Fixture
from shardproof.torch.fixture.nodes import Pass
from shardproof.torch.fixture.stages import stages
from shardproof.torch.fixture.optimizers import ExactAdamW, ExactSGD, clip_scale
from shardproof.torch.run import declined, support


def case(case_id, rank=0):
    return Case(api.case_facts(case_id), rank)


def fixture(case_id):
    return Fixture(api.Model(case_id, 0, 0))


class Backward(unittest.TestCase):
    def test_a_pass_before_is_through(self):
        began, ended = threading.Event(), threading.Event()

        class Slow(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, grad):
                began.set()
                time.sleep(0.1)
                ended.set()
                return grad

        root = Slow.apply(torch.ones(1, device=NAME, requires_grad=True))
        other = threading.Thread(target=root.backward, args=[torch.ones(1, device=NAME)])
        other.start()
        began.wait()
        wait_for_backward()
        self.assertTrue(ended.is_set())
        other.join()


class Modules(unittest.TestCase):
    def test_parameters_have_the_published_names(self):
        made = fixture("w1.ddp.root.bias")
        names = [row[0] for row in made.model.params]
        self.assertEqual(sorted(name for name, _ in made.named_parameters()), sorted(names))

    def test_a_tied_weight_is_one_parameter_of_two_modules(self):
        made = fixture("w1.ddp.tied")
        self.assertEqual(len(list(made.parameters())), len(made.model.params))
        self.assertGreater(
            len(list(made.named_parameters(remove_duplicate=False))), len(made.model.params)
        )

    def test_frozen_parameters_want_no_gradient(self):
        made = fixture("w1.ddp.frozen=layer")
        self.assertTrue(any(not p.requires_grad for p in made.parameters()))

    def test_a_pass_gives_loss_and_gradients(self):
        made = fixture("w1.ddp")
        loss = made(Pass(0, 0, 0))
        loss.backward()
        self.assertGreater(trace.host_alias(loss.detach()).item(), 0)
        for name, param in made.named_parameters():
            self.assertIsNotNone(param.grad, name)

    def test_routed_experts_give_loss_and_gradients(self):
        made = fixture("w1.ddp.moe4")
        made.exchange_group = types.SimpleNamespace(size=lambda: 1)
        names = [row[0] for row in made.model.params]
        self.assertEqual(sorted(name for name, _ in made.named_parameters()), sorted(names))
        self.assertEqual([m.kind for m in made.experts()], ["Experts", "Experts"])
        made(Pass(0, 0, 0)).backward()
        for name, param in made.named_parameters():
            self.assertIsNotNone(param.grad, name)

    def test_stages_share_out_parameters(self):
        made = fixture("w2.ddp.pp2.k2.layers4.root.vpp2")
        first, second = stages(made)
        names = [[name for name, _ in part.named_parameters()] for part in (first, second)]
        self.assertEqual(sorted(sum(names, [])), sorted(row[0] for row in made.model.params))
        self.assertIn("embedding.weight", names[0])
        self.assertTrue(all(name.startswith("layers.2.") for name in names[1]))
        self.assertEqual([len(side) for side in first.examples()], [0, 1])
        self.assertEqual([len(side) for side in second.examples()], [1, 1])

    def test_recomputation_changes_no_gradient(self):
        plain, again = fixture("w1.ddp"), fixture("w1.ddp")
        again.recompute_layers()
        for made in (plain, again):
            made(Pass(0, 0, 0)).backward()
        for a, b in zip(plain.parameters(), again.parameters()):
            self.assertTrue(torch.equal(a.grad.cpu(), b.grad.cpu()))

    def test_a_scale_that_is_no_power_of_two_is_a_sentence(self):
        with self.assertRaisesRegex(api.ModelError, "no power of two"):
            (fixture("w1.ddp")(Pass(0, 0, 0)) / 3).backward()

    def test_a_parameter_of_another_dtype_is_a_sentence(self):
        made = fixture("w1.ddp").to(torch.bfloat16)
        with self.assertRaisesRegex(api.ModelError, "elements of bf16, wanted"):
            made(Pass(0, 0, 0))


class Device(unittest.TestCase):
    def test_scalars_are_not_concatenated(self):
        scalar = torch.ones((), device=NAME)
        with self.assertRaisesRegex(RuntimeError, "zero-dimensional tensor"):
            torch.cat([scalar, scalar])


class Optimizers(unittest.TestCase):
    """Against numpy, where each operation rounds once."""

    def step(self, kind, steps, **options):
        random = np.random.default_rng(1)
        weight = random.standard_normal(1000).astype(np.float32)
        gradients = [random.standard_normal(1000).astype(np.float32) for _ in range(steps)]
        param = torch.nn.Parameter(torch.from_numpy(weight.copy()).to(NAME))
        made = kind([param], lr=0.015625, **options)
        made.scale = clip_scale(7.0, 0.5)
        for gradient in gradients:
            param.grad = torch.from_numpy(gradient).to(NAME)
            made.step()
        return weight, gradients, np.float32(made.scale), param.detach().cpu().numpy()

    def test_sgd_is_exact(self):
        w, gradients, scale, got = self.step(ExactSGD, 3, weight_decay=0.1)
        for g in gradients:
            x = g * scale
            x = x + np.float32(0.1) * w
            w = w - np.float32(0.015625) * x
        np.testing.assert_array_equal(w, got)

    def test_adamw_is_exact(self):
        w, gradients, scale, got = self.step(ExactAdamW, 4, weight_decay=0.1)
        f = np.float32
        m, v, p1, p2 = np.zeros_like(w), np.zeros_like(w), f(1), f(1)
        for g in gradients:
            x = g * scale
            p1, p2 = p1 * f(0.5), p2 * f(0.75)
            m = f(0.5) * m + f(0.5) * x
            v = f(0.75) * v + f(0.25) * (x * x)
            u = (m / (f(1) - p1)) / (np.sqrt(v / (f(1) - p2)) + f(0.0078125))
            w = w - (f(0.015625) * f(0.1)) * w
            w = w - f(0.015625) * u
        np.testing.assert_array_equal(w, got)


class Declarations(unittest.TestCase):
    def test_an_undeclared_knob_is_refused(self):
        mine = engine(knobs={"strategy": ["no_shard"]})(lambda *_: None)
        self.assertIsInstance(mine, Engine)
        mine.refuse(case("w2.ddp"))
        with self.assertRaisesRegex(Unsupported, "does not read recompute"):
            mine.refuse(case("w2.ddp.recompute"))

    def test_an_undeclared_value_is_refused_defaults_too(self):
        mine = engine(knobs={"strategy": ["optim_grads_params"], "param_dtype": ["fp32"]})(
            lambda *_: None
        )
        with self.assertRaisesRegex(Unsupported, "strategy = no_shard"):
            mine.refuse(case("w2.ddp"))
        with self.assertRaisesRegex(Unsupported, "param_dtype = bf16"):
            mine.refuse(case("w2.zero3.bf16"))

    def test_two_engines_in_a_world_are_declined(self):
        shared = case("w4.zero3.name=policy.n2+zero2.name=value.tp2.etp2")
        self.assertIn("one engine", declined.reason(find("fsdp2"), shared))


KNOWN = {  # as `shardproof list values` has it
    "strategies": {
        "world": ["1", "16", "2", "8"],
        "place": ["from1", "whole"],
        "strategy": ["no_shard", "optim", "optim_grads_params"],
        "tp": ["1", "2"],
        "recompute": ["0", "1"],
        "optimizer": ["adamw", "sgd"],
        "weight_decay": ["0", "0.0625"],
        "tied": ["0", "1"],
        "experts": ["0", "1"],
    },
    "experts": {"strategy": ["no_shard"], "moe.experts": ["8"]},
    "layer_wise": {
        "world": ["2"],
        "recompute": ["layers", "norm,core_attn", "nothing"],
        "experts": ["moe4", "none", "one each"],
    },
}


class Supports(unittest.TestCase):
    """What an engine declares, as a file for --supports."""

    def of(self, **options):
        mine = engine(**options)(lambda *_: None)
        return mine, support.supports(mine, KNOWN)

    def test_what_is_not_declared_keeps_its_default(self):
        _, found = self.of(knobs={"strategy": ["no_shard"], "weight_decay": float})
        self.assertEqual(list(found), ["strategies"])
        taken = found["strategies"]
        self.assertEqual(taken["strategy"], ["no_shard"])
        self.assertEqual(taken["weight_decay"], ["0", "0.0625"])
        self.assertEqual(taken["world"], ["1", "2", "8"])
        self.assertEqual(taken["experts"], ["0"])
        self.assertEqual((taken["tied"], taken["tp"]), (["0", "1"], ["1", "2"]))
        self.assertFalse({"recompute", "optimizer"} & set(taken))

    def test_knobs_that_are_set_together(self):
        knobs = {"strategy": ["layer_wise"], "recompute": ["0", "1"]}
        _, found = self.of(knobs=knobs)
        self.assertEqual(list(found), ["layer_wise"])
        self.assertEqual(found["layer_wise"]["recompute"], ["layers", "nothing"])
        self.assertEqual(found["layer_wise"]["experts"], ["none"])

    def test_what_is_not_taken_together(self):
        why = "no head and embedding in one unit"
        row = {"tied": ["1"], "strategy": ["optim_grads_params"]}
        mine, found = self.of(
            knobs={"strategy": ["optim_grads_params", "no_shard"]}, without=[(row, why)]
        )
        self.assertEqual(found["strategies"]["without"], [row])
        self.assertEqual(found["strategies"]["plain"], {"strategy": "optim_grads_params"})
        with self.assertRaisesRegex(Unsupported, why):
            mine.refuse(case("w2.zero3.tied"))
        mine.refuse(case("w2.zero3"))
        mine.refuse(case("w2.ddp.tied"))
        told = tomllib.loads(support.text(mine, found))
        self.assertEqual(told["strategies"], found["strategies"])

    def test_traits_that_are_not_taken(self):
        mine, _ = self.of(
            knobs={"strategy": ["no_shard"]}, takes={"unused": ["none", "step"]}
        )
        mine.refuse(case("w2.ddp.unused=step"))
        with self.assertRaisesRegex(Unsupported, "unused = rank"):
            mine.refuse(case("w2.ddp.unused=rank"))

    def test_routed_experts_are_taken_where_they_are_named(self):
        mine, _ = self.of(knobs={"strategy": ["no_shard"]})
        with self.assertRaisesRegex(Unsupported, "moe.experts = 4"):
            mine.refuse(case("w2.ddp.ep2.moe4"))
        mine, found = self.of(
            knobs={"strategy": ["no_shard"]}, takes={"moe.experts": ["0", "4", "8"]}
        )
        self.assertEqual(found["experts"]["moe.experts"], ["8"])
        mine.refuse(case("w2.ddp.ep2.moe4"))
        mine.refuse(case("w2.ddp"))

    def test_a_space_that_leaves_a_knob_at_what_the_engine_refuses(self):
        chunks = {"strategy": ["no_shard"], "virtual_pipeline_model_parallel_size": ["2"]}
        _, found = self.of(knobs=chunks)
        self.assertEqual(found, {})
        chunks["virtual_pipeline_model_parallel_size"] = ["1", "2"]
        _, found = self.of(knobs=chunks)
        self.assertEqual(list(found), ["strategies"])

    def test_cases_of_an_engine_that_no_space_has(self):
        own = "w2.ddp.pp2.k2.layers4.vpp2"
        options = {"strategy": ["no_shard"], "virtual_pipeline_model_parallel_size": ["2"]}
        mine = engine(knobs=options, cases=[own])(lambda *_: None)
        without = engine(knobs=options)(lambda *_: None)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "supports.toml"
            found = support.Selection(mine, command.find(), "core", file)
            self.assertIn(own, found.ids)
            self.assertIsNone(found.file)
            with self.assertRaisesRegex(ValueError, "no strategy that the suite has"):
                support.Selection(without, command.find(), "core", file)

    def test_cases_of_a_profile(self):
        """What shardproof selects is what the engine takes; each of its pairs is asked."""
        mine = engine(knobs={"strategy": ["no_shard"], "recompute": ["0", "1"]})(lambda *_: None)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "supports.toml"
            core = support.Selection(mine, command.find(), "core", file, ranks=4)
            smoke = support.Selection(mine, command.find(), "smoke", file, ranks=4)
        for i in core.ids + smoke.ids:
            self.assertIsNone(declined.reason(mine, case(i)), i)
            self.assertLessEqual(int(i[1 : i.index(".")]), 4)
        for pair in (("recompute", "tied"), ("w3", "recompute"), ("k3", "bias")):
            self.assertTrue(any(set(pair) <= set(i.split(".")) for i in core.ids), pair)
        self.assertLess(len(smoke.ids), len(core.ids))
        tokens = {token for i in smoke.ids for token in i.split(".")}
        self.assertLessEqual({"w1", "w4", "recompute", "k3", "frozen=norms"}, tokens)
        self.assertIn("this host runs one engine in a world", core.left_out)


if __name__ == "__main__":
    unittest.main(verbosity=2)
