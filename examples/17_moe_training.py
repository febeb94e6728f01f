"""Expert parallelism: 2 PEs train a small mixture of experts, and the loss equals that of the same model in one piece.

    $ weft-run -n 2 -- python 17_moe_training.py
    step   0: loss 0.8393, the dense model's 0.8393
    step  20: loss 0.0044, the dense model's 0.0044
    step  40: loss 0.0020, the dense model's 0.0020
    step  60: loss 0.0013, the dense model's 0.0013
    the largest difference in 61 steps is below 1e-12
"""
import numpy
import weft
import weft.moe

EXPERTS, TOPK, HIDDEN, TOKENS, STEPS, RATE = 5, 2, 16, 32, 61, 0.4


def tokens_of(pe):
    """Each PE's tokens: what goes in, what should come out, and which experts each token takes with which weights."""
    rng = numpy.random.default_rng([17, pe])
    x = rng.standard_normal((TOKENS, HIDDEN))
    ids = numpy.array([rng.permutation(EXPERTS)[:TOPK] for _ in range(TOKENS)])
    weights = numpy.full((TOKENS, TOPK), 1 / TOPK, "float32")
    return x, numpy.tanh(numpy.roll(x, 1, axis=1)), ids, weights


def initial_experts():
    return numpy.random.default_rng(5).standard_normal((EXPERTS, HIDDEN, HIDDEN)) * HIDDEN**-0.5


def dense_losses(pes):
    """The model in one piece: every expert, all tokens of all PEs."""
    experts = initial_experts()
    x, target, ids, weights = (numpy.concatenate(parts) for parts in zip(*map(tokens_of, range(pes))))
    for _ in range(STEPS):
        y = sum(weights[:, k, None] * numpy.einsum("th,tho->to", x, experts[ids[:, k]]) for k in range(TOPK))
        error = y - target
        yield numpy.mean(error**2)
        gradient = 2 * error / error.size
        slope = numpy.zeros_like(experts)
        for k in range(TOPK):
            numpy.add.at(slope, ids[:, k], x[:, :, None] * (weights[:, k, None] * gradient)[:, None, :])
        experts -= RATE * EXPERTS * HIDDEN * slope


class Layer:
    """The experts of this PE, and the exchange that brings tokens to them."""

    def __init__(self):
        self.exchange = weft.moe.Exchange(max_tokens=TOKENS, hidden=HIDDEN, experts=EXPERTS, topk=TOPK, payload="float64",
                                          layout="expert_compact")
        first = self.exchange.first_expert
        self.experts = initial_experts()[first:first + self.exchange.local_experts]

    def _rows_of_experts(self, offsets):
        return [slice(begin, end) for begin, end in zip(offsets[:-1], offsets[1:])]

    def forward(self, x, ids, weights):
        arrived = self.exchange.dispatch(x, ids, weights)
        self.x, self.plan, self.rows = arrived.x.copy(), arrived.plan, self._rows_of_experts(arrived.offsets)
        self.weights = arrived.weights.copy()
        out = numpy.concatenate([self.x[rows] @ expert for rows, expert in zip(self.rows, self.experts)])
        return self.exchange.combine(out, self.plan)

    def learn(self, gradient):
        """The gradient of the loss by y goes the way of the tokens: dispatch again, by the same plan."""
        arrived = self.exchange.dispatch(gradient, plan=self.plan)
        weighted = arrived.x * self.weights[:, None]
        for rows, expert in zip(self.rows, self.experts):
            expert -= RATE * EXPERTS * HIDDEN * (self.x[rows].T @ weighted[rows])


with weft.init() as job:
    layer = Layer()
    x, target, ids, weights = tokens_of(job.pe)
    losses, sums = weft.zeros(1, "float64"), weft.zeros(1, "float64")
    largest = 0.0
    for step, dense in enumerate(dense_losses(job.pe_count)):
        error = layer.forward(x, ids, weights) - target
        numpy.asarray(sums)[0] = numpy.mean(error**2) / job.pe_count
        weft.world.reduce(losses, sums)
        layer.learn(2 * error / (error.size * job.pe_count))
        loss = numpy.asarray(losses)[0]
        largest = max(largest, abs(loss - dense))
        if job.pe == 0 and step % 20 == 0:
            print(f"step {step:3}: loss {loss:.4f}, the dense model's {dense:.4f}")
    assert largest < 1e-12, largest
    if job.pe == 0:
        print(f"the largest difference in {STEPS} steps is below 1e-12")
