// SPDX-License-Identifier: Apache-2.0
//
// Whether files are still those that were read: which file a name leads to, its size and when it
// was written. Symbolic links are followed, so that a link that is turned to another folder shows.
#ifndef MPC_SERVER_BASE_FILE_STAMP_H_
#define MPC_SERVER_BASE_FILE_STAMP_H_

#include <cstdint>
#include <string>
#include <vector>

namespace mpckdc {

struct FileStamp {
  bool there = false;
  uint64_t device = 0, inode = 0;
  int64_t size = 0, written_ns = 0;

  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};
using FileStamps = std::vector<FileStamp>;

// In their order. What cannot be looked at is not there.
FileStamps StampsOf(const std::vector<std::string>& files);

}  // namespace mpckdc

#endif  // MPC_SERVER_BASE_FILE_STAMP_H_
