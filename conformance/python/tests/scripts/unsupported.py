"""Uses what the recorded device has not: compile, graph, transformer_engine."""

import sys

import torch

if sys.argv[1] == "compile":
    torch.compile(torch.nn.Linear(2, 2))
elif sys.argv[1] == "graph":
    torch.cuda.CUDAGraph()
else:
    import transformer_engine  # noqa: F401
