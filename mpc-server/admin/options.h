// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_ADMIN_OPTIONS_H_
#define MPC_SERVER_ADMIN_OPTIONS_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/admin.pb.h"

namespace mpckdc::admin {

// The command line, checked against the table of commands in options.cc.
struct Options {
  std::string command;
  std::vector<std::string> operands;
  std::set<std::string> flags;  // given flags without a value, e.g. "--replace"
  bool help = false;
  bool version = false;
  std::string config;  // empty: the default
  std::string keytab;
  std::string kinit;
  std::string head, since, until, principal;  // audit
  std::vector<int32_t> enctypes;      // --enctype, repeated or with commas
  std::optional<v1::Gate> gate;
  std::optional<v1::KeyClass> key_class;

  bool Has(const char* flag) const { return flags.count(flag) != 0; }
  bool json() const { return Has("--json"); }
};

// Arguments without the program's name.
absl::StatusOr<Options> ParseOptions(absl::Span<const std::string> arguments);

// All commands, or one with its options; "" for an unknown one.
std::string HelpText();
std::string HelpText(const std::string& command);

}  // namespace mpckdc::admin

#endif  // MPC_SERVER_ADMIN_OPTIONS_H_
