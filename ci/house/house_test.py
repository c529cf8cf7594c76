#!/usr/bin/env python3
"""Each rule of the house, on small made-up trees: what it must find, and what it must let pass."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True

import check
import definitions
import folders
import formatting
import includes
import repeats
import shape
import tree
import words


class HouseTest(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.root = pathlib.Path(self._folder.name)

    def write(self, **files):
        """Made-up files: a__b__c_h="..." is a/b/c.h."""
        for name, text in files.items():
            path = self.root / (name.replace("__", "/")[::-1].replace("_", ".", 1)[::-1])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def keys(self, rule):
        return [key for key, _ in rule(tree.Tree(self.root))]


class TreeTest(HouseTest):
    def test_only_what_git_tracks_is_read(self):
        self.write(a__b_h="", a__c_h="")
        for command in (["init", "-q"], ["add", "a/b.h"]):
            subprocess.run(["git", *command], cwd=self.root, check=True, env={**os.environ, "HOME": str(self.root)})
        self.assertEqual(tree.Tree(self.root).files, ["a/b.h"])

    def test_an_archive_without_git_is_walked(self):
        self.write(a__b_h="", a__c_md="", **{"bazel-out__d_h": ""})
        self.assertEqual(tree.Tree(self.root).files, ["a/b.h", "a/c.md"])
        self.assertEqual(tree.Tree(self.root).sources(), ["a/b.h"])

    def test_comments_and_literals_are_no_code(self):
        text = """f("a // {", '"', 1'000);  // {\n/* { */ R"x({")x" #\n#if {\n"""
        code = tree.code(text)
        self.assertNotIn("{", code)
        self.assertIn("1'000)", code)
        self.assertEqual(code.count("\n"), text.count("\n"))

    def test_a_comment_that_goes_on_in_the_next_line_is_one(self):
        self.assertEqual(tree.without_comments("a; // b \\\nc;\nd;").split(), ["a;", "d;"])


class FoldersTest(HouseTest):
    def test_a_report_that_was_left_at_the_top_is_found(self):
        self.write(conformance__a_h="", ci__b_py="", a_md="", **{".github__c_md": "", "report__d__e_html": ""})
        self.assertEqual(self.keys(folders.problems), ["report/d/e.html"])


class IncludesTest(HouseTest):
    def test_a_circle_of_three_folders_is_found_with_the_lines_that_make_it(self):
        self.write(a__x_h='#include "b/x.h"\n', b__x_h='#include "c/x.h"\n', c__x_h='// x\n#include "a/y.h"\n',
                   a__y_h="")
        (key, message), = includes.problems(tree.Tree(self.root))
        self.assertEqual(key, "a b c")
        self.assertIn("c/x.h:2 includes a/y.h", message)

    def test_a_folder_below_another_is_a_folder_of_its_own(self):
        self.write(a__x_h='#include "a/b/x.h"\n', a__b__x_h='#include "a/y.h"\n', a__y_h="")
        self.assertEqual(self.keys(includes.problems), ["a a/b"])

    def test_two_circles_that_share_no_folder_are_two(self):
        self.write(a__x_h='#include "b/x.h"\n#include "c/x.h"\n', b__x_h='#include "a/x.h"\n',
                   c__x_h='#include "d/x.h"\n', d__x_h='#include "c/x.h"\n')
        self.assertEqual(self.keys(includes.problems), ["c d", "a b"])

    def test_a_chain_and_files_of_one_folder_are_no_circle(self):
        self.write(a__x_h='#include "b/x.h"\n#include "c/x.h"\n', b__x_h='#include "c/x.h"\n',
                   c__x_h='#include "c/y.h"\n', c__y_h='#include "c/x.h"\n')
        self.assertEqual(self.keys(includes.problems), [])

    def test_includes_in_comments_and_of_the_machine_do_not_count(self):
        self.write(a__x_h='#include "b/x.h"\n#include <vector>\n', b__x_h='// #include "a/x.h"\n/*\n#include "a/x.h"\n*/')
        self.assertEqual(self.keys(includes.problems), [])

    def test_reference_sees_only_the_interface(self):
        self.write(reference__x_h='#include "conformance/abi/a.h"\n#include "conformance/host/h.h"\n',
                   conformance__abi__a_h="", conformance__host__h_h="")
        self.assertEqual(self.keys(includes.problems), ["reference/x.h conformance/host/h.h"])

    def test_conformance_sees_none_of_reference(self):
        self.write(conformance__a__x_h='#include "reference/b/x.h"\n', reference__b__x_h="")
        self.assertEqual(self.keys(includes.problems), ["conformance/a/x.h reference/b/x.h"])

    def test_angle_brackets_hide_nothing(self):
        self.write(conformance__a__x_h="#include <reference/b/x.h>\n", reference__b__x_h="")
        self.assertEqual(self.keys(includes.problems), ["conformance/a/x.h reference/b/x.h"])

    def test_a_file_that_is_not_there_is_found(self):
        self.write(a__x_h='#include "b/x.h"\n')
        self.assertEqual(self.keys(includes.problems), ["a/x.h b/x.h"])

    def test_headers_of_the_interface_are_found_by_name(self):
        self.write(examples__x_c='#include "util.h"\n', conformance__abi__util_h="")
        self.assertEqual(self.keys(includes.problems), [])


class FormattingTest(HouseTest):
    def test_only_what_clang_format_would_change_is_found(self):
        self.write(good_cc="int a;\n", bad_cc="int a;\nint  b;\n")
        (self.root / ".clang-format").write_text("BasedOnStyle: Google\n", encoding="utf-8")
        (key, message), = formatting.problems(tree.Tree(self.root))
        self.assertEqual(key, "bad.cc")
        self.assertIn("bad.cc:2", message)


def function(lines, condition="true", head="void F() {"):
    return "\n".join([head] + [f"  if ({condition}) G();"] * (lines - 2) + ["}"]) + "\n"


class ShapeTest(HouseTest):
    def found(self, text):
        return [(f.name, f.lines, f.complexity) for f in shape.functions(text)]

    def test_61_lines_are_too_many_and_60_are_not(self):
        body = "\n" * 59
        self.write(long_cc="void F() {" + body + "\n}\n", short_cc="void F() {" + body + "}\n")
        self.assertEqual(self.keys(shape.problems), ["long.cc F"])

    def test_a_complexity_of_21_is_too_much_and_20_is_not(self):
        self.write(much_cc=function(22), little_cc=function(21))
        self.assertEqual(self.keys(shape.problems), ["much.cc F"])

    def test_every_branch_counts(self):
        self.assertEqual(self.found(
            "int A::F(int x) const {\n  for (;;) {\n    while (x && y || z) x = y ? 1 : 2;\n  }\n"
            "  switch (x) {\n    case 1:\n    case 2:\n  }\n  try {\n  } catch (...) {\n  }\n}\n"), [("A::F", 12, 9)])

    def test_a_reference_is_no_operator(self):
        self.assertEqual(self.found("void F(T&& a) {\n  auto&& b = a;\n}\n"), [("F", 3, 1)])

    def test_branches_in_lambdas_count_and_those_in_comments_and_literals_do_not(self):
        self.assertEqual(self.found('void F() {\n  G([] { if (a) {} });  // if\n  H("if {");\n}\n'), [("F", 4, 2)])

    def test_functions_of_all_kinds_are_found(self):
        text = """
namespace a::b {
enum class E : int { kA, kB };
struct S final : public T {
  S() : a_{1}, b_([] { return 2; }) { G(); }
  ~S() override { G(); }
  bool operator()(int x) const { return x; }
  std::function<void(int)> Get() && noexcept { return f_; }
 private:
  int a_{3};
};
template <typename T, int n = 3>
auto F(T x) -> decltype(x) {
  return x;
}
const int kTable[] = {1, 2};
const auto kLambda = [](int x) { return x ? 1 : 2; };
extern "C" {
int C(void) { return 1; }
}
TEST(Suite, Case) {
  G();
}
}  // namespace a::b
"""
        self.assertEqual(self.found(text), [
            ("S", 1, 1), ("~S", 1, 1), ("operator( )", 1, 1), ("Get", 1, 1), ("F", 4, 1), ("kLambda", 1, 2),
            ("C", 1, 1), ("TEST(Suite, Case)", 3, 1)])

    def test_braces_that_do_not_match_are_said(self):
        self.write(open_cc="void F() {\n", shut_cc="}\n")
        self.assertEqual(self.keys(shape.problems), ["unreadable open.cc", "unreadable shut.cc"])


class DefinitionsTest(HouseTest):
    def test_two_types_of_one_name_are_found(self):
        self.write(a__b_h="namespace n {\nstruct S {};\nenum class E : int { kOne };\n}",
                   c__d_h="namespace n { class S final : public T { }; }", e__f_cc="namespace n { enum class E {}; }")
        self.assertEqual(self.keys(definitions.problems), ["n::E", "n::S"])

    def test_what_nobody_else_sees_may_share_a_name(self):
        self.write(a__b_cc="namespace n { namespace {\nstruct S {};\n} }", c__d_cc="namespace n { struct S {}; }",
                   e__f_h="namespace n { struct T { struct S {}; };\ninline int G() { struct S {}; return 0; } }",
                   g__h_h="namespace n::m { struct S {}; }\nstruct S;", i__j_c="struct S {};", k__l_c="struct S {};")
        self.assertEqual(self.keys(definitions.problems), [])

    def test_a_member_type_is_none_of_its_owners_name(self):
        self.write(a__b_h="namespace n { class S { struct Impl; }; }", c__d_cc="namespace n { struct S::Impl {}; }")
        self.assertEqual(self.keys(definitions.problems), [])


class RepeatsTest(HouseTest):
    LINES = "".join(f"  G({i});\n" for i in range(9))

    def test_six_lines_in_two_files_are_found_with_their_places(self):
        six = "".join(self.LINES.splitlines(True)[:6])
        self.write(a_cc="int a;\n" + six, b_cc=six + "int b;\n")
        (key, message), = repeats.problems(tree.Tree(self.root))
        self.assertEqual(key, "a.cc b.cc")
        self.assertIn("a.cc:2: 6 lines stand again at b.cc:1", message)

    def test_five_lines_are_not(self):
        five = "".join(self.LINES.splitlines(True)[:5])
        self.write(a_cc=five + "int a;\n", b_cc=five + "int b;\n")
        self.assertEqual(self.keys(repeats.problems), [])

    def test_a_longer_run_is_said_once_also_within_a_file(self):
        self.write(a_cc=self.LINES + "int a;\n" + self.LINES)
        (_, message), = repeats.problems(tree.Tree(self.root))
        self.assertIn("9 lines", message)

    def test_comments_blanks_and_white_space_hide_nothing(self):
        self.write(a_cc=self.LINES, b_cc=self.LINES.replace(";\n", ";  // b\n\n").replace("  G", "G"))
        self.assertEqual(self.keys(repeats.problems), ["a.cc b.cc"])

    def test_includes_and_lone_punctuation_do_not_count(self):
        text = "".join(f"#include <{i}>\n" for i in range(9)) + "}\n" * 9
        self.write(a_cc=text, b_cc=text)
        self.assertEqual(self.keys(repeats.problems), [])

    def test_declarations_that_override_do_not_count(self):
        text = "".join(f"  void F{i}(int a,\n      int b) override;\n" for i in range(9))
        self.write(a_h=text, b_h=text)
        self.assertEqual(self.keys(repeats.problems), [])


class WordsTest(HouseTest):
    def test_a_word_that_was_given_up_is_found_in_code_pages_and_commands(self):
        self.write(a__x_h="int a;\nenum class Strategy { kEager };\n", b__y_md="`run --schedules 500`\n",
                   c__z_patch="+  PlannedTurn turn;\n", d__w_toml='source = "invariant E7"\n')
        (self.root / "ci").mkdir()
        (self.root / "ci" / "liveness").write_text("SCHEDULES=5 ./run\n", encoding="utf-8")
        self.assertEqual(self.keys(words.problems),
                         ["a/x.h enum class Strategy", "b/y.md --schedules", "c/z.patch PlannedTurn",
                          "ci/liveness SCHEDULES=", "d/w.toml invariant E7"])

    def test_it_is_said_where_and_what_instead(self):
        self.write(a__x_cc="\n\nint PartName();\n")
        (_, message), = words.problems(tree.Tree(self.root))
        self.assertEqual(message, 'a/x.cc:3: "PartName" is given up: schedule node (ScheduleNode, LayerNode)')

    def test_the_words_that_were_kept_pass(self):
        self.write(a__x_md="the 1F1B schedule; its schedule nodes; `--timings 5`; profiles E0 to E3; invariant I7\n",
                   a__y_h="enum class ShardingStrategy {}; enum class TimingPolicy {}; struct Part {};\n")
        self.assertEqual(self.keys(words.problems), [])

    def test_the_change_log_may_name_them_and_so_may_who_tries_them(self):
        self.write(**{"_github__CHANGELOG_md": "`--schedules` is `--timings`\n"})
        (self.root / "_github").rename(self.root / ".github")
        self.write(t_sh="refuses 3 'not expected: 5 --schedules' run --schedules 5\n")
        sources = tree.Tree(self.root)
        sources.files = ["t.sh", ".github/CHANGELOG.md"]
        self.assertEqual(list(words.problems(sources)), [])


class KnownTest(HouseTest):
    def broken(self, known):
        return check.broken("repeats", tree.Tree(self.root), check.read_known(known))

    def test_what_is_known_is_not_said(self):
        self.write(a_cc=RepeatsTest.LINES, b_cc=RepeatsTest.LINES)
        self.assertEqual(len(self.broken("")), 1)
        self.assertEqual(self.broken("# known\nrepeats a.cc  b.cc # soon\n"), [])
        self.assertEqual(len(self.broken("shape a.cc b.cc\n")), 1)

    def test_what_is_known_and_gone_is_said(self):
        self.write(a_cc=RepeatsTest.LINES)
        found, = self.broken("repeats a.cc b.cc\n")
        self.assertIn("take the line out: repeats a.cc b.cc", found)


if __name__ == "__main__":
    unittest.main()
