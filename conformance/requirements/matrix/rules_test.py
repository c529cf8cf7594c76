#!/usr/bin/env python3
"""The rules of the matrix on made-up rows: witnesses stay while they hold, and there are no gaps."""

import sys
import unittest

sys.dont_write_bytecode = True

import evidence
import matrix
import table

_CITED = {"FS-01": ["numerics"], "FS-02": ["lifetime"]}
_SHOWN = {("broken", "FS-01"): ["t A.First", "t A.Second"], ("kept", "FS-01"): ["t A.Good"],
          ("broken", "FS-02"): ["t B.Bad"], ("kept", "FS-02"): ["t B.Good"]}
_FAULTS = {"FS-01": ["one", "two"], "FS-02": ["three"]}


def built(old=None, shown=_SHOWN, faults=_FAULTS):
    return table.build(["FS-01", "FS-02"], old or {}, _CITED, shown, faults)


class Matrix(unittest.TestCase):

    def test_a_written_table_is_read_as_it_was(self):
        self.assertEqual(table.parse(table.text(built())), built())

    def test_a_witness_stays_while_it_holds(self):
        old = dict(built(), **{"FS-01": ("numerics", "t A.Second", "t A.Good", "two")})
        self.assertEqual(built(old), old)
        later = {key: [test for test in tests if test != "t A.Second"] for key, tests in _SHOWN.items()}
        self.assertEqual(built(old, later)["FS-01"][1], "t A.First")

    def test_a_trace_that_breaks_nothing_any_more_is_a_gap(self):
        now = built(built(), {key: tests for key, tests in _SHOWN.items() if key != ("broken", "FS-02")})
        self.assertEqual(table.empty_cells(now), [("FS-02", "breaking_trace")])
        self.assertIn("FS-02: no breaking_trace", list(matrix.differences(built(), now)))

    def test_a_gap_is_told_where_the_table_has_it_too(self):
        gap = built(faults={"FS-02": ["three"]})
        self.assertEqual(list(matrix.differences(gap, gap)), ["FS-01: no fault"])
        self.assertEqual(list(matrix.differences(built(), built())), [])

    def test_witnesses_alone_run_where_no_trace_is_wanting(self):
        self.assertIn(("t", "B.Bad"), table.witnesses(built(), {"FS-01", "FS-02"}))
        self.assertIsNone(table.witnesses(built(shown={}), {"FS-01", "FS-02"}))
        self.assertIsNone(table.witnesses(built(), {"FS-01", "FS-02", "FS-03"}))

    def test_the_bank_is_read(self):
        faults = evidence.faults()
        self.assertIn("knob_read_and_ignored", faults["FS-43"])


if __name__ == "__main__":
    unittest.main()
