// Calls of functions that most kernels never need: what reaches other nodes.
//
// Where ptxas knows the function that is called, it lets that function change any register. The
// caller's loop then keeps its state in local memory, also where the call is never made. A call
// through a pointer follows the ABI, by which the called function preserves half of the registers;
// then all calls of the file do. The pointer lies in constant memory, one load away. With -rdc=true
// every call follows the ABI, and is direct.
//
// Loops that hold more than the ABI preserves, such as reductions, are better off without:
// -DWEFT_DEVICE_DIRECT_CALLS makes all calls of a file direct.
//
// Arguments are values: the address of a variable would keep it in local memory. No cold function
// calls another of the same signature, so that ptxas knows how much stack a kernel needs.
#ifndef WEFT_DEVICE_COLD_CALL_CUH
#define WEFT_DEVICE_COLD_CALL_CUH

#if defined(__CUDACC_RDC__) && !defined(WEFT_DEVICE_DIRECT_CALLS)
#define WEFT_DEVICE_DIRECT_CALLS
#endif

namespace weft::device::detail {

#ifndef WEFT_DEVICE_DIRECT_CALLS
template <auto kFunction>
__constant__ decltype(kFunction) cold_function = kFunction;
#endif

template <auto kFunction, typename... Arguments>
__device__ auto cold_call(Arguments... arguments) {
#ifdef WEFT_DEVICE_DIRECT_CALLS
  return kFunction(arguments...);
#else
  return cold_function<kFunction>(arguments...);
#endif
}

}  // namespace weft::device::detail

#endif  // WEFT_DEVICE_COLD_CALL_CUH
