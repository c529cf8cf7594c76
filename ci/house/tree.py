"""What are the sources of a tree, and what is code in them?"""

import os
import pathlib
import re
import subprocess

SOURCES = (".cc", ".c", ".h", ".hpp", ".inc")

# In this order: a quote in a comment opens no literal, and // in a literal opens no comment.
_LEXEME = re.compile(
    r'(?P<comment>//(?:[^\n\\]|\\.|\\\n)*|/\*.*?\*/)'
    r'|(?P<literal>\b(?:u8|[uUL])?R"(?P<end>[^()\\\s]{0,16})\(.*?\)(?P=end)"'
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)+')",
    re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE | re.DOTALL)


def _blank(text):
    return re.sub(r"[^\n]", " ", text)


def without_comments(text):
    """C++ with comments replaced by spaces; lines stay where they are."""
    return _LEXEME.sub(lambda m: _blank(m[0]) if m["comment"] else m[0], text)


def code(text):
    """C++ without comments and preprocessor lines; of a literal only its quotes are left."""
    text = _LEXEME.sub(
        lambda m: _blank(m[0]) if m["comment"] else '"' + _blank(m[0][1:-1]) + '"', text)
    return _DIRECTIVE.sub(lambda m: _blank(m[0]), text)


def _tracked(root):
    """What git tracks, without what is deleted here. None where it is no checkout, say an unpacked archive."""
    run = subprocess.run(["git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "-z"],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if run.returncode or not (root / ".git").exists():
        return None
    return [name for name in run.stdout.decode().split("\0") if name and (root / name).is_file()]


def _walk(root):
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith((".", "bazel-"))]
        here = pathlib.Path(folder).relative_to(root)
        found += [(here / name).as_posix() for name in names]
    return found


class Tree:
    """The files of a repository as they lie there."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        try:
            tracked = _tracked(self.root)
        except FileNotFoundError:  # no git
            tracked = None
        self.files = sorted(_walk(self.root) if tracked is None else tracked)
        self._texts = {}

    def sources(self):
        return [name for name in self.files if name.endswith(SOURCES)]

    def text(self, name):
        if name not in self._texts:
            self._texts[name] = (self.root / name).read_text(encoding="utf-8")
        return self._texts[name]
