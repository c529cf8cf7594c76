"""Is a function too long, or does it branch too often?

Length counts the lines from a function's head to its last brace. Complexity is McCabe's, counted as lizard counts it: one,
and one more for each if, for, while, case, catch, ?, && and ||; lambdas count to the function around them. Sources are
formatted, so a && that follows a blank is an operator and any other a reference.
"""

import collections
import re

import tree

LINES_MAX = 60
COMPLEXITY_MAX = 20

Function = collections.namedtuple("Function", "name line lines complexity")

_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w'.]*|::|->|(?<!\S)&&|\|\||\"\s*\"|[^\s\w]")
_BRANCHES = {"if", "for", "while", "case", "catch", "?", "&&", "||"}
_ACCESS = {"public", "private", "protected"}
# What may stand between a function's parameters and its body, and what looks like a name before parameters.
_BEFORE_BODY = {")", "}", "const", "noexcept", "override", "final", "mutable", "try", "&"}
_NO_NAME = {"decltype", "alignas", "void", "bool", "int", "__attribute__", "__declspec"}


def _tokens(text):
    """Pairs of token and line."""
    line, at = 1, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        yield ('""' if match[0][0] == '"' else match[0]), line


def _after_template(head):
    """A declaration without template<...> in front."""
    while head[:1] == ["template"]:
        depth = 0
        for i, token in enumerate(head):
            depth += {"<": 1, ">": -1}.get(token, 0)
            if i and depth == 0:
                break
        head = head[i + 1:]
    return head


def _outside(head):
    """The tokens of a declaration outside its parentheses and brackets; of those the closing ones are left."""
    found, depth = [], 0
    for token in head:
        depth -= token in (")", "]")
        if depth == 0 and token not in ("(", "["):
            found.append(token)
        depth += token in ("(", "[")
    return found


def _kind(head):
    """What does the brace after these tokens open: a scope, a function, an initialiser of a member, or data?"""
    head = _after_template(head)
    if sum(token in ("(", "[") for token in head) > sum(token in (")", "]") for token in head):
        return "initialiser"
    if "namespace" in head[:2] or head in ([], ["extern", '""']):
        return "scope"
    if head[0] in ("class", "struct", "union", "enum") and head[-1] != ")":
        return "scope"
    outside = _outside(head)
    if "=" in outside and "operator" not in outside:
        lambda_ = outside[outside.index("=") + 1:][:1] == ["]"]
        return "function" if lambda_ and head[-1] in _BEFORE_BODY else "data"
    if ")" not in outside:
        return "data"
    after = outside[outside.index(")"):]
    if ":" in after and head[-1] not in (")", "}"):
        return "initialiser"
    body = head[-1] in _BEFORE_BODY or "->" in after or "requires" in after
    return "function" if body else "data"


def _name(head):
    head = _after_template(head)
    if "operator" in head:
        at = head.index("operator")
        return "operator" + " ".join(head[at + 1:head.index("(", at + 2)])
    for at, token in enumerate(head):
        if token == "(" and at and head[at - 1] not in _NO_NAME and head[at - 1].isidentifier():
            break
    name = head[at - 1]
    if "=" in head[:at]:  # a lambda
        return head[head.index("=") - 1]
    if "TEST" in name and name.isupper():  # TEST(Suite, Case)
        return name + "".join(head[at:]).replace(",", ", ")
    at -= 1
    if at and head[at - 1] == "~":
        name, at = "~" + name, at - 1
    while at >= 2 and head[at - 1] == "::":
        name, at = f"{head[at - 2]}::{name}", at - 2
    return name


class _Reader:
    """Reads tokens: head holds those of the declaration that is open, block says what the braces around us are."""

    def __init__(self):
        self.found, self.head, self.scopes = [], [], 0
        self.block, self.depth, self.complexity = None, 0, 0

    def read(self, token, line):
        if self.block:
            self._inside(token, line)
        elif token == "{":
            self._open(line)
        elif token == "}":
            self.scopes -= 1
            self.head = []
            if self.scopes < 0:
                raise ValueError(f"line {line}: a brace closes nothing")
        elif token == ";" or (token == ":" and self.head and self.head[0][0] in _ACCESS):
            self.head = []
        else:
            self.head.append((token, line))

    def _open(self, line):
        kind = _kind([token for token, _ in self.head])
        if kind == "scope":
            self.scopes += 1
            self.head = []
        else:
            self.block, self.depth, self.complexity = kind, 1, 1

    def _inside(self, token, line):
        self.depth += (token == "{") - (token == "}")
        self.complexity += token in _BRANCHES
        if self.depth:
            return
        if self.block == "function":
            first = self.head[0][1]
            name = _name([token for token, _ in self.head])
            self.found.append(Function(name, first, line - first + 1, self.complexity))
            self.head = []
        else:
            self.head.append(("}", line))
        self.block = None


def functions(text):
    """The functions of a C++ source. ValueError where its braces do not match."""
    reader = _Reader()
    for token, line in _tokens(tree.code(text)):
        reader.read(token, line)
    if reader.block or reader.scopes:
        raise ValueError("a brace is never closed")
    return reader.found


def problems(sources):
    """For each function that is too long or too complex: what to list it as, where it is, and how far it is off."""
    for file in sources.sources():
        try:
            found = functions(sources.text(file))
        except ValueError as error:
            yield f"unreadable {file}", f"{file}: {error}"
            continue
        for f in found:
            if f.lines > LINES_MAX or f.complexity > COMPLEXITY_MAX:
                yield (f"{file} {f.name}",
                       f"{file}:{f.line}: {f.name} has {f.lines} lines (at most {LINES_MAX}) "
                       f"and complexity {f.complexity} (at most {COMPLEXITY_MAX}): split it")
