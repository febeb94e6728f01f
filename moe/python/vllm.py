"""A plugin of vLLM: its backends deepep_high_throughput and deepep_low_latency, which import deep_ep, then work over weft.moe.

    VLLM_PLUGINS=weft vllm serve ... --all2all-backend deepep_high_throughput

vLLM calls register() of every installed plugin in each of its processes. Since another deep_ep may be wanted, nothing happens
unless VLLM_PLUGINS names this plugin. weft.moe.deep_ep says what differs from DeepEP.
"""

import os

NAME = "weft"
"""The plugin's, in the group vllm.general_plugins of entry points."""


def register():
    """Makes `import deep_ep` give weft.moe.deep_ep, if VLLM_PLUGINS names "weft". May be called again. weft.Error if another
    deep_ep is loaded already."""
    if NAME in (name.strip() for name in os.environ.get("VLLM_PLUGINS", "").split(",")):
        from . import deep_ep
        deep_ep.install()
