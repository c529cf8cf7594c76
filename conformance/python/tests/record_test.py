"""shardproof-torch record: training scripts are clean, each planted mistake is found at its line,
and a run that hangs, dies or raises is judged, with stacks.

usage: record_test.py [CASE...]; needs torch, and SHARDPROOF.
"""

import importlib.util
import io
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

from shardproof.torch import record

SCRIPTS = pathlib.Path(__file__).parent / "scripts"
ACCELERATE = importlib.util.find_spec("accelerate") is not None
NO_ACCELERATE = "accelerate is not installed: pip install accelerate"
PATIENCE = "4"  # seconds; a run that is stuck is noticed after so long


def judge(script, mistake="", *options, ranks=2, culprit=None):
    """Exit code and report of a script's run."""
    with tempfile.TemporaryDirectory() as folder:
        given = ["-n", str(ranks), "--trace", folder, "--patience", PATIENCE, *options]
        arguments = [*given, str(SCRIPTS / script)] + [mistake] * (mistake != "")
        arguments += [] if culprit is None else [str(culprit)]
        out = io.StringIO()
        code = record.record(record.parser().parse_args(arguments), out)
        return code, out.getvalue()


def line_of(script, mistake):
    """script.py:37, of the line that the script marks."""
    lines = (SCRIPTS / script).read_text().splitlines()
    (number,) = (i for i, line in enumerate(lines, 1) if line.endswith(f"# FOUND {mistake}"))
    return f"{script}:{number}"


class Clean(unittest.TestCase):

    def clean(self, script, *options, **who):
        code, report = judge(script, "", *options, **who)
        self.assertEqual(code, 0, report)
        scope = "(order, waits and memory; no numbers: a script is no case of the suite)"
        self.assertEqual(report.splitlines()[-1], f"conformant: 1 pass {scope}")

    def test_transformer(self):
        self.clean("transformer_fsdp2.py")

    def test_transformer_in_stream_order(self):
        self.clean("transformer_fsdp2.py", "--free", "order")

    def test_ddp(self):
        self.clean("ddp_no_sync.py")

    def test_experts(self):
        self.clean("moe_all_to_all.py", "--cuda-names")

    def test_pipeline(self):
        self.clean("pipeline_1f1b.py")


    def test_tensor_parallel(self):
        self.clean("fsdp2_tp.py", ranks=4)

    @unittest.skipUnless(ACCELERATE, NO_ACCELERATE)
    def test_accelerate(self):
        self.clean("hf_accelerate.py", "--cuda-names")


class Mistakes(unittest.TestCase):

    def found(self, requirement, script, mistake, *options, **who):
        code, report = judge(script, mistake, *options, **who)
        self.assertEqual(code, 1, report)
        self.assertRegex(report, rf"(?m)^  {requirement} ")
        self.assertIn(line_of(script, mistake), report)

    def test_batch_of_a_stream_that_nobody_waits_for(self):
        self.found("GE-11", "transformer_fsdp2.py", "side")

    def test_all_reduce_that_nobody_waits_for(self):
        self.found("GE-05", "ddp_no_sync.py", "unwaited")

    def test_all_reduce_on_one_rank(self):
        self.found("GE-01", "ddp_no_sync.py", "one_rank")

    def test_shapes_that_differ(self):
        self.found("GE-01", "ddp_no_sync.py", "shape")

    def test_all_to_all_that_nobody_waits_for(self):
        self.found("GE-05", "moe_all_to_all.py", "unwaited", "--cuda-names")

    def test_messages_that_wait_for_each_other(self):
        self.found("GE-03", "pipeline_1f1b.py", "crossed")

    def test_gather_of_tensor_parallel_ranks_that_nobody_waits_for(self):
        self.found("GE-05", "fsdp2_tp.py", "unwaited", ranks=4)

    @unittest.skipUnless(ACCELERATE, NO_ACCELERATE)
    def test_batch_of_a_stream_that_accelerate_does_not_know(self):
        self.found("GE-11", "hf_accelerate.py", "side", "--cuda-names")


class Scope(unittest.TestCase):
    """What is not judged, and what a script is told that asks for CUDA."""

    def record(self, text):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "script.py"
            script.write_text(text)
            out = io.StringIO()
            code = record.record(record.parser().parse_args(["-n", "2", str(script)]), out)
        return code, out.getvalue()

    def test_numbers_are_not_judged_and_the_verdict_says_so(self):
        code, said = self.record("import torch\ntorch.ones(4, device=torch.accelerator.current_accelerator()).mul_(2)\n")
        self.assertEqual(code, 4, said)  # no collective: GE-01 has nothing to show
        self.assertEqual(said.splitlines()[-1], f"conformant where judged: 1 partial ({record.NO_NUMBERS})")

    def test_a_script_that_says_cuda_is_told_the_option(self):
        for line in ("torch.cuda.set_device(0)", "torch.ones(1, device='cuda')"):
            code, said = self.record(f"import torch\n{line}\n")
            self.assertEqual((code, said.count("with --cuda-names the recorded device answers")), (1, 1), said)

    def test_other_errors_are_no_hint(self):
        code, said = self.record("raise ValueError('cuda')\n")
        self.assertEqual((code, "--cuda-names" in said), (1, False), said)


class ManySteps(unittest.TestCase):
    """A long run is judged in parts, from one read of the loss to another one."""

    def check(self, folder, events):
        command = [record.find_command(), "check", "--all", "--part-events", str(events)]
        done = subprocess.run([*command, f"trace:{folder}"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        lines = done.stdout.splitlines()
        parts = [line for line in lines if re.fullmatch(r"judged in \d+ parts", line)]
        return parts, [line for line in lines if line not in parts]

    def in_parts(self, kind):
        with tempfile.TemporaryDirectory() as folder:
            given = ["-n", "2", "--trace", folder, str(SCRIPTS / "many_steps.py"), kind]
            out = io.StringIO()
            code = record.record(record.parser().parse_args(given), out)
            self.assertEqual(code, 0, out.getvalue())
            parts, said = self.check(folder, 500)
            self.assertEqual(len(parts), 1, said)
            self.assertGreater(int(parts[0].split()[2]), 8)
            self.assertEqual(self.check(folder, 0), ([], said))

    def test_ddp(self):
        self.in_parts("ddp")

    def test_fsdp2(self):
        self.in_parts("fsdp2")


class Ends(unittest.TestCase):

    def ended(self, mistake, *texts, **who):
        begin = time.monotonic()
        code, report = judge("ddp_no_sync.py", mistake, **who)
        self.assertEqual(code, 1, report)
        for text in texts:
            self.assertIn(text, report)
        print(f"{mistake}: {time.monotonic() - begin:.1f} s", file=sys.stderr)

    def test_raise(self):
        self.ended("raise", "rank 1 exited with code 1", "ValueError: a bad batch")

    def test_exit(self):
        self.ended("exit", "rank 1 exited with code 5", "sys.exit(5)")

    def test_die(self):
        self.ended("die", "rank 1 killed by SIGSEGV")

    def test_silent(self):
        self.ended("silent", "exited before the end of its program")

    def test_hang(self):
        self.ended("hang", "no rank went on", "--- rank 1", "in end_badly")

    def test_spin(self):
        self.ended("spin", "no rank went on", "--- rank 1", "in end_badly")

    def test_hang_in_native_code(self):
        self.ended("native", "no rank went on", "--- rank 1", "in end_badly")

    def test_lock(self):
        self.ended("lock", "no rank went on", "--- rank 1", "in end_badly")

    def test_chatter(self):
        self.ended("chatter", "no rank went on", "--- rank 1", "in end_badly")

    def test_raise_of_rank_0_of_four(self):
        self.ended("raise", "rank 0 exited with code 1", "a bad batch", ranks=4, culprit=0)

    def test_hang_of_rank_0_of_four(self):
        self.ended("hang", "no rank went on", "--- rank 0", "in end_badly", ranks=4, culprit=0)

    def test_fork(self):
        code, report = judge("ddp_no_sync.py", "fork")
        self.assertEqual(code, 0, report)


class Unsupported(unittest.TestCase):
    def refused(self, what, sentence):
        code, report = judge("unsupported.py", what, "--cuda-names")
        self.assertEqual(code, 1, report)
        self.assertIn(sentence, report)

    def test_compile(self):
        self.refused("compile", "TORCHDYNAMO_DISABLE=1")

    def test_graph(self):
        self.refused("graph", "CUDA graphs are not supported")

    def test_transformer_engine(self):
        self.refused("transformer_engine", "TransformerEngine needs CUDA")


class Usage(unittest.TestCase):

    def test_no_script(self):
        self.assertEqual(record.main(["-n", "2", "/no/such.py"]), record.USAGE_ERROR)

    def test_no_ranks(self):
        script = str(SCRIPTS / "pipeline_1f1b.py")
        self.assertEqual(record.main(["-n", "0", script]), record.USAGE_ERROR)

    def test_no_command(self):
        script = str(SCRIPTS / "pipeline_1f1b.py")
        arguments = ["--shardproof", "/no/such/command", script]
        self.assertEqual(record.main(arguments), record.USAGE_ERROR)


if __name__ == "__main__":
    unittest.main(verbosity=2)
