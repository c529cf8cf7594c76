"""The libraries of the machine as a repository: symbolic links to the header folders that are not searched by default.

Everything else lies in /usr/include and the default library folders, so a target is no more than its link flags.
A folder that is missing leaves its target empty: only what needs it fails to build, and ci/setup says how to get it.
"""

def _multiarch(ctx):
    compiler = ctx.os.environ.get("CC", "gcc")
    result = ctx.execute([compiler, "-print-multiarch"])
    return result.stdout.strip() if result.return_code == 0 else ""

def _link_first(ctx, name, candidates):
    for candidate in candidates:
        if ctx.path(candidate).exists:
            ctx.symlink(candidate, name)
            return

def _system_libraries_impl(ctx):
    arch = _multiarch(ctx)
    _link_first(ctx, "eigen3", ["/usr/include/eigen3"])
    _link_first(ctx, "mpich", [
        "/usr/include/%s/mpich" % arch,
        "/usr/lib/%s/mpich/include" % arch,
        "/usr/include/mpich",
    ])
    ctx.template("BUILD", Label("//ci/bazel:system.BUILD.tpl"))

system_libraries = repository_rule(
    implementation = _system_libraries_impl,
    local = True,
    environ = ["CC"],
)
