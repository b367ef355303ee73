// SPDX-License-Identifier: Apache-2.0
#ifndef KDC_PLUGIN_KDB_TOOL_SCRUB_H_
#define KDC_PLUGIN_KDB_TOOL_SCRUB_H_

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"

namespace mpckdc::kdbtool {

// What an import read; empty: none.
struct ImportedFrom {
  std::string scratch;  // a folder of LoadScratch()
  std::string source;   // a kdc.conf
  std::string dump;
  std::string stash;
};

// After the commit: overwrites what is left of the imported real keys on this host.
//
//   the realm's own database   deleted records stay in its pages: it is dumped, loaded into new
//                              files, and the old files are overwritten. If that is interrupted,
//                              the same command begins again
//   another source's files     overwritten, if it is db2 or klmdb
//   scratch, dump, stash       overwritten; never a stash that the realm still needs
//
// Refuses while an entry has an import's record. Returns {"overwritten": [...], "left": [...]}.
absl::StatusOr<nlohmann::json> ScrubRealm(const std::string& realm, const ImportedFrom& from);

// klmdb: a scrub that was interrupted may have left the database under another name. To be called
// before it is opened: puts it back, unless the new file is whole; if that cannot be told it is an
// error that says what to do.
absl::Status UndoScrub(const std::string& realm);

}  // namespace mpckdc::kdbtool

#endif  // KDC_PLUGIN_KDB_TOOL_SCRUB_H_
