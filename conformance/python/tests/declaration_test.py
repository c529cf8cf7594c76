"""shardproof-torch run: what an engine's file declares, declines and returns, and what is said of it."""

import importlib.util
import pathlib
import re
import textwrap
import unittest

import run_case
from shardproof import command
from shardproof.torch import declaration

# Replicated by hand; head: of the function, {declared}: arguments of sp.engine besides.
REPLICATED = """
import contextlib
import torch
import torch.distributed as dist
import shardproof.torch as sp

def several(case):
    if case.world > 1:
        raise sp.Unsupported("one rank only")

@sp.engine({declared})
def build(case, model, device):
    {head}
    group = sp.mesh(case).get_group("shard")

    @contextlib.contextmanager
    def reduce(index, last):
        yield
        for param in model.parameters() if last else ():
            if param.requires_grad:
                param.grad = torch.zeros_like(param) if param.grad is None else param.grad
                dist.all_reduce(param.grad, op=dist.ReduceOp.AVG, group=group)

    return sp.Training(model, sp.optimizer(case, model), microbatch=reduce)
"""
KNOBS = 'knobs={"strategy": ["no_shard"]}'
SMOKE = "--profile", "smoke", "--ranks", "2"


class Declaration(run_case.RunCase):
    def replicated(self, declared=KNOBS, head="pass"):
        return "--engine", self.engine(text=REPLICATED.format(declared=declared, head=head))

    def test_an_engine_that_declines_all_worlds_of_several_ranks_is_not_conformant(self):
        self.expect(0, "conformant: ", *self.replicated(), *SMOKE)
        why = "one rank only), so that no reduction over ranks was judged"
        said = self.expect(1, why, *self.replicated(head="several(case)"), *SMOKE)
        self.assertIn("1 problem", said)
        # Of what is declared, too: then no such case is run.
        self.expect(1, why, *self.replicated(KNOBS + ", traits=several"), *SMOKE)

    def test_cases_that_are_named_may_be_of_one_rank(self):
        case = "--case", "w1.ddp", "w2.ddp"
        self.expect(0, "conformant: 1 pass, 1 unsupported", *self.replicated(head="several(case)"), *case)

    def test_an_engine_that_declines_on_one_rank_alone_is_not_conformant(self):
        head = "if case.rank == 1: raise sp.Unsupported('not here')"
        self.expect(1, "GE-24", *self.replicated(head=head), "--case", "w2.ddp")

    def test_a_misspelt_name_is_refused(self):
        for declared, said in (
            ('knobs={"stratgy": ["no_shard"]}', "'stratgy' is no knob, did you mean 'strategy'?"),
            ('knobs={"strategy": ["no_shard"], "qqq": int}', "'qqq' is no knob; "),
            ('knobs={"strategy": ["no_shard"], "tied": ["0"]}', "'tied' is a name for `takes`, and no knob"),
            (KNOBS + ', takes={"unusedd": ["none"]}', "'unusedd' is no knob, trait or axis, did you mean 'unused'?"),
            (KNOBS + ', without=[({"tide": ["1"]}, "why")]', "without of mine: 'tide' is no knob, trait or axis"),
        ):
            told = self.expect(3, said, *self.replicated(declared), "--case", "w2.ddp")
            self.assertNotIn("conformant", told)

    def test_a_misspelt_value_is_refused(self):
        for declared, said in (
            ('knobs={"strategy": ["no_shards"]}', "'no_shards' is no value of 'strategy', did you mean 'no_shard'?"),
            (KNOBS + ', takes={"unused": ["nune"]}', "'nune' is no value of 'unused', did you mean 'none'?"),
            (KNOBS + ', takes={"tied": [2]}', "'2' is no value of 'tied'"),
            (KNOBS + ', takes={"tied": "0"}', "takes of mine: 'tied' has '0'; wanted a list of values"),
            (KNOBS + ', takes={"world": ["2"]}', "'world' is no knob, trait or axis"),
            (KNOBS + ', without=[({"frozen": ["norm"]}, "why")]', "without of mine: 'norm' is no value of 'frozen'"),
        ):
            told = self.expect(3, said, *self.replicated(declared), "--case", "w2.ddp")
            self.assertNotIn("conformant", told)

    def test_a_file_that_does_not_load_is_refused(self):
        for declared, said in (
            ('knobs={"strategy": "no_shard"}', r"knobs\['strategy'\]: a list of values, or int, float or str"),
            ('knobs=["strategy"]', r"knobs is \['strategy'\]; wanted a dict, name to values"),
            ("nobs={}", "got an unexpected keyword argument 'nobs'"),
        ):
            told = self.expect(3, "shardproof-torch: ", *self.replicated(declared), "--case", "w2.ddp")
            self.assertRegex(told, r"\.py, line 11: TypeError: .*" + said)
            self.assertNotIn("Traceback", told)
        told = self.expect(3, "SyntaxError: ", *self.replicated(head="return ("), "--case", "w2.ddp")
        self.assertIn("line 13", told)

    def test_numbers_stand_for_their_texts(self):
        declared = KNOBS + ', takes={"tied": [0], "tp": [1]}'
        self.expect(0, "1 pass, 1 unsupported", *self.replicated(declared), "--case", "w2.ddp", "w2.ddp.tied")

    def test_names_of_the_engines_of_this_package_are_known(self):
        from shardproof.torch.run import misspelt

        for name in declaration.BUILTIN:
            if importlib.util.find_spec(declaration.PACKAGES.get(name, ("torch",))[0].replace("-", "_")):
                misspelt.check(declaration.find(name), command.find())

    def test_why_a_case_is_unsupported_is_the_engines_own_reason(self):
        report = self.folder / "report"
        cases = "--case", "w1.ddp", "w2.ddp", "w1.ddp.recompute", "w1.ddp.do=ts", "--report", report
        said = self.expect(0, "1 pass, 3 unsupported", *self.replicated(head="several(case)"), *cases)
        page = (report / "summary.md").read_text() + (report / "report.jsonl").read_text()
        for case, why in (
            ("w2.ddp", "one rank only"),
            ("w1.ddp.recompute", "mine does not read recompute"),
            ("w1.ddp.do=ts", "the engine gives no save() and load()"),
        ):
            self.assertIn(f"unsupported  {case}  ({why})", said)
            self.assertIn(why, page)

    def test_the_engine_of_the_readme_conforms(self):
        page = (pathlib.Path(__file__).absolute().parents[1] / "README.md").read_text()
        block = re.search(r"^    import shardproof\.torch as sp\n(?:    .*\n|\n)*", page, re.M)[0]
        (line,) = re.findall(r"^    shardproof-torch run (--engine my_engine\.py .*)", page, re.M)
        self.assertIn("fully_shard", block)
        engine = str(self.engine(text=textwrap.dedent(block)))
        self.expect(0, "\nconformant: ", *line.replace("my_engine.py", engine).split())

    def test_what_build_must_return_is_said(self):
        must = "build must return model, optimizer or a shardproof.torch.Training, and returned "
        for head, returned in (("return model", "a Fixture"), ("return 1, 2, 3", "3 values"), ("return", "a NoneType")):
            self.expect(1, must + returned, *self.replicated(head=head), "--case", "w1.ddp")


if __name__ == "__main__":
    unittest.main(verbosity=2)
