"""For how long has a run not gone on? Time in which a rank waits for a CPU does not count, so that
a machine that is busy with other things is no hang. All other time does, asleep or at work: a rank
that works a little without end is no progress.
"""

import pathlib

_SAMPLE = 1.0  # seconds between looks at the processes
_LEAST = 0.05  # share of the time that counts at least: every run that is stuck ends


def waits_of_groups(groups):
    """Seconds that each thread of these process groups has waited for a CPU, by thread."""
    waits = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # man 5 proc: after the name in brackets state, ppid, pgrp.
            if int((entry / "stat").read_text().rpartition(")")[2].split()[2]) not in groups:
                continue
            for thread in (entry / "task").iterdir():
                # Nanoseconds on a CPU, nanoseconds waiting for one. Absent: a kernel without it.
                waits[thread.name] = int((thread / "schedstat").read_text().split()[1]) / 1e9
        except OSError:
            continue  # it ended
    return waits


class Progress:
    """Of ranks that are each a process group of their own, by the number of their first process.
    `waits`: as waits_of_groups.
    """

    def __init__(self, groups, now, waits=waits_of_groups):
        self._groups, self._waits = frozenset(groups), waits
        self._sampled = self._grown = now
        self._before = waits(self._groups)
        self._without = 0.0

    def seconds_without(self, grew, now):
        """Seconds without progress at the last look, given whether a trace grew since the last
        call.
        """
        if grew:
            self._grown, self._without = now, 0.0
        if now - self._sampled >= _SAMPLE:
            self._sample(now)
        return self._without

    def _sample(self, now):
        waits = self._waits(self._groups)
        # The longest wait of one thread, not the sum: two ranks that wait in turns are not one that
        # never ran.
        waited = max((waits[t] - self._before.get(t, 0.0) for t in waits), default=0.0)
        time = now - self._sampled
        counted = max(time - waited, _LEAST * time)
        self._without += min(counted, now - self._grown)
        self._before, self._sampled = waits, now
