# Compiler cache, linker, warnings and sanitizers, for all targets.
find_program(WEFT_CCACHE ccache)
if(WEFT_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}
      CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime ${WEFT_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
endif()

add_library(weft_build_flags INTERFACE)
set(weft_warnings -Wall -Wextra -Wno-missing-field-initializers -Wshadow -Wconversion -Wno-sign-conversion
    $<$<BOOL:${WEFT_WERROR}>:-Werror> $<$<CONFIG:Debug>:-Og> -fno-omit-frame-pointer)
# Host warnings in .cu files come from nvcc's own glue; the same headers are compiled as C++ too.
target_compile_options(weft_build_flags INTERFACE "$<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:${weft_warnings}>"
                       "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>"
                       # For profilers; what is published must not name the folder in which it was built.
                       "$<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${WEFT_TESTS}>>:-lineinfo>"
                       "$<$<AND:$<BOOL:${WEFT_WERROR}>,$<COMPILE_LANGUAGE:CUDA>>:-Werror=all-warnings>")
if(WEFT_SANITIZE)
  target_compile_options(weft_build_flags INTERFACE
    "$<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:-fsanitize=${WEFT_SANITIZE};-fno-sanitize-recover=all>")
  target_link_options(weft_build_flags INTERFACE -fsanitize=${WEFT_SANITIZE})
  # GCC warns that ThreadSanitizer does not see stand-alone fences; docs/MEMORY_MODEL.md lists ours.
  target_compile_options(weft_build_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-tsan>)
endif()
