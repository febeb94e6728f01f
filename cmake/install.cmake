# What `cmake --install` puts where: the library, the public headers, the tools, and the two ways in which
# other projects find them (CMake's find_package and pkg-config). The installed tree may be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(weft_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weft)
install(TARGETS weft shmem EXPORT weftTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT weftTargets NAMESPACE weft:: DESTINATION ${weft_package_dir})
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp" PATTERN "*.cuh")

configure_package_config_file(cmake/weftConfig.cmake.in weftConfig.cmake INSTALL_DESTINATION ${weft_package_dir})
write_basic_package_version_file(weftConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/weftConfig.cmake ${CMAKE_BINARY_DIR}/weftConfigVersion.cmake
        DESTINATION ${weft_package_dir})

file(RELATIVE_PATH WEFT_PREFIX_FROM_PC /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
foreach(package weft weft-shmem)
  configure_file(cmake/${package}.pc.in ${package}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
include(cmake/wrappers.cmake)

# A build of some targets alone (./demo) can be installed: what it lacks is named.
foreach(tool weft-run weft-perf weft-info)
  if(TARGET ${tool})
    install(TARGETS ${tool} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} OPTIONAL)
    install(CODE "
      if(NOT EXISTS \"${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${tool}\")
        message(WARNING \"${tool} is not built, so it is not installed; build everything, and install again: \"
                        \"cmake --build ${CMAKE_BINARY_DIR}\")
      endif()")
  endif()
endforeach()

# Tools in Python: the launcher finds its package relative to itself, and the packages it needs are listed beside it.
foreach(tool top plot)
  if(EXISTS ${CMAKE_SOURCE_DIR}/tools/${tool}/weft-${tool})
    install(PROGRAMS tools/${tool}/weft-${tool} DESTINATION ${CMAKE_INSTALL_BINDIR})
    install(DIRECTORY tools/${tool}/weft_${tool} DESTINATION share/weft/${tool} FILES_MATCHING PATTERN "*.py"
            PATTERN "*.tcss" PATTERN "__pycache__" EXCLUDE)
    install(FILES tools/${tool}/requirements.txt DESTINATION share/weft/${tool} OPTIONAL)
  endif()
endforeach()

# Loom, where it was built. The command finds its provider in lib/loom.
if(TARGET loom)
  install(TARGETS loom RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} OPTIONAL)
  install(TARGETS loom_provider LIBRARY DESTINATION lib/loom OPTIONAL)
endif()
