# Toolchain of the preset aarch64: Debian's cross compiler, and the sysroot that scripts/sysroot makes. WEFT_SYSROOT
# names another one. Tests run under qemu-aarch64-static where it is installed.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

if(DEFINED ENV{WEFT_SYSROOT})
  set(CMAKE_SYSROOT $ENV{WEFT_SYSROOT})
else()
  get_filename_component(CMAKE_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../build/sysroot-aarch64 ABSOLUTE)
endif()
if(NOT IS_DIRECTORY ${CMAKE_SYSROOT}/usr/include)
  message(FATAL_ERROR "there is no sysroot in ${CMAKE_SYSROOT}; run scripts/setup --aarch64, or name one in WEFT_SYSROOT")
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# pkg-config reads the sysroot's files alone.
set(ENV{PKG_CONFIG_DIR} "")
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} "${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig:${CMAKE_SYSROOT}/usr/lib/pkgconfig")

find_program(WEFT_QEMU qemu-aarch64-static NO_CMAKE_FIND_ROOT_PATH)
if(WEFT_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${WEFT_QEMU} -L ${CMAKE_SYSROOT})
endif()
