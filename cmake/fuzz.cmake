# SPDX-License-Identifier: Apache-2.0
# Fuzz targets (mpc-server/testing/fuzz.h), which lie beside what they try.
#
#   MPCKDC_FUZZ=ON   with clang: everything is compiled with the address and the undefined behaviour sanitizer
#                    and for coverage, each mpckdc_fuzz() is a program, and fuzz-targets.txt lists them;
#                    `make fuzz` builds and runs them (integration-tests/fuzz/README.md)
#   otherwise        all of them are one test, fuzz_replay
option(MPCKDC_FUZZ "build the fuzz targets with clang's libFuzzer" OFF)

if(MPCKDC_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "MPCKDC_FUZZ needs clang: -DCMAKE_C_COMPILER=clang-14 -DCMAKE_CXX_COMPILER=clang++-14")
  endif()
  # -O1 finds the same and compiles in half the time. An error ends the program: libFuzzer keeps the input.
  # The sanitizer watches what FORTIFY_SOURCE would, and clang's opinions of warnings are nobody's here.
  add_compile_options(-O1 -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined
    -fno-sanitize-recover=undefined -fprofile-instr-generate -fcoverage-mapping -U_FORTIFY_SOURCE
    -Wno-error -Wno-unknown-warning-option
    -fsanitize-coverage-ignorelist=${CMAKE_SOURCE_DIR}/integration-tests/fuzz/not-instrumented.txt)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
  # clang 14 does not know all features that we ask for: the portable code alone.
  add_compile_options("-D__builtin_cpu_supports(feature)=0")
  add_link_options(-fsanitize=address,undefined -fprofile-instr-generate)
endif()

# mpckdc_fuzz(PROGRAM SRCS a_fuzz.cc ... DEPS lib ... TARGETS "name a.cc b.cc" ...): the targets that are in
# SRCS, each with the files of this folder that it tries, whose lines `make fuzz` counts. Where these are a
# small part of a large library, OF names it and PARTS the files that do: the fuzz build takes nothing else.
function(mpckdc_fuzz PROGRAM)
  if(NOT MPCKDC_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "OF" "SRCS;DEPS;TARGETS;PARTS" ${ARGN})
  list(TRANSFORM ARG_SRCS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  if(NOT MPCKDC_FUZZ)
    set_property(GLOBAL APPEND PROPERTY mpckdc_fuzz_sources ${ARG_SRCS})
    set_property(GLOBAL APPEND PROPERTY mpckdc_fuzz_libraries ${ARG_OF} ${ARG_DEPS})
    return()
  endif()
  add_executable(${PROGRAM} ${ARG_SRCS} ${ARG_PARTS} ${CMAKE_SOURCE_DIR}/integration-tests/fuzz/libfuzzer_main.cc)
  target_link_libraries(${PROGRAM} PRIVATE ${ARG_DEPS} absl::span)
  target_link_options(${PROGRAM} PRIVATE -fsanitize=fuzzer)
  set_property(GLOBAL APPEND PROPERTY mpckdc_fuzz_programs ${PROGRAM})
  file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  foreach(target ${ARG_TARGETS})
    set_property(GLOBAL APPEND PROPERTY mpckdc_fuzz_targets
      "${folder} $<TARGET_FILE:${PROGRAM}> ${target}\n")
  endforeach()
endfunction()

# When all are known.
function(mpckdc_fuzz_finish)
  if(NOT MPCKDC_TESTS)
    return()
  endif()
  if(MPCKDC_FUZZ)
    get_property(targets GLOBAL PROPERTY mpckdc_fuzz_targets)
    string(REPLACE ";" "" targets "${targets}")
    file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/fuzz-targets.txt CONTENT "${targets}")
    get_property(programs GLOBAL PROPERTY mpckdc_fuzz_programs)
    add_custom_target(fuzz-programs DEPENDS ${programs})
    # No parsers there, and kernels of vectors that would take clang minutes each.
    foreach(library mpckdc_circuit mpckdc_bitslice mpckdc_proof)
      target_compile_options(${library} PRIVATE
        -fno-sanitize=all -fno-profile-instr-generate -fno-coverage-mapping)
      set_target_properties(${library} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
    endforeach()
    return()
  endif()
  get_property(sources GLOBAL PROPERTY mpckdc_fuzz_sources)
  get_property(libraries GLOBAL PROPERTY mpckdc_fuzz_libraries)
  list(REMOVE_DUPLICATES libraries)
  set(folder ${CMAKE_SOURCE_DIR}/integration-tests/fuzz)
  add_executable(fuzz_replay ${folder}/replay_main.cc ${sources})
  target_link_libraries(fuzz_replay PRIVATE ${libraries})
  add_test(NAME fuzz_replay COMMAND fuzz_replay ${folder}/corpus)
  set_tests_properties(fuzz_replay PROPERTIES TIMEOUT ${MPCKDC_TEST_SECONDS})
  # A planted bug, and an input that shows it: named, or the test above could not fail.
  add_test(NAME fuzz_replay_control COMMAND fuzz_replay ${folder}/control)
  set_tests_properties(fuzz_replay_control PROPERTIES
    PASS_REGULAR_EXPRESSION "target control_inverse, input [^\n]*/control_inverse.corpus:2")
endfunction()
