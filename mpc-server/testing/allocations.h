// SPDX-License-Identifier: Apache-2.0
// Counts the process's allocations by operator new; secrets have an arena of their own. For a test
// program that links it.
#ifndef MPC_SERVER_TESTING_ALLOCATIONS_H_
#define MPC_SERVER_TESTING_ALLOCATIONS_H_

#include <cstddef>

namespace mpckdc {

size_t CountedAllocations();

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_ALLOCATIONS_H_
