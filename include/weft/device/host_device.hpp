// Marks a function that runs on the host and on the GPU. Headers with it compile with any C++17
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

#endif  // WEFT_DEVICE_HOST_DEVICE_HPP
