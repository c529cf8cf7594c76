#!/usr/bin/env python3
"""usage: model_test.py LIBSHARDPROOF_MODEL SHARDPROOF_H: shardproof.model without torch: facts, tables, digests,
refusals; what the package repeats of the interface for engines.
"""

import ast
import ctypes
import os
import pathlib
import re
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[1]))

from shardproof import model


class Facts(unittest.TestCase):
    def test_say_what_is_asked(self):
        facts = model.case_facts("w4.zero3.n2.k2.tied")
        self.assertEqual(facts["world"], 4)
        asked = facts["instances"][0]
        self.assertEqual(asked["knobs"]["num_optimizer_instances"], "2")
        self.assertEqual(asked["traits"], {"tied": "1"})
        self.assertIn(["intra_dp_cp", [2, 3]], asked["groups"])

    def test_a_wrong_id_is_named(self):
        with self.assertRaisesRegex(model.ModelError, "nonsense"):
            model.case_facts("w2.nonsense")

    def test_a_library_that_is_missing_is_named(self):
        before = os.environ["SHARDPROOF_MODEL"]
        os.environ["SHARDPROOF_MODEL"] = "/nowhere/lib.so"
        try:
            with self.assertRaisesRegex(model.ModelError, "/nowhere/lib.so"):
                model.case_facts("w2.ddp")
        finally:
            os.environ["SHARDPROOF_MODEL"] = before


class Nodes(unittest.TestCase):
    def setUp(self):
        self.model = model.Model("w2.ddp", 0, 1)
        self.node = next(i for i, n in enumerate(self.model.nodes) if n[2].endswith("fc1"))
        self.memory = []

    def tables(self):
        """Buffers of the forward node, fp32, all ones."""
        found = [{}, {}, {}, {}]
        for table, _, i in self.model.nodes[self.node][3]:
            shape = self.model.params[i][4] if table == model.PARAM else self.model.values[i][3:5]
            count = 1
            for size in shape:
                count *= size
            self.memory.append((ctypes.c_float * count)(*[1.0] * count))
            found[table][i] = (ctypes.addressof(self.memory[-1]), count, model.F32)
        return found

    def test_place_of_the_rank(self):
        self.assertEqual((self.model.data_rank, self.model.data_ranks), (1, 2))

    def test_programs_are_lists_of_nodes(self):
        program = self.model.program(0, 1)
        self.assertIn(self.node, program)

    def test_compute(self):
        self.model.compute(model.NodeCall(node=self.node), self.tables())

    def test_a_wrong_dtype_is_a_sentence(self):
        tables = self.tables()
        ((i, (address, count, _)),) = tables[model.PARAM].items()
        tables[model.PARAM][i] = (address, count, 4)
        with self.assertRaisesRegex(model.ModelError, "elements of bf16, wanted"):
            self.model.compute(model.NodeCall(node=self.node), tables)

    def test_initial_values(self):
        values = (ctypes.c_float * 4)()
        self.model.initial_value(0, ctypes.addressof(values), 4)
        self.assertTrue(any(values))
        with self.assertRaisesRegex(model.ModelError, self.model.params[0][0]):
            self.model.initial_value(0, ctypes.addressof(values), 1 << 30)

    def test_digests_are_those_of_the_format(self):
        data = (ctypes.c_uint8 * 8)(*range(8))
        self.assertEqual(model.digest(ctypes.addressof(data), 1, 8), 0x7FAC51EAB25DABC1)
        with self.assertRaisesRegex(model.ModelError, "no spf_dtype"):
            model.digest(ctypes.addressof(data), 99, 8)


class Interface(unittest.TestCase):
    def test_hooks_are_those_of_the_interface(self):
        header = HEADER.read_text()
        (body,) = re.findall(r"typedef enum \{([^}]*)\} spf_hook;", header)
        named = re.findall(r"SPF_HOOK_(\w+)(?: = (\d+))?", body)
        self.assertEqual(named[0][1], "1")
        self.assertEqual({value for _, value in named[1:]}, {""})  # from there on in order
        source = (pathlib.Path(model.__file__).parent / "torch/declaration.py").read_text()
        (hooks,) = [
            ast.literal_eval(statement.value)
            for statement in ast.parse(source).body
            if isinstance(statement, ast.Assign) and statement.targets[0].id == "HOOKS"
        ]
        self.assertEqual(list(hooks), [name for name, _ in named])


if __name__ == "__main__":
    HEADER = pathlib.Path(sys.argv.pop(2))
    os.environ["SHARDPROOF_MODEL"] = str(pathlib.Path(sys.argv.pop(1)).absolute())
    unittest.main()
