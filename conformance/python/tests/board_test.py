"""The board through which bytes go from rank to rank: order, sizes, ranks that are gone, memory.

usage: board_test.py; needs torch.
"""

import concurrent.futures
import os
import threading
import time
import unittest

import torch

from shardproof.torch.device import native


def _boards(size):
    """Of each rank; here they are threads of one process."""
    first = native.Board(size)
    return [first] + [native.Board(first.path(), rank, size) for rank in range(1, size)]


def _together(boards, work):
    """work(rank, board) of all ranks at once: what each answers, or its exception."""

    def outcome(rank):
        try:
            return work(rank, boards[rank])
        except RuntimeError as error:
            return error

    with concurrent.futures.ThreadPoolExecutor(len(boards)) as pool:
        return list(pool.map(outcome, range(len(boards))))


def _gather(rank, board, value, size):
    board.post("gather", [torch.tensor([value])])
    got = []
    for other in range(size):
        into = torch.empty(1, dtype=torch.int64)
        board.read(other, 0, into)
        got.append(into.item())
    board.end()
    return got


class Collectives(unittest.TestCase):
    def test_posts_are_those_of_their_operation(self):
        rounds, size = 200, 3

        def work(rank, board):
            return [_gather(rank, board, 10 * i + rank, size) for i in range(rounds)]

        wanted = [[10 * i + rank for rank in range(size)] for i in range(rounds)]
        self.assertEqual(_together(_boards(size), work), [wanted] * size)

    def test_a_post_stays_until_all_have_read_it(self):
        """Who is ahead posts the next operation meanwhile."""
        goes_on = threading.Event()

        def work(rank, board):
            board.post("x", [torch.tensor([10])])
            if rank == 0:
                board.end()
                goes_on.set()
            else:
                goes_on.wait()
                time.sleep(0.05)  # for a board that is wrong to show it
            into = torch.empty(1, dtype=torch.int64)
            if rank == 1:
                board.read(0, 0, into)
                board.end()
            board.post("x", [torch.tensor([20])])
            board.end()
            return into.item() if rank else 10

        self.assertEqual(_together(_boards(2), work), [10, 10])

    def test_another_operation_is_an_error_on_every_rank(self):
        def work(rank, board):
            try:
                board.post(["all_gather of 4", "all_reduce of 4"][rank], [])
            finally:
                board.end()

        for rank, error in enumerate(_together(_boards(2), work)):
            self.assertIn("the ranks issue different operations; this one: all_", str(error), rank)

    def test_another_size_is_an_error_that_names_both(self):
        def work(rank, board):
            board.post("x", [torch.zeros(2 + rank)])
            if rank == 0:
                board.read(1, 0, torch.zeros(2))

        error = _together(_boards(2), work)[0]
        self.assertIn("rank 1 of the communicator brings 12 bytes where rank 0 wants 8", str(error))

    def test_a_part_that_nobody_posted_is_an_error(self):
        def work(rank, board):
            board.post("x", [torch.zeros(1)])
            board.read(1 - rank, 1, torch.zeros(1))

        for error in _together(_boards(2), work):
            self.assertIn("brings 0 bytes where", str(error))

    def test_memory_of_a_large_post_comes_back(self):
        (board,) = _boards(1)
        file = os.open(board.path(), os.O_RDONLY)
        for elements, most in ((1 << 20, 9 << 20), (1, 1 << 20)):
            for _ in range(2):
                board.post("x", [torch.zeros(elements)])
                board.end()
            self.assertLess(os.fstat(file).st_blocks * 512, most)
        os.close(file)


class Messages(unittest.TestCase):
    def test_many_at_once_both_ways_come_in_order(self):
        count = 20

        def work(rank, board):
            into = [torch.zeros(i + 1) for i in range(count)]
            sends = [(True, 1 - rank, torch.full((i + 1,), 100.0 * rank + i)) for i in range(count)]
            board.exchange(sends + [(False, 1 - rank, one) for one in into])
            return [one.unique().tolist() for one in into]

        got = _together(_boards(2), work)
        self.assertEqual(got[0], [[100.0 + i] for i in range(count)])
        self.assertEqual(got[1], [[0.0 + i] for i in range(count)])

    def test_another_size_is_an_error(self):
        def work(rank, board):
            board.exchange([(rank == 0, 1 - rank, torch.zeros(1 + rank))])

        outcomes = _together(_boards(2), work)
        self.assertIn("brings 4 bytes where rank 1 wants 8", str(outcomes[1]))


class Leaving(unittest.TestCase):
    def test_what_was_posted_before_is_read(self):
        def work(rank, board):
            got = _gather(rank, board, rank, 2)
            board.leave()
            return got

        self.assertEqual(_together(_boards(2), work), [[0, 1]] * 2)

    def test_who_waits_for_one_that_left_is_told(self):
        boards = _boards(2)
        boards[1].leave()
        with self.assertRaisesRegex(native.Gone, "rank 1 of the communicator is gone"):
            boards[0].post("x", [])
        with self.assertRaisesRegex(native.Gone, "rank 1"):
            boards[0].exchange([(False, 1, torch.zeros(1))])

    def test_who_waits_for_a_process_that_ended_is_told(self):
        first = native.Board(2)
        child = os.fork()
        if child == 0:
            other = native.Board(first.path(), 1, 2)
            other.wait_for_all()
            os._exit(0)
        first.wait_for_all()
        with self.assertRaisesRegex(native.Gone, "rank 1"):
            first.post("x", [])
        os.waitpid(child, 0)

    def test_a_path_that_is_not_there_is_named(self):
        with self.assertRaisesRegex(RuntimeError, "/nowhere/board.*No such file"):
            native.Board("/nowhere/board", 1, 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
