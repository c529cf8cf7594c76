"""A mixture of experts whose tokens travel by all_to_all, written for CUDA. Mistake: unwaited."""

import os
import sys

import torch
import torch.distributed as dist
import torch.nn as nn

mistake = sys.argv[1] if len(sys.argv) > 1 else ""
local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", local_rank))
world, WIDTH = dist.get_world_size(), 16
torch.manual_seed(1)


class Exchange(torch.autograd.Function):
    """Rows to the ranks of their experts; gradients go back."""

    @staticmethod
    def forward(ctx, rows, send, receive):
        ctx.send, ctx.receive = send, receive
        out = rows.new_empty(sum(receive), rows.shape[1])
        work = dist.all_to_all_single(out, rows, receive, send, async_op=True)
        if mistake == "unwaited":
            return out
        work.wait()
        return out

    @staticmethod
    def backward(ctx, grad):
        out = grad.new_empty(sum(ctx.send), grad.shape[1])
        dist.all_to_all_single(out, grad.contiguous(), ctx.send, ctx.receive)
        return out, None, None


class Layer(nn.Module):
    """One expert a rank."""

    def __init__(self):
        super().__init__()
        self.router = nn.Linear(WIDTH, world)
        self.expert = nn.Sequential(nn.Linear(WIDTH, 32), nn.GELU(), nn.Linear(32, WIDTH))

    def forward(self, x):
        scores = self.router(x).softmax(-1)
        weight, expert = scores.max(-1)
        order = expert.argsort()
        counts = torch.bincount(expert, minlength=world)
        theirs = torch.empty_like(counts)
        dist.all_to_all_single(theirs, counts)
        send, receive = counts.tolist(), theirs.tolist()
        rows = Exchange.apply(x[order].contiguous(), send, receive)
        rows = self.expert(rows)  # FOUND unwaited
        back = Exchange.apply(rows, receive, send)
        return torch.zeros_like(x).index_copy(0, order, back) * weight.unsqueeze(-1)


def main():
    net = Layer().cuda()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for _ in range(3):
        x = torch.randn(24, WIDTH, device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=False):
            loss = (net(x) - x).square().mean()
        loss.backward()
        for parameter in net.router.parameters():
            dist.all_reduce(parameter.grad, op=dist.ReduceOp.AVG)
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        print(f"loss {loss.item():.4f} on {torch.cuda.get_device_name()}")


main()
dist.destroy_process_group()
