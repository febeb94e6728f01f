# libfabric and libpmix are opened at run time: their headers are enough to build, and nothing links them.
#
# libfabric keeps old versions of a symbol for programs that were built with older headers. WEFT_LIBFABRIC_INFO_VERSION is
# the version that belongs to the headers found here, read from the library that lies beside them.

# headers_of(TARGET MODULE): an interface target with the include folders of a pkg-config module, and nothing else.
function(headers_of target module)
  add_library(${target} INTERFACE)
  target_include_directories(${target} SYSTEM INTERFACE ${${module}_INCLUDE_DIRS})
endfunction()

headers_of(libfabric_headers libfabric)
if(pmix_FOUND)
  headers_of(pmix_headers pmix)
endif()

find_library(weft_libfabric_file fabric HINTS ${libfabric_LIBRARY_DIRS} REQUIRED)
execute_process(COMMAND ${CMAKE_NM} --dynamic --with-symbol-versions ${weft_libfabric_file}
                OUTPUT_VARIABLE weft_libfabric_symbols ERROR_VARIABLE weft_libfabric_error)
if(NOT weft_libfabric_symbols MATCHES " fi_getinfo@@(FABRIC_[0-9.]+)")
  message(FATAL_ERROR "${CMAKE_NM} shows no version of fi_getinfo in ${weft_libfabric_file}: ${weft_libfabric_error}")
endif()
set(WEFT_LIBFABRIC_INFO_VERSION ${CMAKE_MATCH_1})
