// The driver's functions that libweft looks up by name (driver.cpp has the list), as far as
// memory.cpp has them.
//
// Threads: any. Errors: CUDA's.
#pragma once

#include <cuda.h>

#include <cstddef>

namespace weft_emulated::driver {

CUresult mem_address_reserve(CUdeviceptr* address,
                             std::size_t bytes,
                             std::size_t alignment,
                             CUdeviceptr hint,
                             unsigned long long flags);
CUresult mem_address_free(CUdeviceptr address, std::size_t bytes);
CUresult mem_create(CUmemGenericAllocationHandle* handle,
                    std::size_t bytes,
                    const CUmemAllocationProp* properties,
                    unsigned long long flags);
CUresult mem_release(CUmemGenericAllocationHandle handle);
CUresult mem_map(CUdeviceptr address,
                 std::size_t bytes,
                 std::size_t offset,
                 CUmemGenericAllocationHandle handle,
                 unsigned long long flags);
CUresult mem_unmap(CUdeviceptr address, std::size_t bytes);
CUresult mem_set_access(CUdeviceptr address,
                        std::size_t bytes,
                        const CUmemAccessDesc* access,
                        std::size_t count);
CUresult mem_get_allocation_granularity(std::size_t* bytes,
                                        const CUmemAllocationProp* properties,
                                        CUmemAllocationGranularity_flags option);
CUresult mem_export_to_shareable_handle(void* out,
                                        CUmemGenericAllocationHandle handle,
                                        CUmemAllocationHandleType type,
                                        unsigned long long flags);
CUresult mem_import_from_shareable_handle(CUmemGenericAllocationHandle* handle,
                                          void* file,
                                          CUmemAllocationHandleType type);
CUresult mem_get_address_range(CUdeviceptr* start, std::size_t* bytes, CUdeviceptr address);
CUresult mem_retain_allocation_handle(CUmemGenericAllocationHandle* handle, void* address);
CUresult mem_get_allocation_properties(CUmemAllocationProp* properties,
                                       CUmemGenericAllocationHandle handle);
CUresult pointer_get_attribute(void* value, CUpointer_attribute attribute, CUdeviceptr address);

}  // namespace weft_emulated::driver
