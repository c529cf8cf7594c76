"""One case after another: torch is imported once, every rank of a case is a fork of this process."""

import os
import pathlib
import shutil
import sys

from shardproof import model
from shardproof.torch import supervise
from shardproof.torch.fixture.case import Case
from shardproof.torch.run import declined, training_loop


def run_case(engine, case_id, folder, patience=20.0):
    """Runs one case into a folder of its own; answers what went wrong, "" if nothing did. ModelError: no such case.

    patience: seconds after which a run in which no rank does anything is ended.
    """
    facts = model.case_facts(case_id)
    shutil.rmtree(folder, ignore_errors=True)
    pathlib.Path(folder).mkdir(parents=True)
    why = declined.reason(engine, Case(facts, 0))
    if why:
        declined.write(engine, facts, folder, why)
        return ""
    sys.stdout.flush()
    sys.stderr.flush()
    outcome = supervise.Supervisor(folder, facts["world"], patience).run(
        lambda rank: _be_rank(engine, facts, rank, folder)
    )
    supervise.end_traces(outcome, lambda rank: declined.header(facts, rank))
    if not outcome.why:
        return ""
    said = [
        f"--- rank {rank}, its log\n{_log(folder, rank).read_text(errors='replace')[-3000:]}"
        for rank in range(facts["world"])
        if _log(folder, rank).exists()
    ]
    return "\n".join([outcome.why, *said, outcome.stacks()])


def _log(folder, rank):
    """What a rank printed."""
    return pathlib.Path(folder) / f"log.{rank:05d}"


def _be_rank(engine, facts, rank, folder):
    """In the child; its exit code."""
    log = os.open(_log(folder, rank), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.update(
        RANK=str(rank),
        WORLD_SIZE=str(facts["world"]),
        LOCAL_RANK=str(rank),
        GLOO_SOCKET_IFNAME="lo",
    )
    training_loop.play(engine, facts, rank, folder)
    return 0
