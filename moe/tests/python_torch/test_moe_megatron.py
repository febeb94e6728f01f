"""Megatron-Core's MoEFlexTokenDispatcher, unchanged, with weft.moe.deep_ep in the place of DeepEP: it dispatches, combines and
trains as the same layer in one piece does, on the CPU and, where torch sees one, on a GPU. (Megatron's other dispatchers need one.)"""
import importlib.util

import pytest
import torch

pytestmark = pytest.mark.skipif(importlib.util.find_spec("megatron") is None,
                                reason="megatron-core is missing; ./test python-torch installs it into .venv-torch")

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU"))]
OF_GPUS = {"WEFT_DEVICE_SHARED": "yes", "WEFT_DEVICE_HEAP_SIZE": "64M", "WEFT_DEVICE_HEAP_MAX": "1G"}

SETUP = """
    import os, pathlib
    import weft.moe.deep_ep
    weft.moe.deep_ep.install()
    import torch.distributed as dist
    from megatron.core.process_groups_config import ProcessGroupCollection
    from megatron.core.transformer.moe import token_dispatcher
    from megatron.core.transformer.transformer_config import TransformerConfig
    torch.set_num_threads(1)
    TOKENS, HIDDEN, EXPERTS, TOPK = 24, 64, 6, 2

    def groups():
        everyone = list(range(dist.get_world_size()))
        all_ranks, alone = dist.new_group(everyone), [dist.new_group([rank]) for rank in everyone][dist.get_rank()]
        return ProcessGroupCollection(ep=all_ranks, expt_tp=alone, tp_ep=all_ranks, tp=alone)

    def dispatcher(pgs):
        config = TransformerConfig(
            num_layers=1, hidden_size=HIDDEN, num_attention_heads=4, num_moe_experts=EXPERTS, moe_router_topk=TOPK,
            expert_model_parallel_size=dist.get_world_size(), moe_token_dispatcher_type="flex",
            moe_flex_dispatcher_backend="deepep", moe_router_dtype="fp32", add_bias_linear=False, bf16=True,
            params_dtype=torch.bfloat16, moe_router_load_balancing_type="none")
        local = EXPERTS // dist.get_world_size()
        ours = list(range(dist.get_rank() * local, (dist.get_rank() + 1) * local))
        return token_dispatcher.MoEFlexTokenDispatcher(local, ours, config, pgs)

    def choose(logits):
        scores, chosen = logits.softmax(-1).topk(TOPK, -1)
        return (torch.zeros_like(logits).scatter(1, chosen, scores),
                torch.zeros_like(logits, dtype=torch.bool).scatter(1, chosen, True))

    def dense(x, logits, weights):
        \"\"\"The same layer with the tokens and experts of all PEs.\"\"\"
        probs, _ = choose(logits)
        return torch.einsum("te,teh->th", probs, torch.einsum("th,ehk->tek", x[:, 0].float(), weights.float()))[:, None]

    def layer(moe, x, logits, weights):
        \"\"\"Router, dispatch, one matrix for each expert, combine, as MoELayer calls a dispatcher.\"\"\"
        probs, routing_map = choose(logits)
        hidden, probs = moe.dispatch_preprocess(x, routing_map, probs)
        hidden, probs = moe.token_dispatch(hidden, probs)
        rows, counts, probs = moe.dispatch_postprocess(hidden, probs)
        outs = [part @ weights[expert] for expert, part in enumerate(rows.split([int(count) for count in counts]))]
        out = (torch.cat(outs).float() * probs[:, None]).to(x.dtype)
        out = moe.combine_preprocess(out)
        return moe.combine_postprocess(moe.token_combine(out))

    def tensors(pe):
        random = torch.Generator().manual_seed(pe)
        x = torch.randn(TOKENS, 1, HIDDEN, generator=random).bfloat16()
        logits = torch.randn(TOKENS, EXPERTS, generator=random)
        local = EXPERTS // dist.get_world_size()
        weights = (torch.randn(local, HIDDEN, HIDDEN, generator=random) / 8).bfloat16()
        return [tensor.to(DEVICE).requires_grad_() for tensor in (x, logits, weights)]

    def begin(job):
        if DEVICE == "cuda":
            torch.cuda.set_device(job.pe % torch.cuda.device_count())
        store = dist.FileStore(str(pathlib.Path(__file__).with_name("store")), job.pe_count)
        dist.init_process_group("gloo", store=store, rank=job.pe, world_size=job.pe_count)
        return groups()
"""


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("pes, node_size", [(2, "0"), (3, "1")])
def test_the_flex_dispatcher_equals_the_layer_in_one_piece_with_its_gradients(programs, pes, node_size, device):
    done = programs.ok(pes, f"""
    DEVICE = "{device}"
    """ + SETUP + """
    with weft.init() as job:
        pgs = begin(job)
        x, logits, weights = tensors(job.pe)
        y = layer(dispatcher(pgs), x, logits, weights)
        (y.float() ** 2).sum().backward()
        everything = [torch.cat(parts).detach().requires_grad_() for parts in zip(*(tensors(pe) for pe in range(job.pe_count)))]
        wanted = dense(*everything)
        (wanted ** 2).sum().backward()
        wanted = [wanted, *(tensor.grad for tensor in everything)]
        for name, ours, theirs in zip(("y", "x", "logits", "weights"), (y, x.grad, logits.grad, weights.grad), wanted):
            theirs = theirs.chunk(job.pe_count)[job.pe].float()
            assert ours.shape == theirs.shape and theirs.abs().max() > 0, name
            error = (ours.float() - theirs).abs().max() / theirs.abs().max()
            assert error < 0.02, (name, error)  # of bfloat16
        say("equal")
        dist.barrier()
        dist.destroy_process_group()
    """, WEFT_NODE_SIZE=node_size, WEFT_NICS="127.0.0.1", **OF_GPUS)
    assert done.lines() == ["equal"] * pes


@pytest.mark.parametrize("device", DEVICES)
def test_a_layer_trains_with_the_loss_of_the_layer_in_one_piece(programs, device):
    done = programs.ok(2, f"""
    DEVICE = "{device}"
    """ + SETUP + """
    def train(run, x, logits, weights):
        x, logits = x.detach(), logits.detach().requires_grad_()
        weights = weights.detach().float().requires_grad_()
        optimizer = torch.optim.SGD([weights, logits], lr=2.0)
        losses = []
        for step in range(100):
            y = run(x, logits, weights.bfloat16())
            loss = (y.float() - x.float().roll(1, -1)).square().sum() / (TOKENS * HIDDEN * dist.get_world_size())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return torch.stack(losses).cpu()
    with weft.init() as job:
        pgs = begin(job)
        moe = dispatcher(pgs)
        found = train(lambda *all: layer(moe, *all), *tensors(job.pe))
        dist.all_reduce(found)
        wanted = train(dense, *(torch.cat(parts) for parts in zip(*(tensors(pe) for pe in range(job.pe_count)))))
        assert wanted[-1] < 0.8 * wanted[0], wanted
        assert ((found - wanted).abs() < 2e-3 * wanted).all(), (found - wanted) / wanted
        say("equal")
        dist.barrier()
        dist.destroy_process_group()
    """, **OF_GPUS)
    assert done.lines() == ["equal"] * 2
