"""torch 2.15.0: get_state_dict before the first step makes AdamW begin at its second step.

One process, CPU: python dcp_first_step.py Published as pytorch/pytorch#164929, open.
"""

import sys

import torch
from torch.distributed.checkpoint.state_dict import get_state_dict


def trained(saves):
    """The step that AdamW counts, and the first weight, after one step."""
    net = torch.nn.Linear(4, 4, bias=False)
    torch.nn.init.ones_(net.weight)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.1)
    if saves:
        get_state_dict(net, optimizer)
    net(torch.ones(2, 4)).square().sum().backward()
    optimizer.step()
    return int(optimizer.state[net.weight]["step"]), net.weight.detach().flatten()[0].item()


def main():
    plain, saved = trained(False), trained(True)
    print(f"without a save: AdamW's step is {plain[0]}, the first weight {plain[1]:.6f}")
    print(f"after get_state_dict: AdamW's step is {saved[0]}, the first weight {saved[1]:.6f}")
    return int(plain != saved)


if __name__ == "__main__":
    sys.exit(main())
