#!/usr/bin/env python3
"""usage: wheel.py FOLDER ARCHIVE LIBRARY PYPROJECT FILE...

Makes the wheel of conformance/python in FOLDER: the files of the package, the archive of the suite as shardproof/suite, the
model library. A wheel is a zip file (PEP 427), so this needs neither pip nor setuptools. The same files give the same wheel.
"""

import base64
import hashlib
import pathlib
import platform
import sys
import tarfile
import tomllib
import zipfile

PACKAGE_ROOT = "conformance/python/"
# What the archive has for other tools alone.
LEFT_OUT = ("BUILD.bazel", "WORKSPACE", "conformance/")


def suite(archive):
    """The files of the archive, and the version that it is of: [(path, bytes, executable)], version."""
    files, roots = [], set()
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            root, _, inside = member.name.partition("/")
            roots.add(root)
            if member.isfile() and not inside.startswith(LEFT_OUT):
                files.append((f"shardproof/suite/{inside}", tar.extractfile(member).read(), bool(member.mode & 0o100)))
    (root,) = roots
    return files, root.removeprefix("shardproof-")


def tag():
    """Where it runs: with the C library of this machine, or a newer one."""
    name, version = platform.libc_ver()
    if name != "glibc":
        sys.exit(f"wheel.py: the programs were built with {name or 'an unknown C library'}, wheels know glibc")
    return f"py3-none-manylinux_{version.replace('.', '_')}_{platform.machine()}"


def metadata(project, readme):
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"License: {project['license']['text']}",
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {each}" for each in project["dependencies"]),
    ]
    for extra, needed in project["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}", *(f'Requires-Dist: {each}; extra == "{extra}"' for each in needed)]
    return "\n".join([*lines, "Description-Content-Type: text/markdown", "", readme])


def write(path, files, info):
    """files: [(path, bytes, executable)]; the list of all of them, with hashes, goes to the end."""
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data, executable in sorted(files):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            wheel.writestr(entry, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}\n")
        record.append(f"{info}/RECORD,,\n")
        wheel.writestr(zipfile.ZipInfo(f"{info}/RECORD", (1980, 1, 1, 0, 0, 0)), "".join(record))


def main(folder, archive, library, pyproject, *package):
    pyproject = pathlib.Path(pyproject)
    project = tomllib.loads(pyproject.read_text())["project"]
    files, version = suite(archive)
    if project["version"] != version:
        sys.exit(f"{pyproject}: version {project['version']}, but conformance/common/VERSION says {version}: make them equal")
    name = f"{project['name']}-{version}"
    info = f"{name}.dist-info"
    files.append(("shardproof/libshardproof_model.so", pathlib.Path(library).read_bytes(), True))
    readme = ""
    for path in package:
        if path.endswith("/README.md") and path == f"{PACKAGE_ROOT}README.md":
            readme = pathlib.Path(path).read_text()
            continue
        inside = path.partition(PACKAGE_ROOT)[2]
        if not inside:
            sys.exit(f"wheel.py: {path} lies outside of {PACKAGE_ROOT}")
        files.append((inside, pathlib.Path(path).read_bytes(), False))
    scripts = "".join(f"{name} = {target}\n" for name, target in project["scripts"].items())
    licences = [(path, data) for path, data, _ in files if path in ("shardproof/suite/LICENSE", "shardproof/suite/NOTICES")]
    for text_name, text in [
        ("METADATA", metadata(project, readme).encode()),
        ("WHEEL", f"Wheel-Version: 1.0\nGenerator: shardproof\nRoot-Is-Purelib: false\nTag: {tag()}\n".encode()),
        ("entry_points.txt", f"[console_scripts]\n{scripts}".encode()),
        *((f"licenses/{path.rpartition('/')[2]}", data) for path, data in licences),
    ]:
        files.append((f"{info}/{text_name}", text, False))
    write(pathlib.Path(folder) / f"{name}-{tag()}.whl", files, info)


if __name__ == "__main__":
    main(*sys.argv[1:])
