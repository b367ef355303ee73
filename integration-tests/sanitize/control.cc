// SPDX-License-Identifier: Apache-2.0
//
// Planted bugs, of which a sanitizer's build must speak before it is believed that it finds none
// elsewhere; and one that is none: what absl::Mutex protects is no race.
//
//   sanitize_control race|mutex|heap|overflow
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <thread>

#include "absl/synchronization/mutex.h"

namespace {

absl::Mutex mutex;
int shared = 0;

void Count(bool lock) {
  for (int i = 0; i < 1000; ++i) {
    if (lock) mutex.Lock();
    shared = shared + 1;
    if (lock) mutex.Unlock();
  }
}

void Race(bool lock) {
  std::thread other(Count, lock);
  Count(lock);
  other.join();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  volatile int size = argc > 1 ? 8 : 0;  // that the compiler does not know
  if (what == "race" || what == "mutex") {
    Race(what == "mutex");
  } else if (what == "heap") {
    char* const bytes = static_cast<char*>(std::malloc(static_cast<size_t>(size)));
    volatile char past = bytes[size];
    std::free(bytes);
    return past;
  } else if (what == "overflow") {
    volatile int most = std::numeric_limits<int>::max();
    most = most + size;
  } else {
    return 2;
  }
  std::printf("%s: nothing found\n", what.c_str());
  return 0;
}
