#!/usr/bin/env python3
"""What counts as time without progress, by a clock and waits that the test makes up.

usage: progress_test.py
"""

import os
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[1]))
from shardproof.torch import progress


class Machine:
    """Threads "1" and "2", and a clock."""

    def __init__(self):
        self.now, self.waited = 0.0, {"1": 5.0, "2": 0.0}
        self.progress = progress.Progress([1, 2], self.now, lambda groups: dict(self.waited))

    def after(self, seconds, grew=False, **waits):
        """Time without progress after so many seconds, of which threads waited these shares."""
        for _ in range(seconds):
            self.now += 1
            for thread, share in waits.items():
                self.waited[thread.lstrip("t")] += share
            without = self.progress.seconds_without(grew, self.now)
        return without


class Times(unittest.TestCase):

    def test_ranks_that_sleep_work_or_print_are_stuck(self):
        self.assertEqual(Machine().after(20), 20)

    def test_growth_begins_anew(self):
        machine = Machine()
        machine.after(10)
        self.assertEqual(machine.after(1, grew=True), 0)
        self.assertEqual(machine.after(3), 3)

    def test_growth_between_looks_counts_from_there(self):
        machine = Machine()
        machine.progress.seconds_without(True, 0.75)
        self.assertEqual(machine.after(1), 0.25)

    def test_waiting_for_a_cpu_does_not_count(self):
        self.assertAlmostEqual(Machine().after(20, t1=0.75), 5)

    def test_the_longest_wait_counts_not_the_sum(self):
        self.assertAlmostEqual(Machine().after(20, t1=0.5, t2=0.5), 10)

    def test_a_rank_that_is_never_run_ends_too(self):
        self.assertAlmostEqual(Machine().after(100, t2=1.0), 5)

    def test_a_thread_that_begins_and_one_that_ends(self):
        machine = Machine()
        machine.waited = {"2": 0.0, "3": 0.5}
        self.assertEqual(machine.after(1), 0.5)

    def test_the_threads_of_this_process_are_found(self):
        waits = progress.waits_of_groups({os.getpgrp()})
        if pathlib.Path("/proc/self/schedstat").exists():
            self.assertIn(str(os.getpid()), waits)
        self.assertEqual(progress.waits_of_groups(set()), {})


if __name__ == "__main__":
    unittest.main(verbosity=2)
