#!/usr/bin/env python3
"""Does the glossary hold each word that requirements use as the suite's own? glossary_test.py GLOSSARY.md words.toml"""

import pathlib
import re
import sys
import tomllib


def main():
    page, words = (pathlib.Path(path).read_text(encoding="utf-8") for path in sys.argv[1:])
    rows = [row for row in re.findall(r"^\| ([^|]+?) \| [^|]", page, re.M) if row != "word"]
    needed = [word["word"] for word in tomllib.loads(words)["word"]]
    wrong = [f"{word}: stands in words.toml and not in the glossary" for word in needed if word not in rows]
    wrong += [f"{word}: twice" for word in {row for row in rows if rows.count(row) > 1}]
    if rows != sorted(rows, key=str.lower):
        wrong.append("the rows are not in the order of the alphabet")
    if len(needed) < 20:
        wrong.append(f"only {len(needed)} words were found in words.toml")
    print("\n".join(wrong) or f"ok: {len(rows)} words, {len(needed)} of requirements")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
