"""What does a guide tell its reader to do, and does it come out as the guide says?

A guide is Markdown with fenced blocks, which are done in their order in one folder:

    c              pieces of mine.c: one that is there already is replaced, a new one goes above `create`
    sh             commands; `sh status=N` where the last one ends with N. A command that fails otherwise ends the guide
    sh needs=X     is left out, with its text, where the program X is not installed
    sh not-run     commands that no test runs: each stands in NOT_RUN.md, with the reason
    text           lines that the last commands print, in this order; a line `...` stands for lines that are left out, `...` within a
                   line for any text
    other          shown only: files of other programs

Blanks at the ends of lines, and the folder in which the guide is done, are left out of the comparison.
"""

import re
import shutil
import subprocess


class Block:
    """One fenced block: kind ("sh"), words (["status=1"]), its lines, and the number of the line before them."""

    def __init__(self, kind, words, line):
        self.kind, self.words, self.line, self.lines = kind, words, line, []

    @property
    def text(self):
        return "\n".join(self.lines) + "\n"

    def word(self, name, default):
        """The value of name=value behind the kind."""
        return next((word.partition("=")[2] for word in self.words if word.startswith(name + "=")), default)

    @property
    def status(self):
        return int(self.word("status", 0))

    @property
    def runs(self):
        """May a test run these commands here?"""
        return "not-run" not in self.words and shutil.which(self.word("needs", "sh")) is not None


def fenced_blocks(text):
    """The fenced blocks of a page, in order."""
    found, inside = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            inside = not inside
            if inside:
                kind, *words = line[3:].split() or [""]
                found.append(Block(kind, words, number))
        elif inside:
            found[-1].lines.append(line)
    if inside:
        raise ValueError(f"line {found[-1].line}: the block does not end")
    return found


def pieces(source):
    """{name: text} of the functions and structs of a C source, in order; what comes before the first is named ""."""
    found = {}
    for piece in re.split(r"\n\n(?=\S)", source.strip("\n")):
        name = re.match(r"struct (\w+) {|.*?\b(\w+)\(", piece)
        found[(name[1] or name[2]) if name and not piece.startswith("#") else ""] = piece
    return found


def with_pieces(source, block):
    """The source after a block of the guide: its pieces in place of those of the same name, new ones above `create`."""
    old, new = pieces(source) if source else {}, pieces(block)
    added = {name: piece for name, piece in new.items() if name not in old} if old else {}
    out = []
    for name, piece in (old or new).items():
        if name == "create":
            out += added.values()
        out.append(new.get(name, piece))
    return "\n\n".join(out) + "\n"


def missing_line(expected, printed):
    """The first of the expected lines that does not follow where it should; None if all do."""
    lines, at, gap = [line.rstrip() for line in printed.splitlines()], 0, False
    for line in [line.rstrip() for line in expected]:
        if line == "...":
            gap = True
            continue
        same = re.compile(".*".join(re.escape(part) for part in line.split("...")))
        while gap and at < len(lines) and not same.fullmatch(lines[at]):
            at += 1
        if at >= len(lines) or not same.fullmatch(lines[at]):
            return line
        at, gap = at + 1, False
    return None


def done(page, folder, environment):
    """Does a guide in a folder; answers (number of blocks of commands, what differs: None or a text)."""
    source, printed, commands, left_out = "", None, 0, False
    for block in fenced_blocks(page):
        where = f"line {block.line}: "
        if block.kind == "c":
            source = with_pieces(source, block.text)
            (folder / "mine.c").write_text(source)
        elif block.kind == "sh":
            left_out = not block.runs
            if left_out:
                continue
            commands += 1
            ran = subprocess.run(["bash", "-e"], input=block.text, cwd=folder, env=environment, text=True, timeout=600,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            printed = ran.stdout.replace(f"{folder}/", "")
            if ran.returncode != block.status:
                return commands, f"{where}exit code {ran.returncode}, not {block.status}:\n{block.text}{printed[-4000:]}"
        elif block.kind == "text" and not left_out:
            if printed is None:
                return commands, f"{where}no commands are above this text"
            line = missing_line(block.lines, printed)
            if line is not None:
                return commands, f"{where}the commands do not print\n{line}\nbut\n{printed[-6000:]}"
    return commands, None
