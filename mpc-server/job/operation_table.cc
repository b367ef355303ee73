// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/job/operation_table.h"

namespace mpckdc {

absl::string_view OperationName(Operation operation) {
  const OperationRule* rule = FindOperation(operation);
  return rule != nullptr ? rule->name : "unknown operation";
}

absl::string_view PartKindName(PartKind kind) {
  switch (kind) {
    case PartKind::kOpen: return "open";
    case PartKind::kSeal: return "seal";
    case PartKind::kMakeMac: return "make_mac";
    case PartKind::kVerifyMac: return "verify_mac";
  }
  return "part";
}

absl::string_view KeyClassName(KeyClass key_class) {
  switch (key_class) {
    case KeyClass::kUser: return "user";
    case KeyClass::kTgs: return "tgs";
    case KeyClass::kService: return "service";
    case KeyClass::kTgsOld:
      return "tgs-old";
    case KeyClass::kHistory:
      return "history";
  }
  return "unknown";
}

}  // namespace mpckdc
