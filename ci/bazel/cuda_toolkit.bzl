"""The CUDA toolkit of the machine as a repository: nvcc, headers, the runtime, cuBLAS and NCCL.

Looked for under CUDA_HOME or CUDA_PATH if one is set (CUDA_HOME=none: build as if there were no toolkit), else in
/usr/local/cuda, /opt/cuda, /usr/lib/cuda and /usr; NCCL under NCCL_HOME too. SHARDPROOF_CUDA_ARCHS=90,100 says which
architectures get machine code (90 alone by default); PTX of the last one serves all later ones.
Where a part is missing the repository has the same targets, empty, and TOOLKIT.missing says what: see cuda.bzl.
"""

_HEADERS = ["cuda_runtime_api.h", "cublas_v2.h", "nccl.h"]

def _first(ctx, folders, names):
    for folder in folders:
        for name in names:
            path = ctx.path(folder + "/" + name)
            if path.exists:
                return path
    return None

def _roots(ctx):
    for name in ["CUDA_HOME", "CUDA_PATH"]:
        root = ctx.os.environ.get(name, "")
        if root:
            return [root]
    return ["/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda", "/usr"]

def _multiarch(ctx):
    result = ctx.execute([ctx.os.environ.get("CC", "gcc"), "-print-multiarch"])
    return result.stdout.strip() if result.return_code == 0 else ""

def _nvcc(ctx, roots):
    if roots == ["none"]:
        return None
    nvcc = _first(ctx, [root + "/bin" for root in roots], ["nvcc"])
    return nvcc.realpath if nvcc else None

# "13.0.88" of "Cuda compilation tools, release 13.0, V13.0.88"; empty if it cannot be run.
def _nvcc_version(ctx, nvcc):
    result = ctx.execute([str(nvcc), "--version"])
    for word in result.stdout.replace("\n", " ").split(" "):
        if word.startswith("V") and "." in word:
            return word[1:]
    return ""

def _find(ctx):
    """A dictionary of what was found, and a list of what was not."""
    roots = _roots(ctx)
    nvcc = _nvcc(ctx, roots)
    if not nvcc:
        return None, ["nvcc in " + ", ".join([root + "/bin" for root in roots])]
    version = _nvcc_version(ctx, nvcc)
    if not version or int(version.split(".")[0]) < 12:
        return None, ["an nvcc that knows C++20 (12.0 or later); %s is %s" % (nvcc, version or "of no known version")]

    # Beside the nvcc that was found, whatever the way there.
    home = str(nvcc.dirname.dirname)
    nccl = ctx.os.environ.get("NCCL_HOME", "")
    arch = _multiarch(ctx)
    include_folders = [nccl + "/include"] if nccl else []
    include_folders += [home + "/include", home + "/targets/x86_64-linux/include"]
    include_folders += ["/usr/include"]
    library_folders = [nccl + "/lib64", nccl + "/lib"] if nccl else []
    library_folders += [home + "/lib64", home + "/lib", home + "/targets/x86_64-linux/lib"]
    library_folders += ["/usr/lib/" + arch, "/usr/lib64", "/usr/lib"]

    found = {"nvcc": str(nvcc), "version": version, "home": home}
    missing = []
    for header in _HEADERS:
        found[header] = _first(ctx, include_folders, [header])
        if not found[header]:
            missing.append(header)
    for library, names in {
        "cudart": ["libcudart_static.a", "libcudart.so"],
        "cublas": ["libcublas.so"],
        "cublasLt": ["libcublasLt.so"],
        "nccl": ["libnccl.so", "libnccl.so.2"],
    }.items():
        found[library] = _first(ctx, library_folders, names)
        if not found[library]:
            missing.append(names[0])
    return found, missing

# By full path: which file is linked does not depend on search folders, and the program finds it where it was linked.
def _link_options(library):
    options = ["-Wl," + str(library)]
    if not str(library).endswith(".a"):
        options.append("-Wl,-rpath," + str(library.dirname))
    return options

def _architectures(ctx):
    text = ctx.os.environ.get("SHARDPROOF_CUDA_ARCHS", "") or "90"
    architectures = [word.strip() for word in text.split(",") if word.strip()]
    for each in architectures:
        if not each.rstrip("af").isdigit():
            fail("SHARDPROOF_CUDA_ARCHS is \"%s\": wanted numbers such as 80,90 or 90a" % text)
    return architectures

def _cuda_toolkit_impl(ctx):
    found, missing = _find(ctx)
    values = {"%{cudart}": "[]", "%{cublas}": "[]", "%{nccl}": "[]"}
    if missing:
        toolkit = "struct(nvcc = None, version = None, architectures = [], missing = %r)" % ", ".join(missing)
        ctx.file("facts.txt", "missing: %s\n" % ", ".join(missing))
    else:
        # /usr/include is searched anyway, and too much to be listed.
        for name, header in [("include", "cuda_runtime_api.h"), ("nccl", "nccl.h")]:
            if str(found[header].dirname) != "/usr/include":
                ctx.symlink(found[header].dirname, name)
        values["%{cudart}"] = repr(_link_options(found["cudart"]) + ["-lrt", "-ldl", "-lpthread"])
        values["%{cublas}"] = repr(_link_options(found["cublas"]) + _link_options(found["cublasLt"]))
        values["%{nccl}"] = repr(_link_options(found["nccl"]))
        toolkit = "struct(nvcc = %r, version = %r, architectures = %r, missing = None)" % (
            found["nvcc"],
            found["version"],
            _architectures(ctx),
        )
        ctx.file("facts.txt", "".join([
            "%s: %s\n" % (name, found[name])
            for name in ["nvcc", "version", "cudart", "cublas", "nccl"]
        ]))
    ctx.file("defs.bzl", "\"\"\"Written by ci/bazel/cuda_toolkit.bzl.\"\"\"\n\nTOOLKIT = %s\n" % toolkit)
    ctx.template("BUILD", Label("//ci/bazel:cuda.BUILD.tpl"), values)

cuda_toolkit = repository_rule(
    implementation = _cuda_toolkit_impl,
    local = True,
    environ = ["CC", "CUDA_HOME", "CUDA_PATH", "NCCL_HOME", "SHARDPROOF_CUDA_ARCHS"],
)
