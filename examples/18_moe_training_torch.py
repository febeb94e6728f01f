"""Expert parallelism with torch, on CPUs or GPUs: 2 PEs train a router and its experts, and the loss equals that of the same
model in one piece. `python 18_moe_training_torch.py cuda` does it on one GPU for each PE.

    $ weft-run -n 2 -- python 18_moe_training_torch.py
    step   0: loss 0.4929, the dense model's 0.4929
    step  20: loss 0.0805, the dense model's 0.0805
    step  40: loss 0.0258, the dense model's 0.0258
    step  60: loss 0.0150, the dense model's 0.0150
    the largest difference in 61 steps is below 1e-7
"""
import sys

import torch
import weft
import weft.moe
import weft.torch

EXPERTS, TOPK, HIDDEN, TOKENS, STEPS, RATE = 6, 2, 16, 32, 61, 3e-2
DEVICE = sys.argv[1] if len(sys.argv) > 1 else "cpu"


class Experts(torch.nn.Module):
    """Some of the EXPERTS matrices, and the router, which every PE has."""

    def __init__(self, numbers):
        super().__init__()
        random = torch.Generator().manual_seed(5)
        router = torch.randn(HIDDEN, EXPERTS, generator=random, dtype=torch.float64) / 8
        matrices = torch.randn(EXPERTS, HIDDEN, HIDDEN, generator=random, dtype=torch.float64) / HIDDEN**0.5
        self.router = torch.nn.Parameter(router.to(DEVICE))
        self.matrices = torch.nn.Parameter(matrices[numbers].to(DEVICE))

    def routes(self, x):
        """The experts of each token and their weights, which travel as float32."""
        weights, ids = (x @ self.router).softmax(-1).topk(TOPK)
        return ids, weights.float()


class Dense(Experts):
    """The model in one piece: every expert for every token."""

    def forward(self, x):
        ids, weights = self.routes(x)
        every = torch.tanh(torch.einsum("th,eho->teo", x, self.matrices))
        return (every.gather(1, ids[..., None].expand(-1, -1, HIDDEN)) * weights[..., None]).sum(1)


class Parallel(Experts):
    """The experts of this PE; tokens come to them from all PEs."""

    def __init__(self):
        exchange = weft.moe.Exchange(max_tokens=TOKENS, hidden=HIDDEN, experts=EXPERTS, topk=TOPK, payload="float64", device=DEVICE)
        super().__init__(slice(exchange.first_expert, exchange.first_expert + exchange.local_experts))
        self.dispatcher = weft.moe.Dispatcher(exchange)

    def forward(self, x):
        return self.dispatcher(x, *self.routes(x), self.experts)

    def experts(self, rows, counts, offsets):  # rows: [experts of this PE, room, HIDDEN], counts[e] of them valid
        is_row = torch.arange(rows.shape[1], device=rows.device) < counts[:, None]
        return torch.tanh(torch.bmm(rows.where(is_row[..., None], 0), self.matrices))


def tokens_of(pe):
    x = torch.randn(TOKENS, HIDDEN, generator=torch.Generator().manual_seed(pe), dtype=torch.float64)
    return x.to(DEVICE), torch.sin(x.roll(1, 1)).to(DEVICE)


def losses_of(model, x, target, pes=1, summed=lambda tensor: tensor):
    """Of STEPS steps, over the tokens of all PEs; `summed` adds up a tensor of each PE."""
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    for _ in range(STEPS):
        loss = (model(x) - target).square().mean() / pes
        optimizer.zero_grad()
        loss.backward()
        model.router.grad = summed(model.router.grad)  # gradients of experts are complete: all tokens came to them
        optimizer.step()
        yield summed(loss.detach()).item()


with weft.init() as job:
    if DEVICE != "cpu":
        torch.cuda.set_device(job.pe % torch.cuda.device_count())
    parts = zip(*map(tokens_of, range(job.pe_count)))
    dense = losses_of(Dense(slice(None)), *map(torch.cat, parts))
    ours = losses_of(Parallel(), *tokens_of(job.pe), job.pe_count, weft.torch.all_reduce)
    largest = 0.0
    for step, (loss, wanted) in enumerate(zip(ours, dense)):
        largest = max(largest, abs(loss - wanted))
        if job.pe == 0 and step % 20 == 0:
            print(f"step {step:3}: loss {loss:.4f}, the dense model's {wanted:.4f}")
    assert largest < 1e-7, largest  # weights travel as float32, and so do their gradients
    if job.pe == 0:
        print(f"the largest difference in {STEPS} steps is below 1e-7")
