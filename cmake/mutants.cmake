# SPDX-License-Identifier: Apache-2.0
# Controls of tests: the servers' own sources with small patches, one for each defence, that let a
# test drop it (integration-tests/intruder/mutants). The patches are applied at build; one that no
# longer fits the source fails the build, and is then to be written again for what the source has
# become.

# mpckdc_mutants(OUT): all patched sources, below the build folder.
function(mpckdc_mutants OUT)
  set(folder ${CMAKE_SOURCE_DIR}/integration-tests/intruder/mutants)
  file(GLOB patches CONFIGURE_DEPENDS ${folder}/*.patch)
  set(sources)
  foreach(patch ${patches})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${patch})
    file(STRINGS ${patch} targets REGEX "^\\+\\+\\+ b/")
    list(TRANSFORM targets REPLACE "^\\+\\+\\+ b/([^\t ]*).*" "\\1")
    list(APPEND sources ${targets})
  endforeach()
  list(REMOVE_DUPLICATES sources)
  list(TRANSFORM sources PREPEND ${CMAKE_BINARY_DIR}/mutants/ OUTPUT_VARIABLE mutated)
  list(TRANSFORM sources PREPEND ${CMAKE_SOURCE_DIR}/ OUTPUT_VARIABLE originals)
  add_custom_command(OUTPUT ${mutated}
    COMMAND ${folder}/apply.sh ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/mutants ${sources}
    DEPENDS ${originals} ${patches} ${folder}/apply.sh
    COMMENT "Applying the mutants of integration-tests/intruder")
  set(${OUT} ${mutated} PARENT_SCOPE)
endfunction()
