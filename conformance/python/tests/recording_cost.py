#!/usr/bin/env python3
"""What does recording a training step cost? recording_cost.py [SCRIPT]: processor seconds (user and system, both ranks) of a step of the
transformer script, recorded on the fake accelerator, and on the CPU with gloo and nothing recorded; their ratio, in one run.

A step is the difference between a run of many steps and one of few, so starting up is not in it; that the trace is judged at the
end is. Needs torch, and SHARDPROOF and SHARDPROOF_MODEL as shardproof-torch does.
"""

import os
import pathlib
import resource
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
FEW, MANY, RANKS = 3, 23, 2

# Of the script, what names the accelerator.
ON_CPU = {
    "device = torch.accelerator.current_accelerator()": 'device = torch.device("cpu")',
    "dist.init_process_group()": 'dist.init_process_group("gloo")',
    "side = torch.Stream(device=device)": "side = None",
}


def variant(source, steps, replaced, folder):
    for old, new in {"range(3)": f"range({steps})", **replaced}.items():
        if old not in source:
            raise SystemExit(f"the script has no {old!r}")
        source = source.replace(old, new)
    path = folder / f"steps{steps}{'cpu' if replaced else ''}.py"
    path.write_text(source)
    return path


def seconds(commands, environments):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    running = [
        subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        for command, environment in zip(commands, environments)
    ]
    codes = [process.wait() for process in running]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if any(codes):
        raise SystemExit(f"{commands[0]}: exit codes {codes}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def recorded(script):
    command = [sys.executable, "-m", "shardproof.torch.cli", "record", "-n", str(RANKS), str(script)]
    return seconds([command], [dict(os.environ, OMP_NUM_THREADS="1")])


def plain(script, port):
    base = dict(os.environ, OMP_NUM_THREADS="1", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    ranks = [dict(base, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(RANKS)) for rank in range(RANKS)]
    return seconds([[sys.executable, str(script)]] * RANKS, ranks)


def main():
    source = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else HERE / "scripts/transformer_fsdp2.py").read_text()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        steps = MANY - FEW
        with_recording = (
            recorded(variant(source, MANY, {}, folder)) - recorded(variant(source, FEW, {}, folder))
        ) / steps
        without = (
            plain(variant(source, MANY, ON_CPU, folder), 29611) - plain(variant(source, FEW, ON_CPU, folder), 29612)
        ) / steps
    print(f"a step recorded and judged: {1000 * with_recording:.0f} ms, plain on the CPU: {1000 * without:.0f} ms, "
          f"ratio {with_recording / without:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
