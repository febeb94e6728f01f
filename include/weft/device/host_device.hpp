// Marks functions that the CPU and the GPU both run; nothing without nvcc.
#ifndef WEFT_DEVICE_HOST_DEVICE_HPP
#define WEFT_DEVICE_HOST_DEVICE_HPP

#if defined(__CUDACC__)
#define WEFT_HOST_DEVICE __host__ __device__
#else
#define WEFT_HOST_DEVICE
#endif

#endif  // WEFT_DEVICE_HOST_DEVICE_HPP
