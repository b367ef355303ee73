// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/judge/grants.h"

#include <memory>

#include "gtest/gtest.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/job/operation_table.h"

namespace mpckdc {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
const KdcIdentity kKdc{"kdc1", {1}};
const PrincipalId kAlice{1}, kBob{2};

Job Granted(size_t tickets, size_t replies, size_t checksums) {
  Job job;
  job.operation = Operation::kSealGranted;
  job.grant = 5;
  job.seals.assign(tickets, {Handle{}, kUsageTicket, 1});
  job.seals.insert(job.seals.end(), replies, {Handle{}, kUsageAsReply, 1});
  job.make_macs.assign(checksums, {Handle{}, kUsageAsReqChecksum, ""});
  return job;
}

Grants One(GrantUse used = {}) {
  Grants grants;
  auto budget = std::make_shared<Budget>(Budget::Whole());
  EXPECT_TRUE(TakeFrom(budget.get(), used, {}));
  grants.Add({kKdc, 5}, {kAlice, kNow, 5, budget, kNow + limits::kGrantLife});
  return grants;
}
void Use(Grants& grants, const GrantUse& use) {
  EXPECT_TRUE(TakeFrom(grants.Find({kKdc, 5}, kNow)->budget.get(), use, {}));
}

TEST(Grants, CoverTheirOwnPrincipalSessionAndTime) {
  const Grants grants = One();
  const Job job = Granted(1, 1, 1);
  EXPECT_TRUE(grants.Check(kKdc, job, kAlice, {}, kNow).ok());
  EXPECT_FALSE(grants.Check(kKdc, job, kBob, {}, kNow).ok());
  EXPECT_FALSE(grants.Check({"kdc2", {1}}, job, kAlice, {}, kNow).ok());
  EXPECT_FALSE(grants.Check({"kdc1", {2}}, job, kAlice, {}, kNow).ok());
  EXPECT_FALSE(grants.Check(kKdc, job, kAlice, {}, kNow + limits::kGrantLife).ok());
}

TEST(Grants, BudgetPerKindOfPart) {
  Grants grants = One({1, 1, 1});
  EXPECT_TRUE(grants.Check(kKdc, Granted(1, 1, 1), kAlice, {}, kNow).ok());
  EXPECT_FALSE(grants.Check(kKdc, Granted(2, 0, 0), kAlice, {}, kNow).ok());
  EXPECT_FALSE(grants.Check(kKdc, Granted(0, 2, 0), kAlice, {}, kNow).ok());
  EXPECT_FALSE(grants.Check(kKdc, Granted(0, 0, 2), kAlice, {}, kNow).ok());
  EXPECT_FALSE(grants.Check(kKdc, Granted(1, 0, 0), kAlice, {1, 0, 0}, kNow).ok());
  Use(grants, {1, 0, 0, {}});
  EXPECT_FALSE(grants.Check(kKdc, Granted(1, 0, 0), kAlice, {}, kNow).ok());
  EXPECT_TRUE(grants.Check(kKdc, Granted(0, 1, 0), kAlice, {}, kNow).ok());
}

TEST(Grants, BothTicketsAreUnderOneKey) {
  Grants grants = One();
  Job krbtgt = Granted(1, 1, 0), kadmin = Granted(1, 0, 0);
  krbtgt.seals[0].handle = Handle{1};
  kadmin.seals[0].handle = Handle{2};
  EXPECT_TRUE(grants.Check(kKdc, kadmin, kAlice, {}, kNow).ok());
  EXPECT_FALSE(grants.Check(kKdc, kadmin, kAlice, UseOf(krbtgt), kNow).ok());
  EXPECT_TRUE(grants.Check(kKdc, krbtgt, kAlice, UseOf(krbtgt), kNow).ok());
  Use(grants, UseOf(krbtgt));
  EXPECT_FALSE(grants.Check(kKdc, kadmin, kAlice, {}, kNow).ok());
  EXPECT_TRUE(grants.Check(kKdc, krbtgt, kAlice, {}, kNow).ok());
  EXPECT_TRUE(grants.Check(kKdc, Granted(0, 1, 0), kAlice, {}, kNow).ok());
}

TEST(Grants, Pruned) {
  Grants grants = One();
  grants.Prune(kNow);
  EXPECT_EQ(grants.size(), 1u);
  grants.Prune(kNow + limits::kGrantLife);
  EXPECT_EQ(grants.size(), 0u);
}

}  // namespace
}  // namespace mpckdc
