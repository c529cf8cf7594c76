"""Published faults of FSDP2 and DDP, put back at run time (faults_fsdp2.py, faults_ddp.py): each is
found, and nothing is found without it.
"""

import unittest

from judged import found


class Faults(unittest.TestCase):
    def each(self, faults):
        from faults_fsdp2 import engine_with

        clean = set()  # (case, before, setup) that were judged without a fault
        for fault in faults:
            with self.subTest(f"{fault.source}: {fault.name}"):
                key = (fault.case, fault.before, fault.setup)
                if key not in clean:
                    self.assertEqual(found(engine_with(fault, False), fault.case), set())
                    clean.add(key)
                got = found(engine_with(fault, True), fault.case, stops="/faults_")
                self.assertIn(fault.finds, got)

    def test_faults_of_fsdp2_are_found(self):
        from faults_fsdp2 import FAULTS

        self.each(FAULTS)

    def test_faults_of_ddp_are_found(self):
        from faults_ddp import FAULTS

        self.each(FAULTS)


if __name__ == "__main__":
    unittest.main(verbosity=2)
