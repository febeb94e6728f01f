// Marks a function that runs on the host and on the GPU; APART, one that is not inlined with -rdc,
// where a function's registers count alone, but without its kernel's being known (copy.cuh);
// OWN_REGISTERS, one that is not inlined without it. Headers with it compile with any C++17
// compiler, and with nvcc for both sides.
//
// Constant; no state.
#ifndef WEFT_DEVICE_HOST_DEVICE_HPP
#define WEFT_DEVICE_HOST_DEVICE_HPP

#if defined(__CUDACC__)
#define WEFT_HOST_DEVICE __host__ __device__
#else
#define WEFT_HOST_DEVICE
#endif

#ifdef __CUDACC_RDC__
#define WEFT_HOST_DEVICE_APART __host__ __device__ __noinline__
#define WEFT_DEVICE_APART __device__ __noinline__
#else
#define WEFT_HOST_DEVICE_APART WEFT_HOST_DEVICE
#define WEFT_DEVICE_APART __device__
#endif

// Where a kernel would spill what it inlines. Linked later, such a function takes more registers
// than a kernel of 1,024 threads has, and the program does not link.
#if defined(__CUDACC__) && !defined(__CUDACC_RDC__)
#define WEFT_DEVICE_OWN_REGISTERS __device__ __noinline__
#else
#define WEFT_DEVICE_OWN_REGISTERS __device__
#endif

#endif  // WEFT_DEVICE_HOST_DEVICE_HPP
