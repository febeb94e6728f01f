"""Jobs on NICs that behave as libfabric's sources say the real ones do, beyond what every persona does: docs/PROVIDERS.md."""
import pytest

TOUR = "every function did what it says"


def test_nodes_that_cannot_all_open_efa_direct_agree_on_efa(loom, bin_dir):
    ended = loom("run", "--nodes", 4, "--nics", 2, "--persona", "efa", "--direct-nodes", 2, "--", bin_dir / "api_tour",
                 WEFT_LOG="info")
    assert TOUR in ended.stdout
    assert "rails use the fabric efa instead of efa-direct, which not all PEs offer" in ended.stderr


def test_nodes_that_all_offer_efa_direct_use_it(loom, bin_dir):
    ended = loom("run", "--nodes", 2, "--persona", "efa", "--", bin_dir / "api_tour", WEFT_LOG="info")
    assert TOUR in ended.stdout
    assert "rails use the fabric" not in ended.stderr


@pytest.mark.parametrize("persona", ["efa-direct", "cxi", "verbs"])
def test_everything_is_closed_in_the_order_that_the_provider_asks_for(loom, bin_dir, persona):
    ended = loom("run", "--nodes", 2, "--nics", 2, "--persona", persona, "--close-order", 1, "--", bin_dir / "api_tour",
                 WEFT_PROVIDER=persona.removesuffix("-direct"))
    assert TOUR in ended.stdout
    assert "fi_close" not in ended.stderr

