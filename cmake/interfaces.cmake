# Sources that are made from tables (scripts/interfaces) as they are built: functions that differ in a name and a type, one
# a line. The public headers of the same tables are checked in, but pshmem.h, which is shmem.h under other names.
# The generator leaves files alone that need no change, so a change of a table compiles anew only what became different.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
set(weft_generated ${CMAKE_BINARY_DIR}/generated)
set(weft_generator ${CMAKE_SOURCE_DIR}/scripts/generate_interfaces)
set(weft_generator_core ${CMAKE_SOURCE_DIR}/scripts/interfaces/core.py)

# weft_interface(NAME FILE...): sets NAME_sources to these files in the build, all that NAME's table gives, and makes
# NAME_interface, on which targets of other folders depend that use them.
function(weft_interface name)
  list(TRANSFORM ARGN PREPEND ${weft_generated}/ OUTPUT_VARIABLE outputs)
  set(tables ${CMAKE_SOURCE_DIR}/scripts/interfaces)
  file(GLOB tables CONFIGURE_DEPENDS ${tables}/c_types.py ${tables}/${name}.py ${tables}/${name}_*.py)
  add_custom_command(
    OUTPUT ${outputs}
    COMMAND Python3::Interpreter ${weft_generator} --sources ${name} --out ${weft_generated} ${ARGN}
    DEPENDS ${weft_generator} ${weft_generator_core} ${tables}
    COMMENT "Writing the functions of ${name}"
    VERBATIM)
  add_custom_target(${name}_interface DEPENDS ${outputs})
  set(${name}_sources ${outputs} PARENT_SCOPE)
endfunction()
