# The device library for compilers that link it into kernels at run time, in the prefix beside the other libraries:
# libnvshmem_device.bc (LLVM bitcode: Triton, CuTe DSL, JAX) and libnvshmem_device.ltoir (nvJitLink's: numba, NVRTC with -dlto).
# The bitcode needs clang 19 or later; without it there is none, and everything else is as it is.
set(weft_device_library ${CMAKE_SOURCE_DIR}/src/nvshmem/device_library)
set(weft_device_work ${CMAKE_BINARY_DIR}/nvshmem_device_library)
set(weft_device_flags -std=c++17 -DWEFT_NVSHMEM_DEVICE_LIBRARY -I${CMAKE_SOURCE_DIR}/include/nvshmem -I${CMAKE_SOURCE_DIR}/include)
file(MAKE_DIRECTORY ${weft_device_work})

set(weft_ltoir ${weft_nvshmem_prefix}/lib/libnvshmem_device.ltoir)
add_custom_command(
  OUTPUT ${weft_ltoir}
  COMMAND ${CMAKE_CUDA_COMPILER} ${weft_device_flags} -arch=sm_80 -rdc=true -dlto -ltoir ${weft_device_library}/library.cu -o ${weft_ltoir}
          -MD -MF ${weft_device_work}/ltoir.d -MT ${weft_ltoir}
  DEPENDS ${weft_device_library}/library.cu
  DEPFILE ${weft_device_work}/ltoir.d
  COMMENT "Compiling libnvshmem_device.ltoir"
  VERBATIM)
set(weft_device_libraries ${weft_ltoir})

# The oldest that does it: later compilers read what earlier ones wrote.
find_program(WEFT_CLANG_FOR_BITCODE NAMES clang++-19 clang++-20 clang++-21 clang++-22 DOC "compiles libnvshmem_device.bc")
set(weft_bitcode_flags -x cuda --cuda-device-only --cuda-gpu-arch=sm_80 --cuda-path=${CUDAToolkit_LIBRARY_ROOT}
    -Wno-unknown-cuda-version ${weft_device_flags} -idirafter ${CUDAToolkit_LIBRARY_ROOT}/include/cccl
    -idirafter ${weft_device_library}/cuda13)
# Clang and CUDA are released apart: a pair that does not fit must not stop the build.
if(WEFT_CLANG_FOR_BITCODE AND NOT "${WEFT_CLANG_WITH_CUDA}" STREQUAL "${WEFT_CLANG_FOR_BITCODE}")
  execute_process(COMMAND ${WEFT_CLANG_FOR_BITCODE} ${weft_bitcode_flags} -fsyntax-only ${weft_device_library}/library.cu
                  RESULT_VARIABLE weft_failed OUTPUT_QUIET ERROR_VARIABLE weft_errors)
  if(weft_failed)
    string(SUBSTRING "${weft_errors}" 0 500 weft_errors)
    message(STATUS "libnvshmem_device.bc: ${WEFT_CLANG_FOR_BITCODE} does not compile with this CUDA: ${weft_errors}")
  else()
    set(WEFT_CLANG_WITH_CUDA ${WEFT_CLANG_FOR_BITCODE} CACHE INTERNAL "a clang that compiles with this CUDA")
  endif()
endif()
if(WEFT_CLANG_FOR_BITCODE AND "${WEFT_CLANG_WITH_CUDA}" STREQUAL "${WEFT_CLANG_FOR_BITCODE}")
  set(weft_bitcode ${weft_nvshmem_prefix}/lib/libnvshmem_device.bc)
  # Little is inlined here: the kernel's compiler decides, and the file stays small.
  add_custom_command(
    OUTPUT ${weft_bitcode}
    COMMAND ${WEFT_CLANG_FOR_BITCODE} ${weft_bitcode_flags} -O2 -mllvm -inline-threshold=25 -MD -MF ${weft_device_work}/bitcode.d -MT ${weft_bitcode}
            -S -emit-llvm ${weft_device_library}/library.cu -o ${weft_device_work}/library.ll
    COMMAND Python3::Interpreter ${weft_device_library}/make_portable.py ${weft_device_work}/library.ll ${weft_device_work}/portable.ll
    COMMAND ${WEFT_CLANG_FOR_BITCODE} -x ir --target=nvptx64-nvidia-cuda -c -emit-llvm ${weft_device_work}/portable.ll -o ${weft_bitcode}
    DEPENDS ${weft_device_library}/library.cu ${weft_device_library}/make_portable.py
    DEPFILE ${weft_device_work}/bitcode.d
    COMMENT "Compiling libnvshmem_device.bc"
    VERBATIM)
  list(APPEND weft_device_libraries ${weft_bitcode})
elseif(NOT WEFT_CLANG_FOR_BITCODE)
  message(STATUS "libnvshmem_device.bc: left out; it needs clang++-19 or later (-DWEFT_CLANG_FOR_BITCODE=...)")
endif()
add_custom_target(nvshmem_device_library ALL DEPENDS ${weft_device_libraries})
install(FILES ${weft_device_libraries} DESTINATION ${weft_nvshmem_installed}/lib COMPONENT development OPTIONAL)
