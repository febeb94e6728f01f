"""Weft: weft.moe.Exchange(device="cuda"). Latency: expert_padded, which is what DeepEP's low-latency kernels return, or
rank_major. Throughput: rank_compact, rows and sums by rank, as DeepEP's other kernels have them."""

import weft
import weft.moe

import workload

from .base import Base

TIMEOUT_S = 10


class Adapter(Base):
    name, version = "weft.moe", weft.__version__
    kernels = {"dispatch": ("dispatch_kernel", "count_places"), "combine": ("combine_kernel",)}
    latency_layout = "expert_padded"
    quantises = True  # in latency mode, where others may give fp8 rows
    in_place = False  # the experts' rows lie where the other ranks read them

    def __init__(self, ranks):
        super().__init__(ranks)
        weft.init()
        self._exchanges = {}
        self._exchange = None

    def prepare(self, case, given):
        super().prepare(case, given)
        layout = self.latency_layout if case.mode == "latency" else "rank_compact"
        key = (layout, case.max_tokens, case.sms)
        if key not in self._exchanges:
            self._exchanges[key] = weft.moe.Exchange(
                max_tokens=case.max_tokens, hidden=case.hidden, experts=case.experts, topk=case.topk, payload="fp8_e4m3",
                scales="float32", output="bfloat16", layout=layout, timeout=TIMEOUT_S, device=self.ranks.device.type,
                blocks=case.sms, outputs_in_place=self.in_place)
        self._exchange = self._exchanges[key]

    def dispatch(self):
        given = self.given
        if self.case.mode == "latency" and self.quantises:
            return self._exchange.dispatch(given.x, given.ids, given.weights)
        return self._exchange.dispatch(given.fp8, given.ids, given.weights, given.scales)

    def experts(self, received):
        first = self._exchange.first_expert
        if self._exchange.layout == "expert_padded":
            return workload.experts_by_expert(received.x, received.scales, received.counts, first)
        answers = workload.experts_by_token(received.x, received.scales, received.ids, received.weights, first)
        return received.outputs.copy_(answers) if self.in_place else answers

    def combine(self, received, answers):
        return self._exchange.combine(answers, received.plan)

    def check(self):
        self._exchange.check()

    def close(self):
        for exchange in self._exchanges.values():
            exchange.close()
        weft.finalize()


class RankMajor(Adapter):
    """Rows stand once for each rank, in place; the caller sums over its experts."""

    latency_layout = "rank_major"
    modes = ("latency",)


class RankMajorFp8(RankMajor):
    """Rows come in fp8 with their scales also in latency mode, as FlashInfer gets them."""

    quantises = False


class InPlace(RankMajor):
    """Also in throughput mode, the experts write their rows where the other ranks read them (outputs_in_place)."""

    modes = ("latency", "throughput")
    in_place = True


class InPlaceFp8(InPlace):
    quantises = False
