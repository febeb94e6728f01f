// libnvshmem_device.bc and .ltoir: the functions of kernels by their C names, for compilers that
// link them into the kernels that they make at run time. Compiled for the GPU alone.
//
// A kernel that was linked with it has the symbol weft_device_state_of_module, which
// nvshmemx_cumodule_init and nvshmemx_culibrary_init fill.
#define WEFT_DEVICE_DIRECT_CALLS  // what links it knows no pointers into other modules
#include <nvshmem.h>
