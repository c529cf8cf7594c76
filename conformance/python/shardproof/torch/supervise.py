"""Starts one process a rank, notices when they stop going on, and leaves whole traces whatever
happens.

A run goes on as long as some rank's trace grows. It is stuck when none has grown for `patience`
seconds, without the time in which a rank waited for a CPU (progress.py). Where one rank died, the others have `grace` seconds.
Then every rank that is left writes the Python stack of its threads and is killed, and traces
without a footer get one (conformance/trace/FORMAT.md): `died` for a rank that ended by itself,
`aborted` for one that was ended.
"""

import ctypes
import dataclasses
import faulthandler
import json
import os
import pathlib
import re
import signal
import sys
import time
import traceback

from shardproof.torch.progress import Progress

POLL = 0.02  # seconds
_GROWTH = 0.25  # seconds between looks at how long the traces are
_STACK_ROUNDS = 50  # looks at stacks that are not written yet
_BLOCK = 1 << 14  # bytes: a trace's file is longer than what is written, and what follows is zeros
_TAIL = 1 << 14  # bytes of a trace in which its last line is sought first
_STACK_SIGNAL = signal.SIGUSR2
_PR_SET_PDEATHSIG = 1
_NUMBER = re.compile(r"0x[0-9a-f]+|(?<!line )\b\d+")  # that of a line says where a rank is
_NO_FRAME = re.compile(r"Thread \S+ \(most recent call first\):\n  <no Python frame>\n\n?")


@dataclasses.dataclass
class Rank:
    """One rank's process, and how it ended."""

    number: int
    trace: pathlib.Path
    stacks: pathlib.Path
    process: int = -1
    status: int = None  # of waitpid
    stopped: bool = False  # by the supervisor
    early: bool = False  # it ended in order, but its trace did not
    seen: int = 0  # bytes of the trace

    def grew(self):
        """Has the trace grown since the last call?"""
        before = self.seen
        try:
            with open(self.trace, "rb") as file:
                file.seek(self.seen)
                while block := file.read(_BLOCK).rstrip(b"\0"):
                    self.seen += len(block)
        except FileNotFoundError:
            pass
        return self.seen > before

    def ended_badly(self):
        return self.status is not None and self.ended_how() != ""

    def ended_how(self):
        """In words; empty: in order."""
        if self.stopped:
            return "stopped by the supervisor"
        if os.WIFSIGNALED(self.status):
            return f"killed by {signal.Signals(os.WTERMSIG(self.status)).name}"
        code = os.waitstatus_to_exitcode(self.status)
        if code:
            return f"exited with code {code}"
        return "exited before the end of its program" if self.early else ""


@dataclasses.dataclass
class Outcome:
    """What became of a run."""

    ranks: list
    why: str = ""  # empty: every rank ended in order

    def stacks(self):
        """Text: the Python stacks of the ranks that were stopped."""
        texts = {
            rank.number: _NO_FRAME.sub("", _text(rank.stacks)) or "no Python stack: it did not answer the signal\n"
            for rank in self.ranks
            if rank.stopped
        }
        return "\n".join(f"--- {names}\n{text}" for names, text in alike(texts))


def _text(path):
    return path.read_text(errors="replace") if path.exists() else ""


def alike(texts):
    """Of {rank: text} one text for all ranks whose texts differ in numbers alone: [("ranks 0, 2", the first's)]."""
    groups = {}
    for rank, text in texts.items():
        groups.setdefault(_NUMBER.sub("#", text), []).append(rank)
    return [
        (f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}", texts[ranks[0]]) for ranks in groups.values()
    ]


def _be_rank(rank, work):
    """In the child; never returns."""
    code = 1
    try:
        os.setpgid(0, 0)
        for stream in (sys.stdout, sys.stderr):  # what a rank printed outlives its end
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(line_buffering=True)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        stacks = open(rank.stacks, "w")  # kept open for the handler
        faulthandler.enable(stacks, all_threads=True)  # a fatal signal writes its stack there
        faulthandler.register(_STACK_SIGNAL, file=stacks, all_threads=True)
        code = work(rank.number)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


class Supervisor:
    """Runs work(rank) -> exit code in a forked process a rank."""

    def __init__(self, folder, world, patience=20.0, grace=5.0):
        folder = pathlib.Path(folder)
        self.patience, self.grace = patience, grace
        self.ranks = [
            Rank(r, folder / f"trace.{r:05d}.jsonl", folder / f"stacks.{r:05d}.txt")
            for r in range(world)
        ]
        self._progress = None
        self._looked = -_GROWTH  # when traces were looked at
        self._stuck = False
        self._fallen = None  # when the first rank died

    def run(self, work):
        """Starts the ranks and waits for the outcome."""
        self.start(work)
        try:
            while not (outcome := self.look()):
                time.sleep(POLL)
        except BaseException:
            self.kill()
            raise
        return outcome

    def start(self, work):
        """Forks the ranks. Who starts them looks every POLL seconds until there is an outcome, or kills them."""
        for rank in self.ranks:
            rank.process = os.fork()
            if rank.process == 0:
                _be_rank(rank, work)
        self._progress = Progress([rank.process for rank in self.ranks], time.monotonic())

    def _left(self):
        return [rank for rank in self.ranks if rank.status is None]

    def _reap(self):
        for rank in self._left():
            process, status = os.waitpid(rank.process, os.WNOHANG)
            if process:
                rank.status, rank.early = status, not _has_footer(rank.trace)

    def look(self):
        """The outcome; None while ranks go on."""
        self._reap()
        now = time.monotonic()
        if now - self._looked >= _GROWTH:
            self._looked = now
            grew = any([rank.grew() for rank in self.ranks])
            self._stuck = self._progress.seconds_without(grew, now) > self.patience
        if self._fallen is None and any(rank.ended_badly() for rank in self.ranks):
            self._fallen = now
        if self._stuck or self._fallen is not None and now - self._fallen > self.grace:
            self._stop()
        return None if self._left() else Outcome(self.ranks, self._verdict())

    def _verdict(self):
        dead = [rank for rank in self.ranks if not rank.stopped and rank.ended_how()]
        stopped = [rank for rank in self.ranks if rank.stopped]
        if dead:
            return "; ".join(f"rank {rank.number} {rank.ended_how()}" for rank in dead)
        if stopped:
            names = ", ".join(str(rank.number) for rank in stopped)
            return f"no rank went on for {self.patience:g} s; still there: {names}"
        return ""

    def _stop(self):
        for rank in self._left():
            os.kill(rank.process, _STACK_SIGNAL)
        before = None
        for _ in range(_STACK_ROUNDS):  # until all have written their stacks, and write no more
            time.sleep(0.1)
            sizes = [rank.stacks.stat().st_size for rank in self._left() if rank.stacks.exists()]
            if len(sizes) == len(self._left()) and all(sizes) and sizes == before:
                break
            before = sizes
        self._reap()
        self.kill()

    def kill(self):
        """Ends the ranks that are left, with what they started."""
        for rank in self._left():
            rank.stopped = True
            try:
                os.killpg(rank.process, signal.SIGKILL)  # and what it started
            except ProcessLookupError:
                os.kill(rank.process, signal.SIGKILL)
        for rank in self._left():
            rank.status = os.waitpid(rank.process, 0)[1]


def _whole_lines(path):
    """The trace's whole lines, as bytes; nothing if there is none."""
    try:
        data = pathlib.Path(path).read_bytes()
    except FileNotFoundError:
        return b""
    return data[: data.rstrip(b"\0").rfind(b"\n") + 1]


def last_line(path):
    """The trace's last whole line, as bytes; empty if there is none."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - _TAIL, 0))
            lines = file.read().rsplit(b"\n", 2)
    except FileNotFoundError:
        return b""
    if len(lines) == 3 and not lines[2]:  # the file ends where its text does
        return lines[1]
    return (_whole_lines(path).splitlines() or [b""])[-1]


def _has_footer(path):
    return last_line(path).startswith(b'{"end"')


def end_trace(path, header, status, reason):
    """Gives a trace that was cut off its footer; a rank that never began gets a header too. One
    that has a footer stays.
    """
    if _has_footer(path):
        return
    data = _whole_lines(path) or (json.dumps(header, separators=(",", ":")) + "\n").encode()
    events = 0
    for line in reversed(data.splitlines()):
        row = json.loads(line)
        if "e" in row:
            events = row["i"] + 1
            break
    footer = {"end": events, "status": status, "reason": reason}
    pathlib.Path(path).write_bytes(
        data + (json.dumps(footer, separators=(",", ":")) + "\n").encode()
    )


def end_traces(outcome, header_of):
    """Footers for all ranks of a run. header_of(rank): the header of a trace that never began."""
    for rank in outcome.ranks:
        status = "aborted" if rank.stopped else "died"
        reason = outcome.why if rank.stopped else rank.ended_how()
        end_trace(rank.trace, header_of(rank.number), status, reason)
