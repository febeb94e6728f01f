# Debian packages, by `cpack -G DEB` in a build folder: weft is what jobs need, libweft-dev what is compiled with.
# OpenMPI has oshcc and oshrun in /usr/bin too, so the packages have these names in /usr/lib/weft/bin.
set(weft_names_dir lib/weft/bin)
set(weft_names_make "file(MAKE_DIRECTORY \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${weft_names_dir}\")\n")
function(weft_debian_name component name target)
  install(CODE "${weft_names_make}
    file(CREATE_LINK ../../../bin/${target} \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${weft_names_dir}/${name}\" SYMBOLIC)"
    COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()
weft_debian_name(names_runtime weft-run weft-run)
install(PROGRAMS ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/oshrun DESTINATION ${weft_names_dir} COMPONENT names_runtime EXCLUDE_FROM_ALL)
weft_debian_name(names_development oshcc weft-cc)
weft_debian_name(names_development oshc++ weft-c++)
weft_debian_name(names_development oshCC weft-c++)
install(FILES LICENSE DESTINATION share/doc/weft RENAME copyright COMPONENT names_runtime EXCLUDE_FROM_ALL)
install(FILES LICENSE DESTINATION share/doc/libweft-dev RENAME copyright COMPONENT names_development EXCLUDE_FROM_ALL)

set(CPACK_PACKAGE_NAME weft)
set(CPACK_PACKAGE_VENDOR "the Weft project")
set(CPACK_PACKAGE_CONTACT "the Weft project <maintainers@weft.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "One-sided communication for clusters of GPUs and CPUs")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime names_runtime development names_development)
set(CPACK_COMPONENT_RUNTIME_GROUP runtime)
set(CPACK_COMPONENT_NAMES_RUNTIME_GROUP runtime)
set(CPACK_COMPONENT_DEVELOPMENT_GROUP development)
set(CPACK_COMPONENT_NAMES_DEVELOPMENT_GROUP development)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME weft)
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "One-sided communication for clusters of GPUs and CPUs
 libweft, with OpenSHMEM's functions, and the tools: weft-run, weft-info, weft-perf, weft-top, weft-plot, loom.")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS python3)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS "libfabric1, libpmix2 | libpmix2t64")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libweft-dev)
# libnvshmem_host asks for libweft, which is in the other package.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "Headers of Weft and OpenSHMEM, and the compiler wrappers
 For CMake's find_package(weft), pkg-config weft, weft-cc, and in /usr/lib/weft/bin oshcc and oshc++.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "weft (= ${PROJECT_VERSION})")
include(CPack)
