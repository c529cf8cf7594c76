"""The command shardproof-torch."""

import importlib.util
import sys

USAGE = """usage: shardproof-torch COMMAND ...

  record -n RANKS [--cuda-names] script.py ARGS   judges a script, unmodified, as it runs
  run --engine NAME --profile PROFILE             judges an engine on the suite's cases
  table REPORT...                                 a table of engines, from reports of run

shardproof-torch COMMAND --help says more. Exit codes are those of `shardproof`.
"""


def main(arguments=None):
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="")
        return 0 if arguments else 3
    if arguments[0] != "table" and importlib.util.find_spec("torch") is None:
        print("shardproof-torch: torch is not installed here: pip install 'shardproof[torch]'", file=sys.stderr)
        return 3
    if arguments[0] == "record":
        from shardproof.torch import record

        return record.main(arguments[1:])
    if arguments[0] == "run":
        from shardproof.torch.run import main as run

        return run(arguments[1:])
    if arguments[0] == "table":
        from shardproof.torch import table

        return table.main(arguments[1:])
    print(f"shardproof-torch: no command {arguments[0]}\n{USAGE}", end="", file=sys.stderr)
    return 3


if __name__ == "__main__":
    sys.exit(main())
