"""Published faults of DeepSpeed, put back at run time (faults_deepspeed.py): each is found, and what
finds it is silent without it.
"""

import importlib.util
import unittest

from judged import found


@unittest.skipIf(
    importlib.util.find_spec("deepspeed") is None,
    "deepspeed is not installed: pip install deepspeed==0.19.8",
)
class Faults(unittest.TestCase):
    def test_published_faults_are_found(self):
        from faults_deepspeed import FAULTS, engine_with

        clean = {}  # (case, side stream) -> what is found without a fault
        for fault in FAULTS:
            with self.subTest(f"{fault.source}: {fault.name}"):
                key = (fault.case, fault.side_stream)
                if key not in clean:
                    clean[key] = found(engine_with(lambda: None, fault.side_stream), fault.case)
                self.assertNotIn(fault.finds, clean[key])
                got = found(engine_with(fault.make, fault.side_stream), fault.case)
                self.assertIn(fault.finds, got)


if __name__ == "__main__":
    unittest.main(verbosity=2)
