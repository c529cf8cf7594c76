"""Do folders include each other in a circle, or what they must not see?

A folder is the directory of a file. reference/ sees only conformance/abi/ and itself, as an engine of others would;
nothing in conformance/ sees reference/.
"""

import collections
import posixpath
import re

import tree

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.MULTILINE)
# Folders that programs of others find by -I, so that they include a header by its name alone.
_SEARCHED = ("conformance/abi",)


def edges(sources):
    """(file, line, file): which file of the repository includes which. The last is None where there is none."""
    files = set(sources.files)
    for file in sources.sources():
        text = tree.without_comments(sources.text(file))
        for match in _INCLUDE.finditer(text):
            quoted, path = match[1] == '"', match[2]
            beside = posixpath.normpath(posixpath.join(posixpath.dirname(file), path))
            places = [path, beside] + [f"{folder}/{path}" for folder in _SEARCHED]
            found = next((place for place in places if place in files), None)
            if quoted or found:
                yield file, text.count("\n", 0, match.start()) + 1, found, path


def circles(graph):
    """The strongly connected parts with more than one node of {node: nodes}, each sorted (Tarjan, without recursion)."""
    number, low, stack, found = {}, {}, [], []
    for root in sorted(graph):
        path = [] if root in number else [(root, iter(()))]
        while path:
            node, rest = path[-1]
            if node not in number:
                number[node] = low[node] = len(number)
                stack.append(node)
                path[-1] = node, iter(sorted(graph.get(node, ())))
                continue
            after = next((n for n in rest if n not in number or n in stack), None)
            if after is not None and after not in number:
                path.append((after, iter(())))
            elif after is not None:
                low[node] = min(low[node], number[after])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                if low[node] == number[node]:
                    part = stack[stack.index(node):]
                    del stack[-len(part):]
                    if len(part) > 1:
                        found.append(sorted(part))
    return found


def _forbidden(file, found):
    if file.startswith("reference/") and not found.startswith(("reference/", "conformance/abi/")):
        return "reference/ sees only conformance/abi/ and itself"
    if file.startswith("conformance/") and found.startswith("reference/"):
        return "conformance/ judges engines, and sees none of reference/"
    return None


def problems(sources):
    graph, example = collections.defaultdict(set), {}
    for file, line, found, path in edges(sources):
        where = f"{file}:{line}"
        if found is None:
            yield f"{file} {path}", f'{where}: "{path}" is no file of the repository: name it from the root'
            continue
        why = _forbidden(file, found)
        if why:
            yield f"{file} {found}", f"{where} includes {found}: {why}"
        of, to = posixpath.dirname(file), posixpath.dirname(found)
        if of != to:
            graph[of].add(to)
            example.setdefault((of, to), f"{where} includes {found}")
    for part in circles(graph):
        hows = [example[of, to] for of in part for to in sorted(graph[of]) if to in part]
        yield " ".join(part), "\n    ".join([f"a circle of folders: {', '.join(part)}"] + hows)
