"""Cases, some at a time: torch is imported once, every rank of a case is a fork of this process."""

import os
import pathlib
import shutil
import sys
import time

from shardproof import model
from shardproof.torch import supervise
from shardproof.torch.fixture.case import Case
from shardproof.torch.run import declined, training_loop


class RunningCase:
    """A case whose ranks play it, in a folder of its own. ModelError: no such case.

    patience: seconds after which a run in which no rank does anything is ended.
    """

    def __init__(self, engine, case_id, folder, patience):
        self.id, self._folder = case_id, folder
        self._facts = model.case_facts(case_id)
        self._supervisor = None  # of ranks, if the engine takes the case
        shutil.rmtree(folder, ignore_errors=True)
        pathlib.Path(folder).mkdir(parents=True)
        why = declined.reason(engine, Case(self._facts, 0))
        if why:
            declined.write(engine, self._facts, folder, why)
            return
        sys.stdout.flush()
        sys.stderr.flush()
        self._supervisor = supervise.Supervisor(folder, self._facts["world"], patience)
        self._supervisor.start(lambda rank: _be_rank(engine, self._facts, rank, folder))

    def look(self):
        """What went wrong, "" if nothing did; None while it goes on."""
        outcome = self._supervisor and self._supervisor.look()
        if self._supervisor and not outcome:
            return None
        return self._conclude(outcome) if outcome else ""

    def kill(self):
        """Ends its ranks."""
        if self._supervisor:
            self._supervisor.kill()

    def _conclude(self, outcome):
        supervise.end_traces(outcome, lambda rank: declined.header(self._facts, rank))
        if not outcome.why:
            return ""
        logs = [_log(self._folder, rank) for rank in range(self._facts["world"])]
        texts = {rank: log.read_text(errors="replace") for rank, log in enumerate(logs) if log.exists()}
        said = [f"--- {names}, log\n{_end(text)}" for names, text in supervise.alike(texts) if text]
        return "\n".join([outcome.why, *said, outcome.stacks()])


def run_case(engine, case_id, folder, patience=20.0):
    """Runs one case; what went wrong, "" if nothing did."""
    ((_, why),) = run_cases(engine, [(case_id, folder)], 1, patience)
    return why


def run_cases(engine, cases, jobs, patience=20.0):
    """Runs (id, folder) after (id, folder), `jobs` of them at a time; yields (id, what went wrong) as they end."""
    waiting, running = list(reversed(cases)), []
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                case_id, folder = waiting.pop()
                running.append(RunningCase(engine, case_id, folder, patience))
            ended = [(case, why) for case in running if (why := case.look()) is not None]
            running = [case for case in running if case not in [c for c, _ in ended]]
            yield from ((case.id, why) for case, why in ended)
            if not ended:
                time.sleep(supervise.POLL)
    finally:
        for case in running:
            case.kill()


def _log(folder, rank):
    """What a rank printed."""
    return pathlib.Path(folder) / f"log.{rank:05d}"


def _end(text, most=3000):
    """Its last lines."""
    tail = text[-most:]
    return text if len(text) <= most else tail.partition("\n")[2] or tail


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
        TORCH_FR_BUFFER_SIZE="0",  # torch's flight recorder takes stacks of what is in the trace
    )
    training_loop.play(engine, facts, rank, folder)
    return 0
