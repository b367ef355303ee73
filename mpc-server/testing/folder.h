// SPDX-License-Identifier: Apache-2.0
//
// A fresh folder that disappears with the object, and whole files. For tests.
#ifndef MPC_SERVER_TESTING_FOLDER_H_
#define MPC_SERVER_TESTING_FOLDER_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace mpckdc {

class TestFolder {
 public:
  TestFolder() : path_(::testing::TempDir() + "mpc-kdc-test.XXXXXX") {
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline std::string ReadFileForTest(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

inline void WriteFileForTest(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_FOLDER_H_
