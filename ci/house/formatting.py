"""Does clang-format 14 leave the sources as they are?"""

import concurrent.futures
import os
import re
import shutil
import subprocess

_VERSION = 14
_AT_ONCE = 40


def _find():
    """The program, or None. Only one version is asked: each has a taste of its own."""
    for name in (f"clang-format-{_VERSION}", "clang-format"):
        path = shutil.which(name)
        if path is None:
            continue
        said = subprocess.run([path, "--version"], stdout=subprocess.PIPE, check=True).stdout.decode()
        if re.search(rf"version {_VERSION}\.", said):
            return path
    return None


def _changed(program, root, files):
    run = subprocess.run([program, "--dry-run", "--fallback-style=none", *files], cwd=root, stderr=subprocess.PIPE)
    said = run.stderr.decode()
    found = {}
    for file, line in re.findall(r"^(.+?):(\d+):\d+: (?:warning|error): ", said, re.MULTILINE):
        found.setdefault(file, line)
    if run.returncode and not found:
        raise RuntimeError(f"clang-format: {said}")
    return found


def problems(sources):
    program = _find()
    if program is None:
        yield "clang-format", f"there is no clang-format {_VERSION} here: ci/setup installs it"
        return
    files = sources.sources()
    parts = [files[i:i + _AT_ONCE] for i in range(0, len(files), _AT_ONCE)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(lambda part: _changed(program, sources.root, part), parts):
            for file, line in found.items():
                yield file, f"{file}:{line}: clang-format-14 -i {file}"
