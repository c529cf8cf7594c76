"""shardproof_conformance_test: is this engine judged conformant? For an engine's own workspace (conformance/docs/USE.md)."""

def shardproof_conformance_test(
        name,
        engine,
        profile = "smoke",
        supports = None,
        waivers = None,
        shards = 1,
        arguments = [],
        **kwargs):
    """A test that is green when the verdict is `conformant`.

    Args:
      name: of the test
      engine: a shared library, say a cc_binary with linkshared = True
      profile: smoke, core or full
      supports: a file of what the engine takes (`shardproof probe`)
      waivers: a file of known failures
      shards: how many processes share the cases; each must judge something
      arguments: more for `shardproof run`
      **kwargs: of sh_test, say size or tags
    """
    if shards < 1:
        fail("shardproof_conformance_test %s: shards is a number from 1: %s" % (name, shards))
    files = {"--supports": supports, "--waivers": waivers}
    given = [(option, file) for option, file in files.items() if file]
    program = Label("//conformance:shardproof")
    native.sh_test(
        name = name,
        srcs = [Label("//conformance:conformance_test.sh")],
        args = [
            "$(rootpath %s)" % program,
            "$(rootpath %s)" % engine,
            "--profile",
            profile,
        ] + ["%s $(rootpath %s)" % pair for pair in given] + arguments,
        data = [program, engine] + [file for _, file in given],
        shard_count = shards if shards > 1 else None,
        **kwargs
    )
