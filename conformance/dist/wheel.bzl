"""The wheel of conformance/python: a folder with one file, whose name tells pip the version and the machine."""

def _impl(ctx):
    folder = ctx.actions.declare_directory(ctx.label.name)
    args = ctx.actions.args()
    args.add_all([ctx.file._script, folder.path, ctx.file.archive, ctx.file.library, ctx.file.pyproject])
    args.add_all(ctx.files.package)
    ctx.actions.run(
        executable = "python3",
        arguments = [args],
        inputs = [ctx.file._script, ctx.file.archive, ctx.file.library, ctx.file.pyproject] + ctx.files.package,
        outputs = [folder],
        use_default_shell_env = True,
        mnemonic = "Wheel",
    )
    return [DefaultInfo(files = depset([folder]), runfiles = ctx.runfiles([folder]))]

wheel = rule(
    implementation = _impl,
    attrs = {
        "archive": attr.label(allow_single_file = True, mandatory = True),
        "library": attr.label(allow_single_file = True, mandatory = True),
        "pyproject": attr.label(allow_single_file = True, mandatory = True),
        "package": attr.label_list(allow_files = True, doc = "the files of the package"),
        "_script": attr.label(allow_single_file = True, default = "//conformance/dist:wheel.py"),
    },
)
