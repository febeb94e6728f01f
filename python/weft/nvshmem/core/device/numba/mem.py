"""Memory of other PEs in kernels of numba."""

from .calls import INT, POINTER, TypingError, call_c, device_function, intrinsic, make_array, populate_array, require_arrays, types

__all__ = ["get_multicast_array", "get_peer_array"]


@intrinsic
def get_peer_array(typingctx, arr, pe):
    """The same array of `pe`, for loads and stores; at address 0 where they do not reach it."""
    require_arrays(arr=arr)

    def code(context, builder, signature, values):
        own = make_array(arr)(context, builder, values[0])
        address = builder.bitcast(own.data, context.get_value_type(POINTER))
        number = context.cast(builder, values[1], pe, INT)
        peer = call_c(context, builder, "nvshmem_ptr", POINTER(POINTER, INT), [address, number])
        made = make_array(arr)(context, builder)
        populate_array(made, data=builder.bitcast(peer, own.data.type), shape=own.shape, strides=own.strides, itemsize=own.itemsize,
                       meminfo=None)
        return made._getvalue()
    return arr(arr, pe if isinstance(pe, types.Integer) else INT), code


@device_function
def get_multicast_array(team, array):
    raise TypingError("nvshmem.core.device.numba.get_multicast_array: Weft has no multicast; nvshmemx_mc_ptr is null too")
