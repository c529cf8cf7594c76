"""Lightning Fabric with DDP. joined: the device is synchronised after the module is set up."""

import sys

import torch
from lightning_fabric import Fabric
from lightning_fabric.accelerators import CUDAAccelerator
from torch import nn


class AnyDevice(CUDAAccelerator):
    """Its setup_device refuses a device whose type is not called cuda."""

    def setup_device(self, device):
        torch.cuda.set_device(device)

    def teardown(self):
        pass


def main():
    torch.manual_seed(0)
    fabric = Fabric(accelerator=AnyDevice(), strategy="ddp", devices=2)
    fabric.launch()
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    model = fabric.setup_module(model)
    if "joined" in sys.argv:
        torch.cuda.synchronize()
    optimizer = fabric.setup_optimizers(torch.optim.SGD(model.parameters(), lr=0.1))
    for _ in range(2):
        loss = model(torch.ones(8, 16, device=fabric.device)).square().mean()
        fabric.backward(loss)
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
