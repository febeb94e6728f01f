# CUDA is optional: WEFT_HAVE_CUDA says whether it is there and wanted. Without it libweft has the same
# functions, and those for GPUs say that it was built without.
set(WEFT_HAVE_CUDA OFF)
if(NOT WEFT_CUDA STREQUAL OFF)
  include(CheckLanguage)
  if(NOT CMAKE_CUDA_COMPILER)
    find_program(weft_nvcc nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
    if(weft_nvcc)
      set(CMAKE_CUDA_COMPILER ${weft_nvcc})
    endif()
  endif()
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    # Machine code for Hopper; others get it from the driver at the first start. What Hopper's PTX has (fences in one
    # direction) also serves later ones.
    set(CMAKE_CUDA_ARCHITECTURES 80-virtual 90)
  endif()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.4)
      set(WEFT_HAVE_CUDA ON)
    endif()
  endif()
  if(WEFT_CUDA STREQUAL ON AND NOT WEFT_HAVE_CUDA)
    message(FATAL_ERROR "WEFT_CUDA=ON, but no nvcc of CUDA 12.4 or later was found; install the CUDA toolkit, name it "
                        "with -DCMAKE_CUDA_COMPILER=, or configure with -DWEFT_CUDA=OFF")
  endif()
endif()
if(WEFT_HAVE_CUDA)
  find_package(CUDAToolkit REQUIRED)
  # What <weft/device.cuh> asks for, and the newest that CMake 3.25 can ask CUDA 13 for.
  set(CMAKE_CUDA_STANDARD 17)
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  # A debug build's kernels are compiled to be checked, and rarely run. Without the costly optimizations nvcc takes a third of the
  # time: 25 s instead of 90 s for the longest file (tests/device/nvshmem/collectives_test.cu, CUDA 13.0, 2026-11-25).
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.9)
    string(APPEND CMAKE_CUDA_FLAGS_DEBUG " -Ofc=mid")
  endif()
  if(WEFT_CCACHE)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
  endif()
endif()
message(STATUS "Weft for GPUs (CUDA): ${WEFT_HAVE_CUDA}")
