# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT, a header that names the commit of SOURCE. Touches it only when the name changed, so
# that nothing is compiled anew otherwise.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty
                OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT commit)
  set(commit unknown)
endif()
set(text "#define MPCKDC_COMMIT \"${commit}\"\n")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT "${before}" STREQUAL "${text}")
  file(WRITE ${OUTPUT} "${text}")
endif()
