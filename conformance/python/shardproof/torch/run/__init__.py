"""shardproof-torch run."""


def main(arguments):
    from shardproof.torch.run import command  # torch takes seconds

    return command.main(arguments)
