# What the Python module is built with: a CPython of 3.11 or later with its headers, and nanobind, which scripts/setup
# puts into .venv. A build of the wheel has both from its build system. For another machine it is built only if asked for, with
# that machine's headers (Python_INCLUDE_DIR) and this one's interpreter.
set(WEFT_HAVE_PYTHON NO)
if(NOT WEFT_PYTHON STREQUAL OFF AND NOT WEFT_SANITIZE
   AND (NOT CMAKE_CROSSCOMPILING OR WEFT_PYTHON STREQUAL ON))
  if(NOT DEFINED Python_EXECUTABLE AND EXISTS ${CMAKE_SOURCE_DIR}/.venv/bin/python)
    set(Python_EXECUTABLE ${CMAKE_SOURCE_DIR}/.venv/bin/python)
  endif()
  find_package(Python 3.11 COMPONENTS Interpreter Development.Module)
  if(Python_FOUND)
    execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_VARIABLE nanobind_ROOT
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    find_package(nanobind 3.1 CONFIG QUIET NO_CMAKE_FIND_ROOT_PATH)
  endif()
  if(nanobind_FOUND)
    set(WEFT_HAVE_PYTHON YES)
  elseif(WEFT_PYTHON STREQUAL ON)
    message(FATAL_ERROR "the Python module needs CPython >= 3.11 with its headers (python3-dev), and nanobind >= 3.1; "
                        "run scripts/setup, or configure with -DWEFT_PYTHON=OFF")
  endif()
endif()
message(STATUS "Python module: ${WEFT_HAVE_PYTHON}")

if(WEFT_HAVE_PYTHON)
  # nanobind's backend for each version of Python: those that scripts/nanobind_backends brought, or this one's alone.
  set(WEFT_NANOBIND_BACKENDS ${CMAKE_SOURCE_DIR}/build/nanobind-backends CACHE PATH "nanobind's backends, as files")
  file(GLOB weft_backends ${WEFT_NANOBIND_BACKENDS}/_nb_backend_v1.*.so)
  if(NOT weft_backends)
    file(GLOB weft_backends ${Python_SITELIB}/nanobind_backend/_nb_backend_v1.*.so ${Python_SITEARCH}/nanobind_backend/_nb_backend_v1.*.so)
  endif()
  list(REMOVE_DUPLICATES weft_backends)
  if(NOT weft_backends)
    message(FATAL_ERROR "nanobind_backend is missing; run scripts/setup, or: pip install nanobind-backend==1.0.0")
  endif()
endif()
