"""Is there one type of a name?

Two types of one name in one namespace, each known to other files only, link without a word, and std::vector of one then
allocates for the other. Types in functions, in other types and in namespaces without a name are not seen from outside.
C has no namespaces: .c is not read.
"""

import collections
import re

import tree

_OPENS = re.compile(
    r"(?P<inside>\bnamespace\s*(?P<namespace>[\w:]*)\s*\{|\bextern\s*\"\s*\"\s*\{)"
    r"|\b(?:struct|class|union|enum(?:\s+(?:class|struct))?)\s+(?P<type>[A-Za-z_]\w*(?:::\w+)*)(?:\s+final)?"
    r"\s*(?::(?!:)[^{};()]*)?\{"
    r"|(?P<other>\{)|(?P<close>\})")


def types(text):
    """(name with its namespaces, line) of the types that code defines for others to see."""
    code = tree.code(text)
    scopes = []  # a name; None: nothing in it is seen
    for match in _OPENS.finditer(code):
        seen = None not in scopes
        if match["close"]:
            del scopes[-1:]
        elif match["inside"]:
            named = match["namespace"] or (None if "namespace" in match["inside"] else "")
            scopes.append(named)
        elif match["type"]:
            if seen:
                name = "::".join([scope for scope in scopes if scope] + [match["type"]])
                yield name, code.count("\n", 0, match.start()) + 1
            scopes.append(None)
        else:
            scopes.append(None)


def problems(sources):
    places = collections.defaultdict(list)
    for file in sources.sources():
        if file.endswith(".c"):
            continue
        for name, line in types(sources.text(file)):
            places[name].append(f"{file}:{line}")
    for name, found in sorted(places.items()):
        if len({place.rpartition(":")[0] for place in found}) > 1:
            yield name, f"{found[0]}: {name} is also defined at {', '.join(found[1:])}: give one another name"
