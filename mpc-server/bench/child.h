// SPDX-License-Identifier: Apache-2.0
// A child process that is spoken to line by line over two pipes.
#ifndef MPC_SERVER_BENCH_CHILD_H_
#define MPC_SERVER_BENCH_CHILD_H_

#include <sys/types.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mpckdc::bench {

class Child {
 public:
  // `words` is the command, looked up in PATH; `variable`, NAME=VALUE, joins its environment.
  static absl::StatusOr<std::unique_ptr<Child>> Start(std::vector<std::string> words,
                                                      std::string variable);
  // Ends its input and waits for it; kills it first if a line was asked for in vain.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  absl::Status Write(absl::string_view line);
  // Unavailable: it closed its output.
  absl::StatusOr<std::string> Read();

 private:
  explicit Child(std::string name) : name_(std::move(name)) {}

  const std::string name_;
  pid_t pid_ = -1;
  FILE* to_ = nullptr;
  FILE* from_ = nullptr;
  bool failed_ = false;
};

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_CHILD_H_
