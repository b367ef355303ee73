// SPDX-License-Identifier: Apache-2.0
#ifndef KDC_PLUGIN_CLIENT_TEXT_H_
#define KDC_PLUGIN_CLIENT_TEXT_H_

#include "absl/strings/string_view.h"

namespace mpckdc::client {

// For mpc_text_free().
char* DuplicateText(absl::string_view text);

}  // namespace mpckdc::client

#endif  // KDC_PLUGIN_CLIENT_TEXT_H_
