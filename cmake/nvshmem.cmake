# The prefix that NVSHMEM programs are built against: headers, libraries under the names that build systems look for, a
# CMake package, and launchers. In the build tree it is nvshmem/; installed, lib/weft/nvshmem, so that no installed
# NVSHMEM is shadowed. weft-nvshmem --prefix prints it.
set(weft_nvshmem_installed lib/weft/nvshmem)
set(weft_nvshmem_prefix ${CMAKE_BINARY_DIR}/nvshmem)
set(weft_nvshmem_source ${CMAKE_SOURCE_DIR}/tools/nvshmem)

# ---- Libraries besides libnvshmem_host. Kernels are compiled from headers, so the device library is empty; it is there
# because programs name it. Loaders open the bootstrap library first.
add_library(nvshmem_device STATIC ${weft_nvshmem_source}/empty.c)
add_library(nvshmem_bootstrap_uid SHARED ${weft_nvshmem_source}/empty.c)
foreach(library nvshmem_device nvshmem_bootstrap_uid)
  target_compile_options(${library} PRIVATE -g0) # it is installed as it is, and would name the folder of its build
endforeach()
set_target_properties(nvshmem_device PROPERTIES ARCHIVE_OUTPUT_DIRECTORY ${weft_nvshmem_prefix}/lib)
set_target_properties(nvshmem_bootstrap_uid PROPERTIES PREFIX "" OUTPUT_NAME weft_nvshmem_bootstrap_uid SOVERSION 3
                      LIBRARY_OUTPUT_DIRECTORY ${weft_nvshmem_prefix}/lib)
file(MAKE_DIRECTORY ${weft_nvshmem_prefix}/lib/cmake/nvshmem ${weft_nvshmem_prefix}/bin ${weft_nvshmem_prefix}/include)
# NVSHMEM's file names lead to libraries with SONAMEs of their own: linkers note those, and whoever opens a file by
# NVSHMEM's name in this folder gets Weft's.
foreach(end .so .so.3)
  file(CREATE_LINK libweft_nvshmem_host.so.3 ${weft_nvshmem_prefix}/lib/libnvshmem_host${end} SYMBOLIC)
  file(CREATE_LINK weft_nvshmem_bootstrap_uid.so.3 ${weft_nvshmem_prefix}/lib/nvshmem_bootstrap_uid${end} SYMBOLIC)
endforeach()
# The name before NVSHMEM was split: a linker script.
file(WRITE ${weft_nvshmem_prefix}/lib/libnvshmem.a "/* For linkers. */ INPUT(libweft_nvshmem_host.so.3)\n")

add_executable(nvshmem-info ${weft_nvshmem_source}/nvshmem_info.cpp)
target_link_libraries(nvshmem-info PRIVATE nvshmem_host weft_build_flags)
target_include_directories(nvshmem-info PRIVATE ${CMAKE_SOURCE_DIR}/include/nvshmem ${CMAKE_SOURCE_DIR}/include)
set_target_properties(nvshmem-info PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${weft_nvshmem_prefix}/bin
                      INSTALL_RPATH "$ORIGIN/../lib")
file(RELATIVE_PATH weft_nvshmem_libweft /prefix/${weft_nvshmem_installed}/lib /prefix/${CMAKE_INSTALL_LIBDIR})
set_target_properties(nvshmem_host PROPERTIES INSTALL_RPATH "$ORIGIN/${weft_nvshmem_libweft}")

if(WEFT_HAVE_CUDA)
  include(cmake/nvshmem_device.cmake)
endif()

# ---- The CMake package: also at the prefix's root, because some programs name the prefix where CMake wants the folder.
set(weft_nvshmem_version 3.6.5)
foreach(file NVSHMEMConfig NVSHMEMConfigVersion)
  configure_file(${weft_nvshmem_source}/${file}.cmake.in ${weft_nvshmem_prefix}/lib/cmake/nvshmem/${file}.cmake @ONLY)
  file(CREATE_LINK lib/cmake/nvshmem/${file}.cmake ${weft_nvshmem_prefix}/${file}.cmake SYMBOLIC)
endforeach()

# ---- Headers: one -I is enough.
file(GLOB weft_nvshmem_headers RELATIVE ${CMAKE_SOURCE_DIR}/include/nvshmem CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/include/nvshmem/*)
foreach(entry ${weft_nvshmem_headers})
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/include/nvshmem/${entry} ${weft_nvshmem_prefix}/include/${entry} SYMBOLIC)
endforeach()
file(CREATE_LINK ${CMAKE_SOURCE_DIR}/include/weft ${weft_nvshmem_prefix}/include/weft SYMBOLIC)

# ---- Programs.
set(weft_nvshmem_mode OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(WEFT_RUN ../../bin/weft-run)
configure_file(${weft_nvshmem_source}/nvshmrun.in ${weft_nvshmem_prefix}/bin/nvshmrun @ONLY FILE_PERMISSIONS ${weft_nvshmem_mode})
set(WEFT_NVSHMEM_PREFIX ../nvshmem)
set(WEFT_LIB_FROM_BIN ../lib)
set(WEFT_NVSHMEM_MISSING "")
if(NOT WEFT_HAVE_CUDA)
  set(WEFT_NVSHMEM_MISSING "built without CUDA, so without libnvshmem_device.bc and .ltoir, and programs run on memory of the host \
(NVSHMEM_HEAP_KIND=SYSMEM); for GPUs install the wheel for GPUs, or build Weft where nvcc is found")
endif()
configure_file(${weft_nvshmem_source}/weft-nvshmem.in ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/weft-nvshmem @ONLY FILE_PERMISSIONS ${weft_nvshmem_mode})
file(CREATE_LINK nvshmrun ${weft_nvshmem_prefix}/bin/nvshmrun.hydra SYMBOLIC)

# ---- Installed.
set(WEFT_RUN ../../../../bin/weft-run)
configure_file(${weft_nvshmem_source}/nvshmrun.in ${CMAKE_BINARY_DIR}/installed/nvshmrun @ONLY)
set(WEFT_NVSHMEM_PREFIX ../${weft_nvshmem_installed})
set(WEFT_LIB_FROM_BIN ${weft_lib_from_bin})
configure_file(${weft_nvshmem_source}/weft-nvshmem.in ${CMAKE_BINARY_DIR}/installed/weft-nvshmem @ONLY)
install(TARGETS nvshmem_host nvshmem_bootstrap_uid
        LIBRARY DESTINATION ${weft_nvshmem_installed}/lib COMPONENT development OPTIONAL NAMELINK_SKIP)
install(TARGETS nvshmem_device ARCHIVE DESTINATION ${weft_nvshmem_installed}/lib COMPONENT development OPTIONAL)
install(TARGETS nvshmem-info RUNTIME DESTINATION ${weft_nvshmem_installed}/bin COMPONENT development OPTIONAL)
install(FILES ${weft_nvshmem_prefix}/lib/libnvshmem.a DESTINATION ${weft_nvshmem_installed}/lib COMPONENT development)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/nvshmem/ DESTINATION ${weft_nvshmem_installed}/include COMPONENT development)
install(FILES ${weft_nvshmem_prefix}/lib/cmake/nvshmem/NVSHMEMConfig.cmake ${weft_nvshmem_prefix}/lib/cmake/nvshmem/NVSHMEMConfigVersion.cmake
        DESTINATION ${weft_nvshmem_installed}/lib/cmake/nvshmem COMPONENT development)
install(PROGRAMS ${CMAKE_BINARY_DIR}/installed/nvshmrun DESTINATION ${weft_nvshmem_installed}/bin COMPONENT development)
# Jobs need it too: --plugin.
install(PROGRAMS ${CMAKE_BINARY_DIR}/installed/weft-nvshmem DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
# Its targets, for builds that name theirs.
add_custom_target(nvshmem_prefix)
add_dependencies(nvshmem_prefix nvshmem_host nvshmem_device nvshmem_bootstrap_uid nvshmem_host_filter nvshmem-info)
if(WEFT_HAVE_CUDA)
  add_dependencies(nvshmem_prefix nvshmem_device_library)
endif()

if(SKBUILD)
  # A wheel has no links: texts lead linkers and CMake on, a filter leads those who open a library by NVSHMEM's name, the
  # library of the bootstrap, which is empty, is there twice, and so are the headers.
  set(weft_nvshmem_texts ${CMAKE_BINARY_DIR}/installed/nvshmem)
  file(WRITE ${weft_nvshmem_texts}/libnvshmem_host.so "/* For linkers; programs open: */ INPUT(libnvshmem_host.so.3)\n")
  file(WRITE ${weft_nvshmem_texts}/nvshmem_bootstrap_uid.so "/* For linkers; programs open: */ INPUT(nvshmem_bootstrap_uid.so.3)\n")
  install(PROGRAMS $<TARGET_FILE:nvshmem_host_filter> DESTINATION ${weft_nvshmem_installed}/lib COMPONENT development)
  install(PROGRAMS $<TARGET_FILE:nvshmem_bootstrap_uid> DESTINATION ${weft_nvshmem_installed}/lib COMPONENT development
          RENAME nvshmem_bootstrap_uid.so.3)
  foreach(file NVSHMEMConfig NVSHMEMConfigVersion)
    file(WRITE ${weft_nvshmem_texts}/${file}.cmake "include(\"\${CMAKE_CURRENT_LIST_DIR}/lib/cmake/nvshmem/${file}.cmake\")\n")
    install(FILES ${weft_nvshmem_texts}/${file}.cmake DESTINATION ${weft_nvshmem_installed} COMPONENT development)
  endforeach()
  install(FILES ${weft_nvshmem_texts}/libnvshmem_host.so ${weft_nvshmem_texts}/nvshmem_bootstrap_uid.so
          DESTINATION ${weft_nvshmem_installed}/lib COMPONENT development)
  install(PROGRAMS ${CMAKE_BINARY_DIR}/installed/nvshmrun DESTINATION ${weft_nvshmem_installed}/bin RENAME nvshmrun.hydra COMPONENT development)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/weft DESTINATION ${weft_nvshmem_installed}/include COMPONENT development)
else()
  file(RELATIVE_PATH weft_nvshmem_weft /prefix/${weft_nvshmem_installed}/include /prefix/${CMAKE_INSTALL_INCLUDEDIR}/weft)
  install(CODE "
    set(prefix \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${weft_nvshmem_installed}\")
    foreach(file NVSHMEMConfig NVSHMEMConfigVersion)
      file(CREATE_LINK lib/cmake/nvshmem/\${file}.cmake \"\${prefix}/\${file}.cmake\" SYMBOLIC)
    endforeach()
    foreach(end .so .so.3)
      file(CREATE_LINK libweft_nvshmem_host.so.3 \"\${prefix}/lib/libnvshmem_host\${end}\" SYMBOLIC)
      file(CREATE_LINK weft_nvshmem_bootstrap_uid.so.3 \"\${prefix}/lib/nvshmem_bootstrap_uid\${end}\" SYMBOLIC)
    endforeach()
    file(CREATE_LINK nvshmrun \"\${prefix}/bin/nvshmrun.hydra\" SYMBOLIC)
    file(CREATE_LINK ${weft_nvshmem_weft} \"\${prefix}/include/weft\" SYMBOLIC)" COMPONENT development)
endif()
