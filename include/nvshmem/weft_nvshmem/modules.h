/* Files with kernels register through libnvshmem_host, so that programs need to link nothing else.
 * To be included before <weft/device.cuh>.
 *
 * Threads: any. */
#ifndef WEFT_NVSHMEM_MODULES_H
#define WEFT_NVSHMEM_MODULES_H

#include <weft/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As weft_device_module_register and _unregister. */
WEFT_EXPORT void weft_nvshmem_module_register(weft_device_module* module, uint64_t layout);
WEFT_EXPORT void weft_nvshmem_module_unregister(weft_device_module* module);

#ifdef __cplusplus
}
#endif

#ifndef WEFT_DEVICE_MODULE_REGISTER
#define WEFT_DEVICE_MODULE_REGISTER weft_nvshmem_module_register
#define WEFT_DEVICE_MODULE_UNREGISTER weft_nvshmem_module_unregister
#endif

#endif /* WEFT_NVSHMEM_MODULES_H */
