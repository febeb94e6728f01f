"""A plugin of SGLang: its backends deepep and pplx, which import deep_ep and pplx_kernels, then work over weft.moe.

    SGLANG_PLUGINS=weft python -m sglang.launch_server ... --moe-a2a-backend deepep

SGLang calls register() of every installed plugin in each of its processes, before it imports its dispatchers. Since another
deep_ep may be wanted, nothing happens unless SGLANG_PLUGINS names this plugin. weft.moe.deep_ep and weft.moe.pplx say what
differs from the libraries.
"""

import os
import sys

from .. import errors

NAME = "weft"
"""The plugin's, in the group sglang.srt.plugins of entry points."""

_DISPATCHERS = "sglang.srt.layers.moe.token_dispatcher"


def register():
    """Makes `import deep_ep` give weft.moe.deep_ep and `import pplx_kernels` weft.moe.pplx, if SGLANG_PLUGINS names "weft". May be
    called again. weft.Error if others are loaded already, or SGLang's dispatchers, which have looked for them."""
    if NAME not in (name.strip() for name in os.environ.get("SGLANG_PLUGINS", "").split(",")):
        return
    if "deep_ep" not in sys.modules and _DISPATCHERS in sys.modules:
        raise errors.Error(f"weft.moe.sglang.register: {_DISPATCHERS} is loaded already, and did not find deep_ep; load SGLang's "
                           "plugins before it (sglang.srt.plugins.load_plugins)")
    from . import deep_ep, pplx
    deep_ep.install()
    pplx.install()
