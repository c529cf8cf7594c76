"""shardproof-torch run in this process, as the command's ranks are forks of it: torch is imported once."""

import contextlib
import os
import pathlib
import sys
import tempfile
import textwrap
import unittest

from shardproof.torch.run import main

# A file of an engine: fully_shard as it is; body stands before it returns.
ENGINE = """
import os, time
import shardproof.torch as sp
from torch.distributed.fsdp import fully_shard

@sp.engine(knobs={{"strategy": ["optim_grads_params"]}})
def build(case, model, device):
    for unit in model.units():
        fully_shard(unit, mesh=sp.mesh(case))
    fully_shard(model, mesh=sp.mesh(case))
    made = sp.optimizer(case, model)
{body}
    return model, made
"""


@contextlib.contextmanager
def _standard_streams(path):
    """What this process and its children print goes to a file."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, fd in enumerate(kept, 1):
            os.dup2(fd, number)
            os.close(fd)
        os.close(file)


class RunCase(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.folder = pathlib.Path(self.scratch.name)

    def run_command(self, *arguments):
        """(exit code, what was printed)."""
        log = self.folder / "log"
        with _standard_streams(log):
            code = main([str(a) for a in arguments])
        return code, log.read_text()

    def engine(self, body="", text=None):
        path = self.folder / "mine.py"
        path.write_text(text or ENGINE.format(body=textwrap.indent(textwrap.dedent(body), "    ")))
        return path

    def expect(self, code, text, *arguments):
        got, said = self.run_command(*arguments)
        self.assertEqual(
            (got, text in said), (code, True), f"wanted exit code {code} and: {text}\n{said}"
        )
        return said
