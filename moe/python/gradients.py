"""An Exchange has no gradients; who expects some is told."""

import sys
import warnings

from ..errors import InvalidArgument


def wanted(tensors):
    """The name of the first of {name: tensor} through which a gradient would flow, if it could; None if there is none."""
    name = next((name for name, tensor in tensors.items() if getattr(tensor, "requires_grad", False)), None)
    torch = sys.modules.get("torch")
    return name if name is not None and torch is not None and torch.is_grad_enabled() else None


def _sentence(call, name):
    return (f"weft.moe.Exchange.{call}: {name} requires a gradient, and none flows through an Exchange; use weft.moe.Dispatcher, which "
            "has them, or call it under torch.no_grad()")


def warn(exchange, call, tensors):
    """Once for each exchange."""
    name = wanted(tensors)
    if name is not None and not exchange._has_warned:
        exchange._has_warned = True
        warnings.warn(_sentence(call, name) + ". This is said once for each exchange", UserWarning, stacklevel=3)


def refuse(call, tensors):
    """In a graph that is being compiled, which cannot warn."""
    name = wanted(tensors)
    if name is not None:
        raise InvalidArgument(_sentence(call, name))
