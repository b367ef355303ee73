// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/base/file_stamp.h"

#include <sys/stat.h>

namespace mpckdc {

FileStamps StampsOf(const std::vector<std::string>& files) {
  FileStamps stamps;
  for (const std::string& file : files) {
    struct stat info;
    FileStamp& stamp = stamps.emplace_back();
    if (stat(file.c_str(), &info) != 0) continue;
    stamp = {true, info.st_dev, info.st_ino, info.st_size,
             info.st_mtim.tv_sec * 1'000'000'000LL + info.st_mtim.tv_nsec};
  }
  return stamps;
}

}  // namespace mpckdc
