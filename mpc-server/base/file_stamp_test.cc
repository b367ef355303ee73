// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/base/file_stamp.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace mpckdc {
namespace {

namespace fs = std::filesystem;

class FileStampTest : public ::testing::Test {
 protected:
  FileStampTest() {
    std::string name = (fs::temp_directory_path() / "stamp-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    fs::create_directory(folder_ / "one");
    fs::create_directory(folder_ / "two");
    Write("one/key", "first");
    Write("two/key", "other");
    fs::create_directory_symlink("one", folder_ / "data");
    fs::create_symlink("data/key", folder_ / "key");
  }
  ~FileStampTest() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  FileStamps Look() const { return StampsOf({(folder_ / "key").string()}); }

  fs::path folder_;
};

TEST_F(FileStampTest, TheSameWhileNothingHappens) {
  const FileStamps before = Look();
  EXPECT_TRUE(before[0].there);
  EXPECT_EQ(Look(), before);
}

TEST_F(FileStampTest, OtherContentsOfTheSameSizeLater) {
  const FileStamps before = Look();
  Write("one/key", "again");
  fs::last_write_time(folder_ / "one/key",
                      fs::file_time_type::clock::now() + std::chrono::seconds(1));
  EXPECT_NE(Look(), before);
}

// As a mounted Kubernetes secret changes: its own link stays, the folder's is replaced.
TEST_F(FileStampTest, AnotherFolderBehindTheSameLinks) {
  fs::last_write_time(folder_ / "two/key", fs::last_write_time(folder_ / "one/key"));
  const FileStamps before = Look();
  fs::create_directory_symlink("two", folder_ / "new");
  fs::rename(folder_ / "new", folder_ / "data");
  EXPECT_NE(Look(), before);
}

TEST_F(FileStampTest, AFileThatIsGone) {
  const FileStamps before = Look();
  fs::remove(folder_ / "one/key");
  EXPECT_FALSE(Look()[0].there);
  EXPECT_NE(Look(), before);
}

}  // namespace
}  // namespace mpckdc
