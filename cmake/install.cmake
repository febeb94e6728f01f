# What `cmake --install` puts where: the library, the public headers, the tools, and the two ways in which
# other projects find them (CMake's find_package and pkg-config). The installed tree may be moved.
# The component runtime is what jobs need, development what is compiled with; packages.cmake makes packages of them.
include(CMakePackageConfigHelpers)

set(weft_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weft)
set(weft_namelink NAMELINK_COMPONENT development)
if(SKBUILD)
  # A wheel has no links: the one file has the name that programs ask for, and a text leads linkers to it.
  set(weft_namelink NAMELINK_SKIP)
  set_target_properties(weft weft_moe PROPERTIES VERSION 0)
  foreach(library libweft libweft_moe)
    file(WRITE ${CMAKE_BINARY_DIR}/installed/${library}.so "/* For linkers; programs open: */ INPUT(${library}.so.0)\n")
    install(FILES ${CMAKE_BINARY_DIR}/installed/${library}.so DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
  endforeach()
endif()
# What programs link as weft::weft: both libraries, of which the linker takes those that the program uses.
add_library(weft_programs INTERFACE)
target_link_libraries(weft_programs INTERFACE weft -Wl,--push-state,--as-needed weft_moe -Wl,--pop-state)
set_target_properties(weft_programs PROPERTIES EXPORT_NAME weft)
add_library(weft::weft ALIAS weft_programs)
install(TARGETS weft weft_moe weft_programs shmem EXPORT weftTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime OPTIONAL ${weft_namelink})
install(EXPORT weftTargets NAMESPACE weft:: DESTINATION ${weft_package_dir} COMPONENT development)
install(DIRECTORY include/ moe/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp" PATTERN "*.cuh" PATTERN nvshmem EXCLUDE)
install(FILES ${weft_generated}/include/pshmem.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)

configure_package_config_file(cmake/weftConfig.cmake.in weftConfig.cmake INSTALL_DESTINATION ${weft_package_dir})
write_basic_package_version_file(weftConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/weftConfig.cmake ${CMAKE_BINARY_DIR}/weftConfigVersion.cmake
        DESTINATION ${weft_package_dir} COMPONENT development)

file(RELATIVE_PATH WEFT_PREFIX_FROM_PC /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
foreach(package weft weft-moe weft-shmem)
  configure_file(cmake/${package}.pc.in ${package}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endforeach()
include(cmake/wrappers.cmake)

# A build of some targets alone (./demo) can be installed: what it lacks is named.
foreach(tool weft-run weft-perf weft-info weft-sim)
  if(TARGET ${tool})
    install(TARGETS ${tool} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime OPTIONAL)
    install(CODE "
      if(NOT EXISTS \"${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${tool}\")
        message(WARNING \"${tool} is not built, so it is not installed; build everything, and install again: \"
                        \"cmake --build ${CMAKE_BINARY_DIR}\")
      endif()" COMPONENT runtime)
  endif()
endforeach()

# Tools in Python: the launcher finds its package relative to itself, and the packages it needs are listed beside it.
# A wheel has extras for these. What they share lies beside them.
install(FILES tools/balance/nic_counters.py DESTINATION share/weft/balance COMPONENT runtime)
foreach(tool top plot)
  if(EXISTS ${CMAKE_SOURCE_DIR}/tools/${tool}/weft-${tool})
    install(PROGRAMS tools/${tool}/weft-${tool} DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
    install(DIRECTORY tools/${tool}/weft_${tool} DESTINATION share/weft/${tool} COMPONENT runtime
            FILES_MATCHING PATTERN "*.py" PATTERN "*.tcss" PATTERN "__pycache__" EXCLUDE)
    if(NOT SKBUILD)
      install(FILES tools/${tool}/requirements.txt DESTINATION share/weft/${tool} COMPONENT runtime OPTIONAL)
    endif()
  endif()
endforeach()

# Loom, where it was built. The command finds its provider in lib/loom.
if(TARGET loom)
  install(TARGETS loom RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime OPTIONAL)
  install(TARGETS loom_provider LIBRARY DESTINATION lib/loom COMPONENT runtime OPTIONAL)
endif()
