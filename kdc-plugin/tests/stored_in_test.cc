// SPDX-License-Identifier: Apache-2.0
// Where a realm's entries are, by what its kdc.conf says and by what it leaves to krb5.
#include "kdc-plugin/kdb-tool/stored_in.h"

#include <kadm5/admin.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mpckdc::kdbtool {
namespace {

using ::testing::ElementsAre;

class StoredInTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = absl::StrCat(::testing::TempDir(), "/stored-in-XXXXXX");
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  // The kdc.conf has these relations of the realm and of its module.
  Stored StoredWith(const std::string& realm, const std::string& module) {
    const std::string file = folder_ + "/kdc.conf";
    std::ofstream(file) << "[libdefaults]\ndefault_realm = EXAMPLE.COM\n"
                        << "[realms]\nEXAMPLE.COM = {\n" << realm << "}\n"
                        << "[dbmodules]\nhere = {\n" << module << "}\n";
    setenv("KRB5_CONFIG", file.c_str(), 1);
    setenv("KRB5_KDC_PROFILE", file.c_str(), 1);
    krb5_context context = nullptr;
    EXPECT_EQ(kadm5_init_krb5_context(&context), 0);
    const absl::StatusOr<Stored> stored = StoredBy(context, "EXAMPLE.COM");
    EXPECT_TRUE(stored.ok()) << stored.status();
    krb5_free_context(context);
    return stored.value_or(Stored());
  }

  std::string folder_;
};

constexpr char kHere[] = "database_module = here\n";

TEST_F(StoredInTest, TheModulesNameComesBeforeTheRealms) {
  const Stored stored = StoredWith(absl::StrCat(kHere, "database_name = /a/realms\n"),
                                   "db_library = klmdb\ndatabase_name = /a/modules\n");
  EXPECT_EQ(stored.module, "klmdb");
  EXPECT_THAT(stored.Files(), ElementsAre("/a/modules.mdb"));
}

TEST_F(StoredInTest, OfAWrappingModuleItIsTheWrapped) {
  const Stored stored = StoredWith(absl::StrCat(kHere, "database_name = /a/realms\n"),
                                   "db_library = mpc\nmpc_wrapped = db2\n");
  EXPECT_EQ(stored.module, "db2");
  EXPECT_THAT(stored.Files(), ElementsAre("/a/realms", "/a/realms.kadm5"));
}

// What a plain realm's kdc.conf is like. "" would be files beside wherever the command runs.
TEST_F(StoredInTest, WithoutANameItIsTheDefaultOfKrb5) {
  for (const char* module : {"", "db_library = klmdb\n"}) {
    for (const char* realm : {kHere, ""}) {
      const Stored stored = StoredWith(realm, module);
      EXPECT_TRUE(absl::StartsWith(stored.name, "/")) << stored.name;
      EXPECT_TRUE(absl::EndsWith(stored.name, "/krb5kdc/principal")) << stored.name;
    }
  }
}

TEST_F(StoredInTest, ADirectoryHasNoFiles) {
  EXPECT_THAT(StoredWith(kHere, "db_library = kldap\n").Files(), ElementsAre());
}

}  // namespace
}  // namespace mpckdc::kdbtool
