#!/usr/bin/env python3
"""The rules of the house, over all sources that git tracks: ci/house/check.py [RULE...]; all unless named.

  folders     at the top lie the packages and nothing else
  includes    no circles between folders; reference/ sees only conformance/abi/, conformance/ none of reference/
  formatting  clang-format changes nothing
  shape       functions have at most 60 lines and a complexity of at most 20
  definitions no two types share a name
  repeats     no six lines stand in two places
  words       no word comes back that was given up because it meant two things

known.txt lists what breaks a rule and is to be repaired: a line "RULE KEY" each. What is listed is not reported; a line
whose problem is gone is, so that the list only shrinks. Exit status: 0 all kept, 1 not, 3 usage.
"""

import pathlib
import sys

sys.dont_write_bytecode = True  # the folder of the sources stays as it is

import definitions
import folders
import formatting
import includes
import repeats
import shape
import tree
import words

RULES = {
    "folders": folders.problems,
    "includes": includes.problems,
    "formatting": formatting.problems,
    "definitions": definitions.problems,
    "shape": shape.problems,
    "repeats": repeats.problems,
    "words": words.problems,
}


def read_known(text):
    """Pairs of rule and key, of a list with # comments."""
    lines = (line.partition("#")[0].split(maxsplit=1) for line in text.splitlines())
    return {(line[0], " ".join(line[1].split())) for line in lines if line}


def broken(rule, sources, known):
    """What there is to say of one rule: problems that are not known, and known ones that are gone."""
    listed = {key for of, key in known if of == rule}
    seen, found = set(), []
    for key, message in RULES[rule](sources):
        seen.add(key)
        if key not in listed:
            found.append(message)
    gone = [f"ci/house/known.txt: the problem is gone, so take the line out: {rule} {key}"
            for key in sorted(listed - seen)]
    return found + gone


def main(arguments):
    rules = arguments or list(RULES)
    if not set(rules) <= set(RULES):
        print(__doc__, file=sys.stderr)
        return 3
    folder = pathlib.Path(__file__).resolve().parent
    sources = tree.Tree(folder.parents[1])
    known = read_known((folder / "known.txt").read_text(encoding="utf-8"))
    strangers = sorted(rule for rule, _ in known if rule not in RULES)
    total = len(strangers)
    for rule in strangers:
        print(f"ci/house/known.txt: there is no rule {rule}")
    for rule in rules:
        found = broken(rule, sources, known)
        total += len(found)
        for message in found:
            print(f"{rule}: {message}")
    print(f"{len(sources.sources())} sources, {len(rules)} rules, {total} problems")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
