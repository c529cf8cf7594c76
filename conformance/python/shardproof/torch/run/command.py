"""shardproof-torch run: an engine on cases of the suite; one verdict, words and exit codes of `shardproof run`."""

import argparse
import contextlib
import gc
import importlib
import linecache
import os
import pathlib
import re
import shlex
import shutil
import sys
import tempfile
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

from shardproof import command, model
from shardproof.torch.run import misspelt, support

# Imported once, in the process that the ranks are forked from.
_BEFORE_FORKING = (
    "torch",
    "torch.distributed",
    "torch.distributed.fsdp",
    "torch.distributed.device_mesh",
    "torch.distributed.tensor",
    "torch.utils.checkpoint",
    "torch._dynamo",
    "shardproof.torch.run.training_loop",
)
_PROFILES = ("smoke", "core", "full")


def _count(text):
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r}: a whole number of at least 1")
    return int(text)


def _parser():
    parser = argparse.ArgumentParser(
        prog="shardproof-torch run",
        description="Runs an engine on cases of the suite and " "judges it.",
    )
    parser.add_argument(
        "--engine",
        required=True,
        metavar="NAME|FILE.py",
        help="an engine of this package (README.md), or a file that decorates a function with "
        "shardproof.torch.engine",
    )
    parser.add_argument(
        "--profile",
        choices=_PROFILES,
        default="core",
        help="each value (smoke), pair (core) or triple (full) of what the engine declares, and the "
        "suite's cases for single situations",
    )
    parser.add_argument(
        "--case", nargs="+", action="extend", default=[], metavar="ID", help="these cases instead"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="of the combinations that a profile draws"
    )
    parser.add_argument(
        "--ranks",
        type=int,
        default=support.MOST_RANKS,
        metavar="N",
        help=f"a profile has worlds of at most N ranks ({support.MOST_RANKS})",
    )
    parser.add_argument(
        "--traces", metavar="DIR", help="keep traces and logs here, a folder a case"
    )
    parser.add_argument(
        "--report", metavar="DIR", help="report.jsonl, junit.xml, summary.md, engine.json; of a profile supports.toml"
    )
    parser.add_argument(
        "--waivers", metavar="FILE", help="known failures (conformance/docs/WAIVERS.md)"
    )
    parser.add_argument(
        "--allow-partial",
        action="store_true",
        help="exit code 0, not 4, for conformant where judged",
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=20.0,
        metavar="SECONDS",
        help="a case in which no rank does " "anything for so long is ended and judged (20)",
    )
    parser.add_argument(
        "--jobs",
        type=_count,
        default=len(os.sched_getaffinity(0)),
        metavar="N",
        help="cases that run at a time (one for each CPU)",
    )
    parser.add_argument("--shardproof", metavar="PATH", help="the command that judges")
    parser.add_argument("--verbose", action="store_true", help="a line for each case as it has run")
    return parser


def main(arguments):
    try:
        arguments = _parser().parse_args(arguments)
    except SystemExit as end:  # argparse says 2, which means that the suite failed
        return command.USAGE if end.code else 0
    try:
        if arguments.report:
            _void(pathlib.Path(arguments.report))
        judge = command.find(arguments.shardproof)
        from shardproof.torch import declaration

        engine = declaration.find(arguments.engine)
        misspelt.check(engine, judge)
        with tempfile.TemporaryDirectory(prefix="shardproof.") as scratch:
            supports = pathlib.Path(scratch) / "supports.toml"
            with ThreadPoolExecutor(1) as beside:  # both take seconds
                imported = beside.submit(_import_before_forking)
                selected = _selected(arguments, engine, judge, supports)
            imported.result()
            return _judge(engine, judge, selected, arguments)
    except (command.CommandError, model.ModelError, OSError, ValueError) as error:
        print(f"shardproof-torch: {error}", file=sys.stderr)
        return command.USAGE


def _judge(engine, judge, selected, arguments):
    """Runs the cases; the exit code of the verdict."""
    ids, supports = selected
    with _folder(arguments.traces) as folder:
        _run(engine, ids, folder, arguments)
        given = {"report": arguments.report, "waivers": arguments.waivers, "supports": supports}
        if not arguments.traces:  # the traces go: a command that checks them would find none
            given["recorded-by"] = _again(arguments)
        if supports:
            given["profile"] = arguments.profile
        options = [f"--{name}={value}" for name, value in given.items() if value]
        code = command.check(judge, folder, options + ["--allow-partial"] * arguments.allow_partial)
        if not arguments.case and _lacks_labels(engine, [_case_folder(folder, i) for i in ids]):
            code = command.NOT_CONFORMANT if code != command.SUITE_FAILED else code
    if arguments.report:
        _sign(arguments.report, engine)
        if supports:
            shutil.copy(supports, arguments.report)
    return code


def _lacks_labels(engine, folders):
    """Says which labels of the engine's marks came in no case."""
    from shardproof.torch.run import marks

    lost = marks.that_never_came(engine.marks or {}, folders)
    for label in lost:
        print(
            f"not conformant: {engine.name} declares the label {label!r} for {engine.marks[label]}, and no case gave the "
            "profiler such a label"
        )
    return bool(lost)


def _again(arguments):
    """The command that records and judges one case again, but for its ID."""
    file = pathlib.Path(arguments.engine)
    words = ["shardproof-torch", "run", "--engine", str(file.resolve()) if file.is_file() else arguments.engine]
    if arguments.shardproof:
        words += ["--shardproof", str(pathlib.Path(arguments.shardproof).resolve())]
    return shlex.join([*words, "--case"])


def _void(folder):
    """Empties the report of an earlier run: if this one does not come to its end, nobody takes it for its verdict."""
    lines = folder / "report.jsonl"
    if not lines.is_file() or '"shardproof_report"' not in lines.read_text(errors="replace").partition("\n")[0]:
        return
    empty = folder / "report.jsonl.part"
    empty.write_text("")
    empty.replace(lines)
    pages = [page for page in folder.glob("report*.html") if re.fullmatch(r"report(-\d+)?\.html", page.name)]
    for file in [folder / name for name in ("junit.xml", "summary.md", "badge.svg")] + pages:
        file.unlink(missing_ok=True)


def _sign(report, engine):
    """Whose report it is, for `shardproof-torch table`."""
    from importlib.metadata import version

    from shardproof.torch import declaration, table

    packages = ["torch"]
    if engine.name in declaration.PACKAGES:
        packages.insert(0, declaration.PACKAGES[engine.name][0])
    table.write_engine(report, engine.name, {name: version(name) for name in packages})


@contextlib.contextmanager
def _folder(kept):
    """Where the cases' folders go: one that stays, or one that goes."""
    if kept:
        path = pathlib.Path(kept)
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            print(
                f"shardproof-torch: {path} is not empty: its traces are replaced", file=sys.stderr
            )
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="shardproof.") as path:
        yield pathlib.Path(path)


def _selected(arguments, engine, judge, supports):
    """Ids, and the file of what the engine declares if what was judged of it is to be counted."""
    if arguments.case:
        return [model.case_facts(i)["id"] for i in arguments.case], None
    found = support.Selection(
        engine, judge, arguments.profile, supports, arguments.seed, arguments.ranks
    )
    print(f"{len(found.ids)} cases of the profile {arguments.profile} for {engine.name}")
    for why, count in found.left_out.most_common():
        print(f"not asked: {count} cases: {why}")
    sys.stdout.flush()
    return found.ids, found.file


def _import_before_forking():
    for name in _BEFORE_FORKING:
        importlib.import_module(name)
    # DTensor takes stacks with their lines of source (torch/_subclasses/fake_tensor.py): else each rank reads them.
    for name, module in list(sys.modules.items()):
        if name.startswith(("torch.", "shardproof.")) and getattr(module, "__file__", None):
            linecache.getlines(module.__file__)


def _run(engine, ids, folder, arguments):
    from shardproof.torch.run import large_pages, server

    # What is imported stays: else each rank walks over all of it, and copies its pages.
    gc.collect()
    gc.freeze()
    large_pages.collapse()
    cases = [(case_id, _case_folder(folder, case_id)) for case_id in ids]
    began = time.monotonic()
    try:
        for case_id, why in server.run_cases(engine, cases, arguments.jobs, arguments.patience):
            if why:
                print(f"{case_id}: {why}", flush=True)
            if arguments.verbose:
                print(f"{case_id}: ran, at {time.monotonic() - began:.1f} s", flush=True)
    finally:
        gc.unfreeze()


def _case_folder(folder, case_id):
    name = (
        case_id
        if len(case_id) <= 200
        else case_id[:180] + "~" + format(zlib.crc32(case_id.encode()), "08x")
    )
    return pathlib.Path(folder) / name
