# SPDX-License-Identifier: Apache-2.0
# MPCKDC_SANITIZE=address,undefined or thread: everything of ours under a sanitizer, for `make sanitize`. What
# it reports ends the program. Suppressions, each with its reason, are in integration-tests/sanitize.
set(MPCKDC_SANITIZE "" CACHE STRING "sanitizers: address,undefined or thread")

if(MPCKDC_SANITIZE)
  set(MPCKDC_TEST_SECONDS 1200)  # a test's own limit: ctest's --timeout is for those without
  # The sanitizer watches what FORTIFY_SOURCE would. GCC warns of more where it is asked to check.
  add_compile_options(-O1 -fno-omit-frame-pointer -fsanitize=${MPCKDC_SANITIZE} -fno-sanitize-recover=all
    -U_FORTIFY_SOURCE -Wno-error)
  add_link_options(-fsanitize=${MPCKDC_SANITIZE})

  # What it must be told of absl::Mutex and gRPC's queues: the first library of every program.
  if(MPCKDC_SANITIZE STREQUAL thread)
    add_library(mpckdc_thread_annotations SHARED
      ${CMAKE_SOURCE_DIR}/integration-tests/sanitize/thread_annotations.cc)
    target_compile_options(mpckdc_thread_annotations PRIVATE -fno-sanitize=all)
    set(itself $<STREQUAL:$<TARGET_PROPERTY:NAME>,mpckdc_thread_annotations>)
    add_link_options($<$<NOT:${itself}>:$<TARGET_FILE:mpckdc_thread_annotations>>)
    link_libraries(mpckdc_thread_annotations)
  endif()
endif()

# Planted bugs, which must be found, and each by its name.
function(mpckdc_sanitize_control)
  if(NOT MPCKDC_SANITIZE)
    return()
  endif()
  add_executable(sanitize_control ${CMAKE_SOURCE_DIR}/integration-tests/sanitize/control.cc)
  target_link_libraries(sanitize_control PRIVATE absl::synchronization Threads::Threads)
  set(bugs "heap:heap-buffer-overflow" "overflow:signed integer overflow")
  set(rpc_bugs)
  if(MPCKDC_SANITIZE STREQUAL thread)
    set(bugs "race:data race" "mutex:mutex. nothing found")
    add_executable(sanitize_rpc_control ${CMAKE_SOURCE_DIR}/integration-tests/sanitize/rpc_control.cc)
    target_link_libraries(sanitize_rpc_control PRIVATE
      gRPC::grpc++ absl::any_invocable absl::synchronization absl::time Threads::Threads)
    # The race that was planted, and no other: its function.
    set(rpc_bugs "handler:SUMMARY.*data race.*CountCall" "handler_mutex:handler_mutex. nothing found"
      "handed:SUMMARY.*data race.*(Alter|HandOver)" "handed_before:handed_before. nothing found")
  endif()
  foreach(bug ${bugs} ${rpc_bugs})
    string(REGEX MATCH "^([a-z_]+):(.*)$" matched ${bug})
    set(program sanitize_control)
    if(bug IN_LIST rpc_bugs)
      set(program sanitize_rpc_control)
    endif()
    # The exit status of what was found would hide whether it was.
    add_test(NAME sanitize_control_${CMAKE_MATCH_1}
      COMMAND sh -c "$<TARGET_FILE:${program}> ${CMAKE_MATCH_1} || true")
    set_tests_properties(sanitize_control_${CMAKE_MATCH_1} PROPERTIES
      PASS_REGULAR_EXPRESSION "${CMAKE_MATCH_2}")
  endforeach()
endfunction()
