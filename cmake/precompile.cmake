# SPDX-License-Identifier: Apache-2.0
# Precompiled headers for every C++ target, chosen by what it links; included when all targets exist.
#
#   pch/base.h      the standard library and abseil
#   pch/rpc.h       and gRPC with our messages: what links mpckdc_proto
#   pch/test.h      base and GoogleTest: what links it
#   pch/rpc_test.h  both
#
# A file with flags of its own (an instruction set) takes none: it could not, and must not see them.
# -DMPCKDC_PCH=OFF builds without, which shows that each file includes what it uses.
option(MPCKDC_PCH "precompiled headers" ON)
# What a test tries is compiled as ever; the test itself, whose objects are most of a build, with less care.
set(MPCKDC_TEST_OPTIONS -O1)

function(mpckdc_pch_library NAME)
  set(source ${CMAKE_BINARY_DIR}/pch/${NAME}.cc)
  if(NOT EXISTS ${source})
    file(WRITE ${source} "// Carries a precompiled header.\n")
  endif()
  add_library(mpckdc_pch_${NAME} OBJECT EXCLUDE_FROM_ALL ${source})
  target_precompile_headers(mpckdc_pch_${NAME} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/pch/${NAME}.h)
  target_link_libraries(mpckdc_pch_${NAME} PRIVATE ${ARGN})
endfunction()

# All that TARGET links, at any depth, as far as CMake knows the names.
function(mpckdc_links_of TARGET OUT)
  set(seen)
  set(todo ${TARGET})
  while(todo)
    list(POP_FRONT todo target)
    if(target IN_LIST seen)
      continue()
    endif()
    list(APPEND seen ${target})
    if(NOT TARGET ${target} OR (NOT target MATCHES "^mpckdc_" AND NOT target STREQUAL TARGET))
      continue()
    endif()
    foreach(property LINK_LIBRARIES INTERFACE_LINK_LIBRARIES)
      get_target_property(links ${target} ${property})
      if(links)
        list(APPEND todo ${links})
      endif()
    endforeach()
  endwhile()
  set(${OUT} ${seen} PARENT_SCOPE)
endfunction()

function(mpckdc_precompile_target TARGET)
  get_target_property(type ${TARGET} TYPE)
  get_target_property(sources ${TARGET} SOURCES)
  get_target_property(folder ${TARGET} SOURCE_DIR)
  if(NOT type MATCHES "(STATIC|SHARED|MODULE|OBJECT)_LIBRARY|EXECUTABLE" OR sources MATCHES "\\.c(;|$)" OR
     "${TARGET}" MATCHES "^mpckdc_(pch_.*|proto|health_proto|thread_annotations)$")
    return()
  endif()
  foreach(source ${sources})
    get_filename_component(source ${source} ABSOLUTE BASE_DIR ${folder})
    get_source_file_property(flags ${source} TARGET_DIRECTORY ${TARGET} COMPILE_FLAGS)
    if(flags)
      set_source_files_properties(${source} TARGET_DIRECTORY ${TARGET}
        PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
  mpckdc_links_of(${TARGET} links)
  if("mpckdc_proto" IN_LIST links AND "GTest::gtest" IN_LIST links)
    set(pch rpc_test)
  elseif("mpckdc_proto" IN_LIST links)
    set(pch rpc)
  elseif("GTest::gtest" IN_LIST links)
    set(pch test)
  else()
    set(pch base)
  endif()
  target_precompile_headers(${TARGET} REUSE_FROM mpckdc_pch_${pch})
  # GCC 12 forgets that a precompiled std::string is a system header's and warns of its insides.
  target_compile_options(${TARGET} PRIVATE -Wno-array-bounds)
  if(pch MATCHES "test")
    target_compile_options(${TARGET} PRIVATE ${MPCKDC_TEST_OPTIONS} -Wno-stringop-overflow -Wno-restrict)
  endif()
endfunction()

function(mpckdc_precompile_folder FOLDER)
  get_property(targets DIRECTORY ${FOLDER} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target ${targets})
    mpckdc_precompile_target(${target})
  endforeach()
  get_property(folders DIRECTORY ${FOLDER} PROPERTY SUBDIRECTORIES)
  foreach(folder ${folders})
    mpckdc_precompile_folder(${folder})
  endforeach()
endfunction()

if(MPCKDC_PCH)
  mpckdc_pch_library(base)
  mpckdc_pch_library(rpc mpckdc_proto)
  if(MPCKDC_TESTS)
    mpckdc_pch_library(test GTest::gtest GTest::gmock)
    mpckdc_pch_library(rpc_test mpckdc_proto GTest::gtest GTest::gmock)
    foreach(pch test rpc_test)
      target_compile_options(mpckdc_pch_${pch} PRIVATE ${MPCKDC_TEST_OPTIONS})
    endforeach()
  endif()
  mpckdc_precompile_folder(${CMAKE_SOURCE_DIR})
endif()
