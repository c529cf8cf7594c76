"""shardproof-torch record: runs a training script, unmodified, on recorded devices, and judges what
it did.

    shardproof-torch record -n 2 [--cuda-names] train.py ARGS

One process a rank, with RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT
as torchrun sets them. The traces are judged by `shardproof check`; its exit code is ours.
"""

import argparse
import gc
import os
import pathlib
import runpy
import shutil
import socket
import subprocess
import sys
import tempfile
import traceback

USAGE_ERROR = 3  # exit code of the command for wrong input
NO_NUMBERS = "order, waits and memory; no numbers: a script is no case of the suite"
# What torch says of "cuda" where there is none: built for CUDA, and not.
_NO_CUDA = (b"Found no NVIDIA driver", b"Torch not compiled with CUDA enabled")
PROVIDES = ("groups", "collectives", "sync", "memory", "work", "calls")


def parser():
    p = argparse.ArgumentParser(
        prog="shardproof-torch record",
        description="Runs a script on recorded devices and judges what it did.",
    )
    p.add_argument(
        "-n", "--ranks", type=int, default=1, help="processes, each with a device of its own"
    )
    p.add_argument(
        "--cuda-names",
        action="store_true",
        help="torch.cuda's names are answered by the recorded device",
    )
    p.add_argument(
        "--trace", metavar="FOLDER", help="keep the traces there (the folder is emptied first)"
    )
    p.add_argument(
        "--shardproof", metavar="PATH", help="the command; else SHARDPROOF, else from PATH"
    )
    p.add_argument(
        "--free",
        choices=("pool", "order"),
        default="pool",
        help="when freed memory comes back: as PyTorch's pool for CUDA, or in stream order",
    )
    p.add_argument(
        "--patience",
        type=float,
        default=20.0,
        metavar="SECONDS",
        help="a run in which no rank does anything for so long is ended and judged (20)",
    )
    p.add_argument("script")
    p.add_argument("arguments", nargs=argparse.REMAINDER)
    return p


def find_command(given=None):
    """The path of `shardproof`, or None."""
    return shutil.which(given or os.environ.get("SHARDPROOF") or "shardproof")


def _free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def _environment(rank, world, port):
    os.environ.update(
        RANK=str(rank),
        WORLD_SIZE=str(world),
        LOCAL_RANK=str(rank),
        LOCAL_WORLD_SIZE=str(world),
        GROUP_RANK="0",
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        GLOO_SOCKET_IFNAME="lo",
        OMP_NUM_THREADS=os.environ.get("OMP_NUM_THREADS", "1"),
    )


def _exit_code(error):
    """What Python makes of sys.exit's argument."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code
    print(error.code, file=sys.stderr)
    return 1


def _run_script(options):
    """The script's exit code and what went wrong in words."""
    sys.argv = [options.script, *options.arguments]
    sys.path[0] = str(pathlib.Path(options.script).resolve().parent)
    try:
        runpy.run_path(options.script, run_name="__main__")
    except SystemExit as end:
        code = _exit_code(end)
        return code, f"the script called sys.exit({end.code!r})" if code else ""
    except BaseException as error:
        traceback.print_exc()
        return 1, f"{type(error).__name__}: {error}"
    return 0, ""


def _case(options):
    return f"script {pathlib.Path(options.script).name}"


def _rank(options, rank, port, folder):
    """One rank's whole life; its exit code."""
    import torch
    from shardproof.torch import names, trace, transfers
    from shardproof.torch.device import native, set_free_rule

    _environment(rank, options.ranks, port)
    torch.set_num_threads(1)
    native.set_device_count(options.ranks)
    set_free_rule(options.free)
    transfers.expect_supervisor()
    names.install(cuda=options.cuda_names)
    trace.open_trace(folder, rank, options.ranks, _case(options), PROVIDES)
    # A script is one entry call; how it ended is what the call answers.
    trace.entry_call(0)
    trace.event("call_begin", x="create")
    code, why = _run_script(options)
    trace.event("call_end", x="create", st="failed" if code else "ok")
    if code:
        trace.close_trace("died", why)
        return code
    trace.entry_call(1)
    trace.event("call_begin", x="destroy")
    _tear_down()
    trace.release_device()
    trace.event("call_end", x="destroy", st="ok")
    trace.close_trace()
    native.wait_for_all()
    return 0


def _tear_down():
    """What torchrun's process does at its end: groups go, and what nobody holds."""
    import torch
    import torch.distributed as dist
    from shardproof.torch.device import wait_for_backward

    wait_for_backward()
    gc.collect()
    if dist.is_initialized():
        dist.destroy_process_group()
    gc.collect()
    torch.accelerator.synchronize()


def _check_options(options):
    """What is wrong with them, in words; empty: nothing."""
    if not pathlib.Path(options.script).is_file():
        return f"there is no script {options.script}"
    if options.ranks < 1:
        return f"{options.ranks} ranks were asked for; there is at least one"
    if find_command(options.shardproof) is None:
        return (
            "the command shardproof was not found; build it (bazel build //conformance:shardproof) "
            "and give it with --shardproof PATH or in SHARDPROOF"
        )
    return ""


def run_ranks(options, folder):
    """Runs the script; whole traces in the folder, whatever happens. Answers supervise.Outcome."""
    # One import of torch, and one build of the device, for all ranks.
    from shardproof.torch import process_group, supervise  # noqa: F401

    shutil.rmtree(folder, ignore_errors=True)
    pathlib.Path(folder).mkdir(parents=True)
    port = _free_port()
    supervisor = supervise.Supervisor(folder, options.ranks, options.patience)
    outcome = supervisor.run(lambda rank: _rank(options, rank, port, folder))
    header = {
        "shardproof_trace": 1,
        "world": options.ranks,
        "case": _case(options),
        "provides": list(PROVIDES),
    }
    supervise.end_traces(outcome, lambda rank: {**header, "rank": rank})
    return outcome


def _asks_for_cuda(options, outcome):
    """Did a rank raise because it said "cuda"?"""
    from shardproof.torch import supervise

    ends = [supervise.last_line(rank.trace) for rank in outcome.ranks]
    return not options.cuda_names and any(said in end for said in _NO_CUDA for end in ends)


def _with_scope(said):
    """What `check` said; a good verdict says of what it is."""
    *lines, last = said.rstrip("\n").split("\n")
    return "\n".join([*lines, f"{last} ({NO_NUMBERS})" if last.startswith("conformant") else last]) + "\n"


def record(options, out=None):
    """Runs and judges; the exit code."""
    wrong = _check_options(options)
    if wrong:
        print(f"shardproof-torch: {wrong}", file=sys.stderr)
        return USAGE_ERROR
    with tempfile.TemporaryDirectory(prefix="shardproof-") as scratch:
        folder = options.trace or scratch
        outcome = run_ranks(options, folder)
        if outcome.why:
            print(f"shardproof-torch: {outcome.why}\n{outcome.stacks()}", file=out or sys.stderr)
        if _asks_for_cuda(options, outcome):
            print(
                'shardproof-torch: the script says "cuda": with --cuda-names the recorded device answers to it',
                file=out or sys.stderr,
            )
        command = [find_command(options.shardproof), "check", f"trace:{folder}"]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        print(_with_scope(done.stdout) + done.stderr, end="", file=out or sys.stdout, flush=True)
        return done.returncode


def main(arguments):
    return record(parser().parse_args(arguments))
