# SPDX-License-Identifier: Apache-2.0
# Programs under valgrind memcheck, which takes what they mark as secret for undefined memory and reports every
# branch and every address that depends on it. valgrind knows neither AVX-512 nor VAES: the portable and the
# AVX2 code is checked; the AVX-512 code is the same templates.
find_program(VALGRIND valgrind)
find_path(VALGRIND_INCLUDE valgrind/memcheck.h)

# What both kinds below begin with: ARG_SRCS, ARG_DEPS and the list that `more` names, and the program.
macro(mpckdc_check_program PROGRAM more)
  if(NOT MPCKDC_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS;${more}" ${ARGN})
  add_executable(${PROGRAM} ${ARG_SRCS})
  target_link_libraries(${PROGRAM} PRIVATE ${ARG_DEPS})
endmacro()

# mpckdc_constant_time(PROGRAM SRCS a_check.cc DEPS lib ... [QUICK isa ...]): with the argument `clean` nothing
# may be reported, with `leak` something must be, for then the program branches on a secret. `make test` runs
# the instruction sets that are QUICK, `make constant-time` both (ctest -C constant-time).
function(mpckdc_constant_time PROGRAM)
  mpckdc_check_program(${PROGRAM} QUICK ${ARGN})
  # Marks are calls of base/secret.cc, which this program has a copy of that makes them: the libraries are
  # those of production.
  set(marks ${CMAKE_SOURCE_DIR}/mpc-server/base/secret.cc)
  target_sources(${PROGRAM} PRIVATE ${marks})
  target_link_libraries(${PROGRAM} PRIVATE PkgConfig::SODIUM)
  if(NOT VALGRIND OR NOT VALGRIND_INCLUDE)
    message(STATUS "valgrind is missing: ${PROGRAM} is built and not run")
    return()
  endif()
  set_source_files_properties(${marks} PROPERTIES COMPILE_FLAGS -DMPCKDC_CONSTANT_TIME_MARKS)
  foreach(isa portable avx2)
    set(where CONFIGURATIONS constant-time)
    if(isa IN_LIST ARG_QUICK)
      set(where)
    endif()
    foreach(mode clean leak)
      set(name ${PROGRAM}_${isa}_${mode})
      add_test(NAME ${name} COMMAND ${VALGRIND} --error-exitcode=9 -q $<TARGET_FILE:${PROGRAM}> ${mode} ${where})
      set_tests_properties(${name} PROPERTIES ENVIRONMENT "MPCKDC_ISA=${isa}" TIMEOUT 1200)
    endforeach()
    # Whatever else goes wrong does not count as having seen it.
    set_tests_properties(${PROGRAM}_${isa}_leak PROPERTIES
      PASS_REGULAR_EXPRESSION "depends on uninitialised value")
  endforeach()
endfunction()

# mpckdc_timing(PROGRAM SRCS a.cc DEPS lib ... CASES name ...): times are measured, of each case and of its
# control, in which they must differ. `make constant-time` alone.
function(mpckdc_timing PROGRAM)
  mpckdc_check_program(${PROGRAM} CASES ${ARGN})
  foreach(case ${ARG_CASES})
    add_test(NAME ${PROGRAM}_${case} COMMAND ${PROGRAM} ${case} CONFIGURATIONS constant-time)
    add_test(NAME ${PROGRAM}_${case}_leak COMMAND ${PROGRAM} ${case} leak CONFIGURATIONS constant-time)
    set_tests_properties(${PROGRAM}_${case}_leak PROPERTIES PASS_REGULAR_EXPRESSION "times differ")
    set_tests_properties(${PROGRAM}_${case} ${PROGRAM}_${case}_leak PROPERTIES RUN_SERIAL TRUE TIMEOUT 600)
  endforeach()
endfunction()
