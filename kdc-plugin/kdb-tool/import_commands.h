// SPDX-License-Identifier: Apache-2.0
#ifndef KDC_PLUGIN_KDB_TOOL_IMPORT_COMMANDS_H_
#define KDC_PLUGIN_KDB_TOOL_IMPORT_COMMANDS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mpckdc::kdbtool {

// The usage text's lines of the commands below.
extern const char kImportUsage[];

bool IsImportCommand(absl::string_view command);
// `arguments` begin with the command. InvalidArgument with an empty text: a wrong command line.
absl::Status RunImportCommand(const std::string& realm, const std::vector<std::string>& arguments);

}  // namespace mpckdc::kdbtool

#endif  // KDC_PLUGIN_KDB_TOOL_IMPORT_COMMANDS_H_
