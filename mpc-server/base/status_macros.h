// SPDX-License-Identifier: Apache-2.0
//
// What follows a call that may fail, in a function that returns absl::Status or absl::StatusOr.
#ifndef MPC_SERVER_BASE_STATUS_MACROS_H_
#define MPC_SERVER_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// RETURN_IF_ERROR(Write(file)): returns the absl::Status unless it is OK.
#define RETURN_IF_ERROR(...)                                                        \
  do {                                                                              \
    if (absl::Status status_of_call = (__VA_ARGS__); !status_of_call.ok()) {        \
      return status_of_call;                                                        \
    }                                                                               \
  } while (false)

// ASSIGN_OR_RETURN(std::string text, Read(file)): declares `text`, or returns Read()'s error.
#define ASSIGN_OR_RETURN(declaration, ...) \
  ASSIGN_OR_RETURN_AS(STATUS_MACROS_JOIN(result_of_line_, __LINE__), declaration, __VA_ARGS__)
#define ASSIGN_OR_RETURN_AS(result, declaration, ...) \
  auto result = (__VA_ARGS__);                        \
  if (!result.ok()) return std::move(result).status(); \
  declaration = *std::move(result)
#define STATUS_MACROS_JOIN(a, b) STATUS_MACROS_JOIN_2(a, b)
#define STATUS_MACROS_JOIN_2(a, b) a##b

#endif  // MPC_SERVER_BASE_STATUS_MACROS_H_
