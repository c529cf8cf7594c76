"""shardproof-torch run, end to end: what engines get that are right, wrong, silent, stuck, or ask for too much."""

import subprocess
import textwrap
import unittest

import run_case
from run_case import ENGINE
from shardproof import command
from shardproof.torch import supervise

# Announces its own hook by a label of the profiler.
MARKED = """
import shardproof.torch as sp
from torch.distributed.fsdp import fully_shard
from torch.profiler import record_function

@sp.engine(
    knobs={{"strategy": ["optim_grads_params"]}},
    marks={{"{declared}": "PRE_FORWARD"}},
    takes={{"script": ["ttt"], "unused": ["none"]}},
)
def build(case, model, device):
    names = {{module: name for name, module in model.named_modules()}}

    def announce(unit, *_arguments):
        with record_function(f"mine::ready ({{names[unit]}})"):
            pass

    for unit in model.units():
        fully_shard(unit, mesh=sp.mesh(case))
    fully_shard(model, mesh=sp.mesh(case))
    for unit in model.units():
        unit.{register}(announce)
    return model, sp.optimizer(case, model)
"""
# torch.optim.AdamW, with a factor on its learning rate.
TORCHS_OPTIMIZER = """
import shardproof.torch as sp
from shardproof.torch.engines import checkpoint, ddp, fsdp2

@sp.engine(
    knobs={{"strategy": ["no_shard", "optim_grads_params"], "optimizer": ["adamw"], "weight_decay": float}},
    bounded_updates={declared},
)
def build(case, model, device):
    whole = case.value("strategy") == "no_shard"
    made = (ddp if whole else fsdp2).ENGINE.build(case, model, device)
    made = made if isinstance(made, sp.Training) else sp.Training(*made)
    made.optimizer = sp.torch_optimizer(case, model)
    for group in made.optimizer.param_groups:
        group["lr"] *= {lr}
    made.save = lambda folder: checkpoint.save(folder, made.model, made.optimizer)
    made.load = lambda folder: checkpoint.load(folder, made.model, made.optimizer)
    return made
"""
# Does nothing of what it was asked: every rank trains by itself.
SILENT = """
import shardproof.torch as sp

@sp.engine(knobs={"strategy": ["optim_grads_params"]})
def build(case, model, device):
    return model, sp.optimizer(case, model)
"""


class Run(run_case.RunCase):
    def test_fsdp2_conforms(self):
        self.expect(
            0,
            "conformant: 2 pass",
            "--engine",
            "fsdp2",
            "--case",
            "w2.zero3",
            "w2.zero3.k2.adamw.tied",
        )

    def test_fsdp2_shards_less(self):
        """Of ZeRO-1 and 2; a divisor of its own; units that are gathered ahead by name."""
        self.expect(
            0,
            "conformant: 4 pass",
            "--engine",
            "fsdp2",
            "--case",
            "w2.zero1.k2",
            "w2.zero2.k2",
            "w3.zero3.k2.pertoken",
            "w2.zero3.opg.layers3",
        )

    def test_fsdp2_reshards_after_forward_as_it_is_told(self):
        """Not at all, over two ranks; evaluations aside (waivers/fsdp2.toml)."""
        self.expect(
            0,
            "conformant: 3 pass",
            "--engine",
            "fsdp2",
            "--case",
            "w2.zero3.reshard0.k2",
            "w4.zero3.reshard2.k2",
            "w4.zero3.reshard2.recompute",
        )

    def test_a_rank_without_elements_saves_and_loads(self):
        self.expect(0, "conformant: 1 pass", "--engine", "fsdp2", "--case", "w5.zero3.do=ttsrlt")

    def test_how_much_of_a_declaration_was_judged(self):
        """The coverage that `run --profile core` ends with; what was declined is told."""
        traces, file = self.folder / "traces", self.folder / "supports.toml"
        declines = "if case.value('recompute') == '1':\n    raise sp.Unsupported('not today')"
        text = ENGINE.format(body=textwrap.indent(declines, "    ")).replace(
            'params"]', 'params"], "recompute": ["0", "1"]'
        )
        cases = ("--case", "w2.zero3", "w2.zero3.recompute", "--traces", traces)
        self.expect(0, "1 pass, 1 unsupported", "--engine", self.engine(text=text), *cases)
        file.write_text(
            "[strategies]\nstrategy = ['optim_grads_params']\nrecompute = ['0', '1']\n"
            "world = ['2']\nplace = ['whole']\n"
        )
        judge = [str(command.find()), "check", f"trace:{traces}", f"--supports={file}"]
        said = subprocess.run(judge, capture_output=True, text=True, check=False)
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        self.assertIn("pairs of strategies: ", said.stdout)
        self.assertIn("; not judged: world=2 recompute=1; ", said.stdout)
        self.assertIn("takes each of its values: 1 case, w2.zero3.recompute", said.stdout)
        file.write_text("[strategies]\nstrategy = ['zero9']\n")
        said = subprocess.run(judge, capture_output=True, text=True, check=False)
        self.assertEqual(said.returncode, 3)
        self.assertIn("zero9", said.stderr)

    def test_ddp_conforms_and_declines_what_it_is_not(self):
        said = self.expect(
            0,
            "conformant: 1 pass, 1 unsupported",
            "--engine",
            "ddp",
            "--case",
            "w2.ddp.k2",
            "w2.zero3",
        )
        self.assertIn("unsupported  w2.zero3", said)

    def test_streams_and_pinned_memory_are_the_pools(self):
        """Nothing is left behind by a second engine; a copy may still read a pinned block."""
        self.expect(0, "conformant: 1 pass", "--engine", "fsdp2", "--case", "w2.zero3.do=trt")
        self.expect(0, "conformant: 1 pass", "--engine", "ddp", "--case", "w2.ddp.unused=step")

    def test_what_is_illegal_is_rejected(self):
        cases = ("w2.zero3.k0", "w2.zero3.clip-1", "w3.zero3.n2", "w2.zero3.n0")
        self.expect(0, "conformant: 4 pass", "--engine", "fsdp2", "--case", *cases)

    def test_an_engine_of_ones_own(self):
        self.expect(0, "conformant: 1 pass", "--engine", self.engine(), "--case", "w2.zero3")

    def test_a_knob_that_is_not_declared_is_unsupported(self):
        said = self.expect(
            1, "nothing was judged", "--engine", self.engine(), "--case", "w2.zero3.recompute"
        )
        self.assertIn("recompute", said)

    def test_gradients_of_a_wrong_scale_are_found(self):
        body = "model.set_reduce_scatter_divide_factor(1.0)"
        said = self.expect(1, "FS-17", "--engine", self.engine(body), "--case", "w2.zero3")
        again = f"shardproof-torch run --engine {self.folder}/mine.py --case w2.zero3\n"
        self.assertIn(again, said)

    def test_torchs_own_optimizer_is_judged_within_a_bound(self):
        def torchs(lr, declared):
            text = textwrap.dedent(TORCHS_OPTIMIZER).format(lr=lr, declared=declared)
            return "--engine", self.engine(text=text)

        cases = "--case", "w2.zero3.adamw.do=ttsrlt.wd0p0625", "w2.ddp.adamw.k2"
        said = self.expect(0, "conformant within bounds: 2 bounded", *torchs(1, True), *cases)
        self.assertIn("judged within a bound (2 cases): FS-24", said)
        self.expect(1, "FS-24", *torchs(1, False), *cases)
        # A learning rate that is wrong by a 16,000th part is no rounding.
        self.expect(1, "FS-24", *torchs(1 + 2**-14, True), *cases)

    def test_hooks_that_labels_announce_are_judged(self):
        case = "--case", "w2.zero3.layers1"
        early = {"declared": "mine::ready", "register": "register_forward_pre_hook"}
        good = self.engine(text=MARKED.format(**early))
        said = self.expect(0, "conformant: 1 pass", "--engine", good, *case)
        self.assertIn("FS-04, FS-06, FS-38: the engine announces none of the hooks", said)
        self.assertNotIn("FS-39", said)
        late = self.engine(text=MARKED.format(**early | {"register": "register_forward_hook"}))
        self.expect(1, "computes in microbatch 0 before its pre-forward hook", "--engine", late, *case)
        fsdp2 = self.expect(0, "conformant: 1 pass", "--engine", "fsdp2", *case)
        self.assertNotIn("FS-04", fsdp2)

    def test_a_label_that_never_comes_turns_a_profile_red(self):
        profile = "--profile", "smoke", "--ranks", "2", "--allow-partial"
        for declared, code, said in (("mine::ready", 0, "conformant: "), ("mine::raedy", 1, "'mine::raedy'")):
            file = self.engine(
                text=MARKED.format(declared=declared, register="register_forward_pre_hook")
            )
            self.expect(code, said, "--engine", file, *profile)

    def test_an_engine_that_does_nothing_is_found(self):
        said = self.expect(
            1, "not conformant: 1 fail", "--engine", self.engine(text=SILENT), "--case", "w2.zero3"
        )
        self.assertIn("FS-15", said)

    def test_a_rank_that_raises_is_named(self):
        body = "if case.rank == 1:\n    raise ValueError('rank 1 has no mood')"
        said = self.expect(
            1, "not conformant: 1 fail", "--engine", self.engine(body), "--case", "w2.zero3"
        )
        self.assertIn("rank 1 has no mood", said)
        self.assertIn("died: its footer says that it died: ValueError: rank 1 has no mood\n", said)

    def test_ranks_at_other_lines_are_shown_apart(self):
        texts = {0: 'File "a.py", line 10 in f\n', 1: 'File "a.py", line 14 in f\n', 2: 'File "a.py", line 10 in f\n'}
        self.assertEqual([names for names, _ in supervise.alike(texts)], ["ranks 0, 2", "rank 1"])

    def test_ranks_that_raise_alike_are_shown_once(self):
        said = self.expect(
            1, "--- ranks 0, 1, 2, log", "--engine", self.engine("raise ValueError(case.rank)"), "--case", "w3.zero3"
        )
        self.assertEqual(said.count("Traceback"), 1, said)

    def test_a_rank_that_leaves_is_named(self):
        body = "if case.rank == 1:\n    os._exit(0)"
        said = self.expect(
            1, "not conformant: 1 fail", "--engine", self.engine(body), "--case", "w2.zero3"
        )
        self.assertIn("rank 1 exited before the end of its program", said)
        self.assertNotIn("rank 0 exited", said)

    def test_a_rank_that_hangs_is_shown(self):
        body = "while case.rank == 1:\n    time.sleep(1)"
        said = self.expect(
            1,
            "not conformant: 1 fail",
            "--engine",
            self.engine(body),
            "--case",
            "w2.zero3",
            "--patience",
            "6",
        )
        self.assertIn("mine.py", said)

    def test_rejected_is_an_answer(self):
        body = "raise sp.Rejected('no')"
        said = self.expect(
            1, "not conformant: 1 fail", "--engine", self.engine(body), "--case", "w2.zero3"
        )
        self.assertIn("rejected", said.lower())

    def test_wrong_input_is_named(self):
        for text, arguments in (
            ("there is no engine nobody", ("--engine", "nobody")),
            ("nonsense", ("--engine", "fsdp2", "--case", "w2.nonsense")),
            ("wanted one", ("--engine", self.engine(text="x = 1\n"), "--case", "w2.ddp")),
            ("/nowhere", ("--engine", "ddp", "--case", "w2.ddp", "--shardproof", "/nowhere")),
            ("--engine", ()),
        ):
            self.expect(3, text, *arguments)

    def test_an_earlier_report_says_nothing_of_a_run_that_did_not_come_to_its_end(self):
        report = self.folder / "report"
        run = ("--case", "w2.ddp", "--report", report)
        self.expect(0, "conformant: 1 pass", "--engine", "ddp", *run)
        self.expect(3, "there is no engine nobody", "--engine", "nobody", *run)
        self.assertEqual((report / "report.jsonl").read_text(), "")
        self.assertEqual([file.name for file in report.iterdir() if file.name != "engine.json"], ["report.jsonl"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
