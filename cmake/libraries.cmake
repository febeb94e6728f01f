# fmt, spdlog, hwloc and libsodium: the distribution's, or, with WEFT_STATIC_LIBRARIES, inside libweft and the tools.
# A wheel is made the second way: where it is installed, these are missing or have other versions. Only linking
# differs, so that objects of both ways are the same ones of the compiler cache.
add_library(weft_fmt INTERFACE)
add_library(weft_spdlog INTERFACE)
add_library(weft_hwloc INTERFACE)
add_library(weft_sodium INTERFACE)

# spdlog is used by one file, so its headers alone serve; libspdlog would ask for the libstdc++ it was built with.
target_link_libraries(weft_spdlog INTERFACE weft_fmt Threads::Threads)
target_compile_definitions(weft_spdlog INTERFACE SPDLOG_FMT_EXTERNAL)
get_target_property(weft_spdlog_include spdlog::spdlog_header_only INTERFACE_INCLUDE_DIRECTORIES)
target_include_directories(weft_spdlog SYSTEM INTERFACE ${weft_spdlog_include})

# weft_static_archive(VARIABLE NAME): the path of libNAME.a.
function(weft_static_archive variable name)
  find_library(${variable} NAMES lib${name}.a)
  if(NOT ${variable})
    message(FATAL_ERROR "lib${name}.a was not found; install its development package, or configure with "
                        "-DWEFT_STATIC_LIBRARIES=OFF")
  endif()
endfunction()

function(weft_link_fmt_statically)
  get_target_property(definitions fmt::fmt INTERFACE_COMPILE_DEFINITIONS)
  get_target_property(include fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
  if(definitions)
    target_compile_definitions(weft_fmt INTERFACE ${definitions})
  endif()
  add_library(weft_static_fmt STATIC cmake/static/fmt.cpp)
  target_include_directories(weft_static_fmt SYSTEM PUBLIC ${include})
  target_link_libraries(weft_fmt INTERFACE weft_static_fmt)
endfunction()

# Distributions compile libhwloc.a for programs, not for libraries. What keeps it out of a library are three of
# libc's variables. It also calls libudev, and loads plugins, which belong to another copy of hwloc. Renamed, all
# these are what cmake/static/hwloc.c has.
function(weft_link_hwloc_statically)
  weft_static_archive(WEFT_HWLOC_ARCHIVE hwloc)
  set(archive ${CMAKE_BINARY_DIR}/lib/libweft_hwloc.a)
  set(renamed)
  foreach(name stdout stderr program_invocation_name dlopen udev_new udev_unref udev_device_unref
          udev_device_new_from_subsystem_sysname udev_device_get_property_value)
    list(APPEND renamed --redefine-sym ${name}=weft_hwloc_${name})
  endforeach()
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
  execute_process(COMMAND ${CMAKE_OBJCOPY} ${renamed} ${WEFT_HWLOC_ARCHIVE} ${archive} COMMAND_ERROR_IS_FATAL ANY)
  add_library(weft_static_hwloc STATIC cmake/static/hwloc.c)
  target_include_directories(weft_hwloc SYSTEM INTERFACE ${hwloc_INCLUDE_DIRS})
  target_link_libraries(weft_hwloc INTERFACE ${archive} weft_static_hwloc m)
endfunction()

if(WEFT_STATIC_LIBRARIES)
  weft_link_fmt_statically()
  weft_link_hwloc_statically()
  weft_static_archive(WEFT_SODIUM_ARCHIVE sodium)
  target_include_directories(weft_sodium SYSTEM INTERFACE ${libsodium_INCLUDE_DIRS})
  target_link_libraries(weft_sodium INTERFACE ${WEFT_SODIUM_ARCHIVE})
  # Their licences ask to come along.
  foreach(package libfmt-dev libspdlog-dev libhwloc-dev libsodium-dev nlohmann-json3-dev libcli11-dev)
    install(FILES /usr/share/doc/${package}/copyright DESTINATION share/weft/licenses RENAME ${package} OPTIONAL)
  endforeach()
else()
  target_link_libraries(weft_fmt INTERFACE fmt::fmt)
  target_link_libraries(weft_hwloc INTERFACE PkgConfig::hwloc)
  target_link_libraries(weft_sodium INTERFACE PkgConfig::libsodium)
endif()
