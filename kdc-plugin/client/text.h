// SPDX-License-Identifier: Apache-2.0
#ifndef KDC_PLUGIN_CLIENT_TEXT_H_
#define KDC_PLUGIN_CLIENT_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "kdc-plugin/client/mpc_client.h"

namespace mpckdc::client {

// What the C interface gives; null is empty.
inline std::string Text(const char* text) { return text == nullptr ? "" : text; }
inline std::string Copy(mpc_bytes bytes) {
  return bytes.size == 0 ? "" : std::string(reinterpret_cast<const char*>(bytes.data), bytes.size);
}
// What the lines for the log begin with.
inline std::string LogPrefix(const mpc_options& options) {
  return options.names_realm != 0 ? Text(options.realm) + ": " : "";
}

// For mpc_text_free().
char* DuplicateText(absl::string_view text);

}  // namespace mpckdc::client

#endif  // KDC_PLUGIN_CLIENT_TEXT_H_
