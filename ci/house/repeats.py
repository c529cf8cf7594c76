"""Do the same six lines stand in two places?

Blank lines, comments, includes, lone punctuation and the lines that open and close namespaces do not count, nor does
white space, nor do declarations that override: whoever implements an interface writes them again. A run that is longer
than six lines is reported once.
"""

import collections
import re

import tree

RUN = 6

_THIN = re.compile(r"[\W_]*|#.*|(?:inline )?namespace\b.*|using [\w:]+;|extern \"C\" {|(?:public|private|protected):")


def lines(text):
    """Pairs of line number and line, of the lines that count."""
    found, begin = [], 0  # of the statement
    for number, line in enumerate(tree.without_comments(text).split("\n"), 1):
        line = " ".join(line.split())
        if _THIN.fullmatch(line):
            continue
        found.append((number, line))
        if line.endswith("override;"):
            del found[begin:]
        if line[-1] in ";{}:":
            begin = len(found)
    return found


def runs(texts):
    """(file, line, file, line, length): places in a mapping of file to text where at least RUN lines are the same."""
    read = {file: lines(text) for file, text in texts.items()}
    starts = collections.defaultdict(list)
    for file, found in read.items():
        for i in range(len(found) - RUN + 1):
            starts[tuple(line for _, line in found[i:i + RUN])].append((file, i))
    pairs = {(a, b) for same in starts.values() for n, a in enumerate(same) for b in same[n + 1:]}
    for (file, i), (other, j) in sorted(pairs):
        if ((file, i - 1), (other, j - 1)) in pairs:
            continue  # the run began before
        length = RUN
        while ((file, i + length - RUN + 1), (other, j + length - RUN + 1)) in pairs:
            length += 1
        yield file, read[file][i][0], other, read[other][j][0], length


def problems(sources):
    for file, line, other, other_line, length in runs({f: sources.text(f) for f in sources.sources()}):
        yield (f"{file} {other}",
               f"{file}:{line}: {length} lines stand again at {other}:{other_line}: write them once")
