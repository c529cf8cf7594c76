#!/usr/bin/env python3
"""Does every command work that a page of the repository shows? commands_test.py PAGE... (in the runfiles)

PAGEs are guides whose blocks of commands other tests do (guide_test.py, ci/outside). Of all other pages, and of the text of these, each
command is run here, in a folder that looks as the repository does after `bazel build`, or stands in NOT_RUN.md with the reason. ID is
w2.ddp, FOLDER its traces or dumps, EARLIER, LATER and DIR its report, PATH a wrong engine. Commands with a wrong engine answer 1, dumps
without a mistake 4 (they do not tell all), all others 0.
"""

import fnmatch
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import guide
import guide_test

_PROGRAM = (r"(?:\./)?(?:ci/[a-z_/.]+|bazel|bazel-bin/\S+|shardproof(?:-torch|_gpu\w*|_mpi)?|mpirun|cc|gdb|python3?|cmake|ctest|srun|sbatch|"
            r"clang-format-14|patch|mv|\.venv-torch/\S+|fuzz_\w+\.py)")
# `shardproof run` in a sentence is the name of a command.
_NAME = re.compile(r"(shardproof|bazel|shardproof-torch) \w+|" + _PROGRAM)
_PLACEHOLDERS = [("--case ID", "--case w2.ddp"), ("trace:FOLDER", "trace:traces/w2.ddp"), ("flight:FOLDER", "flight:dumps"),
                 ("--trace FOLDER", "--case w2.ddp --trace more"), ("EARLIER LATER", "report report"), ("--last-failed DIR", "--last-failed report"),
                 ("explain ID", "explain GE-05"), ("--timings N", "--case w2.ddp --timings 3"),
                 ("lib:PATH", "lib:bazel-bin/conformance/examples/libwrong_wait.so")]


def without_comment(line):
    return re.sub(r"\s+#(?: .*)?$", "", line).strip()


def parts(page):
    """(blocks of commands, lines that are indented as code, paragraphs of text) of a page."""
    blocks = guide.fenced_blocks(page)
    inside = {number for block in blocks for number in range(block.line, block.line + len(block.lines) + 2)}
    rest = [line for number, line in enumerate(page.splitlines(), 1) if number not in inside]
    indented = [line.strip() for line in rest if line.startswith("    ")]
    text = "\n".join(line for line in rest if not line.startswith("    "))
    return [block for block in blocks if block.kind in ("", "sh", "bash")], indented, re.split(r"\n\s*\n|\n(?=\|)", text)


def commands(page, done_elsewhere):
    """The commands of a page, each once, without those in blocks that another test does."""
    blocks, lines, paragraphs = parts(page)
    for block in blocks:
        if not done_elsewhere or "not-run" in block.words:
            lines += block.lines
    found = [without_comment(line.removeprefix("$ ")) for line in lines]
    found = [line for line in found if re.fullmatch(_PROGRAM + "(?: .*)?", line)]
    for paragraph in paragraphs:
        spans = re.findall(r"`([^`]+)`", " ".join(paragraph.split()))
        found += [span for span in spans if re.fullmatch(_PROGRAM + " .+", span) and not _NAME.fullmatch(span)]
        found += [span for span in spans if re.fullmatch(r"(?:\./)?ci/\w+", span)]
    return list(dict.fromkeys(found))


def not_run(page):
    """{pattern: reason} of the table."""
    return dict(re.findall(r"^\| `([^`]+)` \| (\S[^|]*?) \|$", page, re.M))


def missing_program(root, command):
    """What a command that is not run names and is not there, or None."""
    if script := re.match(r"(?:\./)?(ci/\S+)", command):
        return None if (root / script[1]).is_file() else script[1]
    for label in re.findall(r"//([a-z0-9_/]*)", command) if command.startswith("bazel ") else []:
        if label.strip("/") and not (root / label.strip("/") / "BUILD").is_file() and not label.endswith("/"):
            return f"//{label}"
    return None


def prepare(folder):
    guide_test.repository(folder)
    shardproof = "bazel-bin/conformance/shardproof"
    for command in [f"{shardproof} run --case w2.ddp --trace traces --report report", "python3 fixtures/flight_recorder/dumps.py dumps 2 10",
                    "cp conformance/examples/ddp.c mine.c",
                    "cc -std=c11 -shared -fPIC -I conformance/abi -o libddp.so mine.c"]:
        subprocess.run(command, shell=True, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def runnable(command):
    """(the command as it is run here, the exit code that it ends with)."""
    for name, value in _PLACEHOLDERS:
        command = command.replace(name, value)
    command = re.sub(r"^shardproof ", "bazel-bin/conformance/shardproof ", command)
    return command, 1 if "libwrong_" in command else 4 if "flight:" in command else 0


def pages(root):
    listed = subprocess.run(["git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "*.md"], stdout=subprocess.PIPE, text=True)
    names = listed.stdout.split() if listed.returncode == 0 else []
    found = [root / name for name in names if (root / name).is_file()] or sorted(root.glob("**/*.md"))
    return [path for path in found if path.name != "CHANGELOG.md"]  # which tells of commands as they were


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    table = not_run((root / "conformance/docs/NOT_RUN.md").read_text(encoding="utf-8"))
    used, wrong, ran = set(), [], {}
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place).resolve()
        prepare(folder)
        for path in pages(root):
            for command in commands(path.read_text(encoding="utf-8"), path.name in sys.argv[1:]):
                if (root / command).is_dir():
                    continue
                where = f"{path.relative_to(root)}: {command}"
                rows = [row for row in table if fnmatch.fnmatchcase(command, row)]
                used.update(rows)
                if rows and (missing := missing_program(root, command)):
                    wrong.append(f"{where}\n  there is no {missing}")
                if rows or command in ran:
                    continue
                line, status = runnable(command)
                done = subprocess.run(["bash", "-c", line], cwd=folder, env=dict(os.environ, NO_COLOR="1"), stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                ran[command] = done.returncode
                if done.returncode != status:
                    wrong.append(f"{where}\n  exit code {done.returncode}, not {status}\n{done.stdout[-1500:]}")
    wrong += [f"NOT_RUN.md: no page has {row}" for row in set(table) - used]
    if len(ran) < 20 or len(table) < 10:
        wrong.append(f"only {len(ran)} commands were found, and {len(table)} rows of NOT_RUN.md")
    print("\n".join(wrong) or f"ok: {len(ran)} commands, {len(used)} rows of what is not run")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
