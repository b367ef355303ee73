# SPDX-License-Identifier: Apache-2.0
set(MPCKDC_TEST_SECONDS 300)  # then a test has failed; more under a sanitizer

# mpckdc_test(NAME SRCS a_test.cc ... DEPS lib ... [SECONDS n]): one GoogleTest program, one ctest
# entry. SECONDS: what a long one takes, about; the longest begin first.
function(mpckdc_test NAME)
  if(NOT MPCKDC_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "SECONDS" "SRCS;DEPS" ${ARGN})
  add_executable(${NAME} ${ARG_SRCS})
  target_link_libraries(${NAME} PRIVATE ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  add_test(NAME ${NAME} COMMAND ${NAME})
  set_tests_properties(${NAME} PROPERTIES TIMEOUT ${MPCKDC_TEST_SECONDS})
  if(ARG_SECONDS)
    set_tests_properties(${NAME} PROPERTIES COST ${ARG_SECONDS})
  endif()
endfunction()

# mpckdc_test_semi_honest(NAME [ARGUMENT...]): the same program again with semi-honest servers.
function(mpckdc_test_semi_honest NAME)
  if(MPCKDC_TESTS)
    add_test(NAME ${NAME}_semi_honest COMMAND ${NAME} ${ARGN})
    set_tests_properties(${NAME}_semi_honest PROPERTIES
      ENVIRONMENT "MPCKDC_TESTED_SECURITY=semi-honest" TIMEOUT ${MPCKDC_TEST_SECONDS})
  endif()
endfunction()

# mpckdc_manual(PROGRAM PAGE): a test that PAGE lists the options that PROGRAM has.
function(mpckdc_manual PROGRAM PAGE)
  if(MPCKDC_TESTS)
    add_test(NAME ${PROGRAM}_manual_test
      COMMAND /usr/bin/python3 -B ${CMAKE_SOURCE_DIR}/mpc-server/doc/man/options.py
              $<TARGET_FILE:${PROGRAM}> ${PAGE})
  endif()
endfunction()
