// SPDX-License-Identifier: Apache-2.0
//
// Tests that draw many cases: `make test` draws enough to see what they are for, `make test-long`
// (MPCKDC_LONG) the rest, which mostly repeats it.
#ifndef MPC_SERVER_TESTING_LONG_TESTS_H_
#define MPC_SERVER_TESTING_LONG_TESTS_H_

#include <cstdlib>

namespace mpckdc {

inline bool LongTests() {
  const char* text = std::getenv("MPCKDC_LONG");
  return text != nullptr && *text != '\0';
}

template <class T>
T ShortOrLong(T in_make_test, T in_make_test_long) {
  return LongTests() ? in_make_test_long : in_make_test;
}

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_LONG_TESTS_H_
