"""Builds the device's extension: once for each version of torch, of Python and of the sources; then
from a cache.

The cache is SHARDPROOF_CACHE, else $XDG_CACHE_HOME/shardproof, else ~/.cache/shardproof. SHARDPROOF_DEVICE names one that
was built before, by this torch and of these sources: nothing is built then.
"""

import concurrent.futures
import fcntl
import hashlib
import importlib.machinery
import importlib.util
import os
import pathlib
import platform
import subprocess
import sys
import sysconfig
import tempfile

import torch

SOURCES = pathlib.Path(__file__).parent / "csrc"
NAME = "shardproof_device"
# Little is gained by more optimisation: what runs long are torch's own kernels.
FLAGS = ["-std=c++20", "-O1", "-fPIC", "-w", "-DTORCH_API_INCLUDE_EXTENSION_H"]


def cache_folder():
    given = os.environ.get("SHARDPROOF_CACHE")
    if given:
        return pathlib.Path(given)
    return (
        pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
        / "shardproof"
    )


def _compiler():
    return os.environ.get("CXX", "g++")


def _key(files):
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    digest.update(" ".join(FLAGS + [_compiler()]).encode())
    return f"torch-{torch.__version__}-py{platform.python_version()}-{digest.hexdigest()[:16]}"


def _run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(
            f"cannot build the recorded device of torch {torch.__version__}:\n"
            f"{' '.join(command)}\n{done.stderr[-4000:]}"
        )


def _compile(target):
    root = pathlib.Path(torch.__file__).parent
    includes = [
        f"-I{root}/include",
        f"-I{root}/include/torch/csrc/api/include",
        f"-I{sysconfig.get_path('include')}",
    ]
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        objects = []
        with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            work = []
            for source in sorted(SOURCES.glob("*.cc")):
                objects.append(f"{scratch}/{source.stem}.o")
                work.append(
                    pool.submit(
                        _run, [_compiler(), *FLAGS, *includes, "-c", str(source), "-o", objects[-1]]
                    )
                )
            for one in work:
                one.result()
        libraries = [
            f"-L{root}/lib",
            "-ltorch_python",
            "-ltorch_cpu",
            "-ltorch",
            "-lc10",
            f"-Wl,-rpath,{root}/lib",
        ]
        _run([_compiler(), "-shared", "-o", f"{scratch}/{NAME}.so", *objects, *libraries])
        os.rename(f"{scratch}/{NAME}.so", target)


def library():
    """The path of the built extension; SHARDPROOF_DEVICE names one that is built already."""
    if os.environ.get("SHARDPROOF_DEVICE"):
        return pathlib.Path(os.environ["SHARDPROOF_DEVICE"])
    files = sorted([*SOURCES.glob("*.cc"), *SOURCES.glob("*.h")])
    folder = cache_folder() / _key(files)
    target = folder / f"{NAME}.so"
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:  # several ranks may come here at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            print(
                f"shardproof: building the recorded device for torch {torch.__version__} "
                "(once; about a minute)",
                file=sys.stderr,
                flush=True,
            )
            _compile(target)
    return target


def load():
    """The extension's module."""
    loader = importlib.machinery.ExtensionFileLoader(NAME, str(library()))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_file_location(NAME, loader=loader)
    )
    loader.exec_module(module)
    return module
