// SPDX-License-Identifier: Apache-2.0
#ifndef KDC_PLUGIN_KDB_TOOL_SCRATCH_DB_H_
#define KDC_PLUGIN_KDB_TOOL_SCRATCH_DB_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mpckdc::kdbtool {

// A dump of the realm that is imported becomes a database in a folder of its own (mode 0700), by
// MIT's kdb5_util: db2, with a kdc.conf that SourceDb reads. Its keys are encrypted under the old
// master key, as they are in the dump. The same dump is not loaded again; another one is refused.
//
//   FOLDER/kdc.conf   written last: without it the folder is thrown away and made anew
//   FOLDER/principal  and what db2 puts beside it
//
// Returns the path of kdc.conf.
absl::StatusOr<std::string> LoadScratch(const std::string& folder, const std::string& dump,
                                        const std::string& stash, const std::string& realm);

// Overwrites each file with zeros, syncs it to the disk and removes it; a file that is not there is
// no error. On copy-on-write file systems and flash memory the old blocks may survive.
absl::Status OverwriteFiles(const std::vector<std::string>& files);
// The same for the files of a folder of LoadScratch(), and the folder.
absl::Status ScrubScratch(const std::string& folder);

// A program of krb5 beside this one, or in PATH, with another kdc.conf; its last line of errors in
// the status. Standard output is discarded.
absl::Status RunKrb5(const std::string& program, const std::vector<std::string>& arguments,
                     const std::string& profile);

}  // namespace mpckdc::kdbtool

#endif  // KDC_PLUGIN_KDB_TOOL_SCRATCH_DB_H_
