"""torch: an all-to-all with a gradient, in a compiled graph, and a tensor that peers write.

    $ weft-run -n 2 -- python 15_torch_alltoall.py
    PE 0: rows of [0, 10], gradient 2.0, inbox [2.0, 2.0]
    PE 1: rows of [1, 11], gradient 2.0, inbox [1.0, 1.0]
"""
import torch
import weft
import weft.torch


@torch.compile(fullgraph=True)
def exchange(rows):
    return weft.torch.all_to_all(rows * 2) / 2


with weft.init() as job:
    # Row k goes to PE k, and row k of the result came from PE k.
    rows = torch.tensor([[10.0 * job.pe + pe] for pe in range(job.pe_count)], requires_grad=True)
    result = exchange(rows)
    (2 * result).sum().backward()

    inbox = weft.torch.zeros(2)  # a torch.Tensor over symmetric memory
    weft.put(inbox, torch.full((2,), job.pe + 1.0), (job.pe + 1) % job.pe_count)
    weft.barrier_all()
    numbers = [int(number) for number in result.flatten()]
    print(f"PE {job.pe}: rows of {numbers}, gradient {rows.grad[0].item()}, inbox {inbox.tolist()}\n", end="", flush=True)
