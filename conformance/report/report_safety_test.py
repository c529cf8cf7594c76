#!/usr/bin/env python3
"""Do readers of a report survive hostile texts? report_safety_test.py HOSTILE_REPORTS

Of each report: junit.xml parses as XML 1.0 and has its test cases; every line of report.jsonl parses, is ASCII, and the
footer is last where the run ended; summary.md has its headings and fences and nothing else that Markdown reads as one;
the console has no control character but newlines, and no bidi mark.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

_COUNT = 2000
# Controls but newline; bidi marks, zero width, separators; what is no character. Of all formats.
_HAZARD = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufdd0-\ufdef"
                     "\ufff0-\ufffb\ufffe\uffff\U000e0000-\U000e0fff]")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[^`]*$")


class Wrong(Exception):
    pass


def expect(holds, what):
    if not holds:
        raise Wrong(what)


def read(path):
    text = path.read_bytes().decode("utf-8")  # strict
    found = _HAZARD.search(text)
    expect(not found, f"{path.name} has U+{ord(found[0]):04X}" if found else "")
    return text


def check_junit(text, cases):
    root = xml.fromstring(text)
    found = [case for suite in root for case in suite if case.tag == "testcase"]
    expect(root.tag == "testsuites" and len(found) == cases == int(root.get("tests")), "junit.xml has other test cases")
    expect(all(int(suite.get("tests")) == sum(case.tag == "testcase" for case in suite) for suite in root), "a suite counts others")
    expect(all(suite[0].tag == "properties" for suite in root), "a suite has no properties")
    expect(all(child.tag in ("failure", "error", "skipped", "system-out") for case in found for child in case), "junit.xml has other tags")


def check_lines(text, ended):
    expect(text.isascii() and text.endswith("\n"), "report.jsonl is no ASCII, or cut")
    rows = [json.loads(line) for line in text[:-1].split("\n")]
    expect("shardproof_report" in rows[0], "report.jsonl has no header")
    expect(all("case" in row for row in rows[1:-1]), "report.jsonl has other lines")
    expect(("end" in rows[-1]) == ended, "report.jsonl has a footer only if the run ended")


def check_markdown(text, fences, headings):
    """Blocks as CommonMark sees them, as far as these matter."""
    fence, found_fences, found_headings, listed = None, 0, 0, False
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and line.strip() == mark[1]:
                fence = None
            continue
        if mark:
            fence, found_fences = mark[1], found_fences + 1
            continue
        found_headings += line.startswith("#")
        if line:  # a list of ours stands below its sentence
            listed = line == "The same in" or listed and line.startswith("- ")
        if listed and line.startswith("- "):
            line = line[2:]
        expect(not re.match(r" {0,3}(=+|-+)\s*$|\s{4,}\S|\s*[-+*]\s|\s*\d+[.)]\s", line), f"markup in {line!r}")
        bare = re.sub(r"\\.", "", re.sub(r"^#+ ", "", line))
        bare = re.sub(r"^\| (.*) \| \d+ \| (.*) \|$", r"\1 \2", bare)
        table = re.fullmatch(r"\| [a-z-]+ \| \w+ \||(\|---){2,3}\||\| broken \| cases \| smallest case \|", line)
        expect(table or not re.search(r"[`*_<>\[\]|~#\\]", bare), f"markup in {line!r}")
    expect(fence is None, "a fence is open at the end of summary.md")
    expect((found_fences, found_headings) == (fences, headings),
           f"{found_fences} fences and {found_headings} headings in summary.md, not {fences} and {headings}")


def main():
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        listed = subprocess.run([sys.argv[1], folder, str(_COUNT)], stdout=subprocess.PIPE, check=True, text=True)
        rows = listed.stdout.splitlines()
        for row in rows:
            name, cases, fences, headings, end = row.split()
            here = pathlib.Path(folder) / name
            try:
                check_junit(read(here / "junit.xml"), int(cases))
                check_lines(read(here / "report.jsonl"), end == "ended")
                check_markdown(read(here / "summary.md"), int(fences), int(headings))
                expect(read(here / "console.txt").endswith("\n"), "the console ends within a line")
                expect(len(list(here.iterdir())) == 4, "files are left over")
            except (Wrong, UnicodeDecodeError, ValueError, xml.ParseError) as error:
                wrong += 1
                if wrong <= 5:
                    print(f"report {name}: {type(error).__name__}: {error}")
    print(f"{len(rows)} reports, {wrong} wrong")
    return 1 if wrong or len(rows) != _COUNT else 0


if __name__ == "__main__":
    sys.exit(main())
