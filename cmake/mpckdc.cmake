# SPDX-License-Identifier: Apache-2.0
# mpckdc_test(NAME SRCS a_test.cc ... DEPS lib ...): one GoogleTest program, one ctest entry.
function(mpckdc_test NAME)
  if(NOT MPCKDC_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${NAME} ${ARG_SRCS})
  target_link_libraries(${NAME} PRIVATE ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  add_test(NAME ${NAME} COMMAND ${NAME})
  set_tests_properties(${NAME} PROPERTIES TIMEOUT 300)
endfunction()
