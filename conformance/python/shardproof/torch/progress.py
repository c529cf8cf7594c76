"""For how long has a run not gone on? Waiting and working without an event count each for
themselves, so that a machine that is busy with other things is no hang.
"""

import os
import pathlib

_SAMPLE = 1.0  # seconds between looks at the processes' times
_AT_WORK = 0.02  # share of one CPU from which on a rank works
_TICK = os.sysconf("SC_CLK_TCK")


def _times_of_groups():
    """CPU seconds of the running processes of each process group."""
    seconds = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # man 5 proc: after the name in brackets state, ppid, pgrp, ... utime is field 14, stime
            # 15.
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended
        group = int(fields[2])
        seconds[group] = seconds.get(group, 0) + (int(fields[11]) + int(fields[12])) / _TICK
    return seconds


class Progress:
    """Of ranks that are each a process group of their own, by the number of their first process."""

    def __init__(self, groups, now):
        self._groups = groups
        self._sampled = self._last = now  # last: when a trace grew or a rank worked
        self._before = _times_of_groups()
        self._worked = dict.fromkeys(groups, 0.0)  # CPU seconds since a trace grew

    def seconds_without(self, grew, now):
        """Seconds without progress, given whether a trace grew since the last call."""
        if grew:
            self._last = now
            self._worked = dict.fromkeys(self._groups, 0.0)
        if now - self._sampled >= _SAMPLE:
            self._sample(now)
        return max(now - self._last, *self._worked.values())

    def _sample(self, now):
        times = _times_of_groups()
        for group in self._groups:
            spent = max(0.0, times.get(group, 0) - self._before.get(group, 0))
            self._worked[group] += spent
            if spent >= _AT_WORK * (now - self._sampled):
                self._last = now
        self._before, self._sampled = times, now
