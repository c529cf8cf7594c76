#!/usr/bin/env python3
"""Which memory is asked to be in large pages, and that it holds what it held.

usage: large_pages_test.py
"""

import mmap
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[1]))
from shardproof.torch.run import large_pages

MIB = 1 << 20


class Pages(unittest.TestCase):

    def test_only_whole_pages_inside_a_range(self):
        self.assertEqual(large_pages.whole_pages(1 * MIB, 7 * MIB), (2 * MIB, 6 * MIB))
        self.assertEqual(large_pages.whole_pages(2 * MIB, 6 * MIB), (2 * MIB, 6 * MIB))
        begin, end = large_pages.whole_pages(2 * MIB + 1, 4 * MIB - 1)
        self.assertGreaterEqual(begin, end)

    def test_memory_stays_as_it_is(self):
        held = mmap.mmap(-1, 8 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        text = bytes(range(256)) * (len(held) // 256)
        held.write(text)
        self.assertGreaterEqual(large_pages.collapse(), 6 * MIB)
        self.assertEqual(held[:], text)


if __name__ == "__main__":
    unittest.main()
