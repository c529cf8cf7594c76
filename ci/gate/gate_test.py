#!/usr/bin/env python3
"""usage: gate_test.py ARCHIVE WORKFLOW GITLAB_TEMPLATE [unittest arguments] (in the runfiles)

Does the gate gate? A made-up repository of an engine goes through the workflow and the template as they stand: their commands are run
here in the order of their jobs, by a few lines in place of GitHub and GitLab, with gh and curl that keep what they are told in files.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

import hosts

ARCHIVE, WORKFLOW, TEMPLATE = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
BUILD = "cc -std=c11 -shared -fPIC -I $SHARDPROOF/include/conformance/abi -o libddp.so ddp.c"

LESS = """  if (e->microbatches > 1)
    return h->explain(h, "one microbatch"), SPF_UNSUPPORTED;
"""


class GateTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
        with tarfile.open(ARCHIVE) as tar:
            tar.extractall(cls.folder)
        (cls.suite,) = cls.folder.glob("shardproof-*")
        examples = cls.suite / "share/shardproof/conformance/examples"
        ddp = (examples / "ddp.c").read_text()
        cls.engines = {
            "right": ddp,
            "wrong": (examples / "wrong_wait.c").read_text().replace('#include "ddp.c"', ddp),
            # It no longer takes what it took: several microbatches.
            "less": ddp.replace("  if (!(e->dp = ", LESS + "  if (!(e->dp = ", 1),
            "broken build": "#error no\n",
        }
        assert cls.engines["less"] != ddp and cls.engines["wrong"].count("spf_plugin") == ddp.count("spf_plugin")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def setUp(self):
        self.place = pathlib.Path(tempfile.mkdtemp(dir=self.folder))

    def github(self):
        inputs = {"suite": "somebody/shardproof", "build": BUILD, "engine": "libddp.so", "options": "--profile smoke"}
        return hosts.Github(WORKFLOW, ARCHIVE, self.place, inputs)

    def gitlab(self):
        variables = {"SHARDPROOF_ARCHIVE": ARCHIVE.as_uri(), "SHARDPROOF_BUILD": BUILD, "SHARDPROOF_ENGINE": "libddp.so",
                     "SHARDPROOF_OPTIONS": "--profile smoke"}
        return hosts.Gitlab(TEMPLATE, self.place, variables)

    def push(self, host, engine, request=None):
        """True: green. request: the number of a pull request, else it is the main branch."""
        return host.push({"ddp.c": self.engines[engine]}, request)

    def check_gate(self, host):
        """What both hosts must do where the main branch is green."""
        self.assertTrue(self.push(host, "right"), host.log)
        self.assertEqual(host.comments(), {})
        self.assertIn("<title>lib:libddp.so: conformant: ", host.kept("out/badge.svg"))
        self.assertFalse(self.push(host, "wrong", 7), host.log)
        (comment,) = host.comments()[7]
        self.assertRegex(comment, r"(?s)^<!-- shardproof -->\n.*not conformant: .*1 fail.*worse: 1 case with something broken")
        self.assertIn("| broken | GE-05 | 1 | w2.ddp |", comment)  # the collective that is not waited for
        self.assertIn("not conformant: 1 of", host.kept("out/badge.svg"))
        self.assertTrue(self.push(host, "right", 7), host.log)
        (comment,) = host.comments()[7]  # the same one, written anew
        self.assertIn("**shardproof: not worse**", comment)

    def test_github(self):
        self.check_gate(self.github())

    def test_gitlab(self):
        self.check_gate(self.gitlab())

    def test_nothing_to_compare_with(self):
        host = self.github()
        self.assertTrue(self.push(host, "right", 1), host.log)
        self.assertIn("Nothing to compare with", host.comments()[1][0])

    def test_lost_support_is_red(self):
        host = self.github()
        host.inputs |= {"options": "--profile core --select w2.ddp*", "shards": 1}
        self.assertTrue(self.push(host, "right"), host.log)
        self.assertFalse(self.push(host, "less", 2), host.log)
        self.assertRegex(host.comments()[2][0], r"(?s)\nconformant: .*\*\*shardproof: worse: \d+ cases? gone\*\*")
        (work,) = self.place.glob("runs/2/work-verdict-0")
        again = [self.suite / "share/shardproof/ci/gate/conclude", "reports", "earlier", "again", "--allow-worse"]
        run = subprocess.run(again, cwd=work, capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("**shardproof: worse: ", run.stdout)

    def test_a_fix_is_green(self):
        host = self.github()
        self.assertFalse(self.push(host, "wrong"), host.log)
        self.assertTrue(self.push(host, "right", 4), host.log)
        self.assertRegex(host.comments()[4][0], r"\*\*shardproof: not worse: \d+ cases? with something fixed\*\*")
        # Another change is red for what the main branch has wrong.
        self.assertFalse(self.push(host, "wrong", 5), host.log)
        self.assertIn("**shardproof: not worse**", host.comments()[5][0])

    def test_a_share_without_a_report_is_red(self):
        host = self.github()
        self.assertFalse(self.push(host, "broken build", 6), host.log)
        self.assertIn("no verdict: ", host.comments()[6][0])
        self.assertTrue(self.push(host, "right"), host.log)
        host.lose = "shardproof-report-2"
        self.assertFalse(self.push(host, "right", 6), host.log)
        self.assertIn("the report of shard 2/2 is missing", host.comments()[6][0])

    def test_what_cannot_be_compared_is_red(self):
        host = self.github()
        self.assertTrue(self.push(host, "right"), host.log)
        for report in self.place.glob("runs/1/shardproof-reports/reports/*/report.jsonl"):
            report.write_text(report.read_text().replace('"shardproof_report":1', '"shardproof_report":9'))
        self.assertFalse(self.push(host, "right", 8), host.log)
        self.assertIn("a report of another version than 1", host.comments()[8][0])

    def test_a_fork_may_not_comment(self):
        host = self.github()
        host.read_only = True
        self.assertTrue(self.push(host, "right", 9), host.log)
        self.assertEqual(host.comments(), {})

    def test_usage(self):
        gate = self.suite / "share/shardproof/ci/gate"
        for command, words in (["shard"], "usage: shard"), (["conclude", "a"], "usage: conclude"), (["earlier"], "usage: earlier"), (
                ["comment", "github", "none"], "usage: comment"), (["shard", "none.so", "r", "1/2"], "there is no engine none.so"), (
                ["conclude", "a", "b", "c", "--alow"], "no option --alow"), (["earlier", "svn", "a"], "no host svn"):
            run = subprocess.run([gate / command[0], *command[1:]], cwd=self.place, capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 3, command)
            self.assertIn(words, run.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
