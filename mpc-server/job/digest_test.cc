// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/job/digest.h"

#include <functional>
#include <set>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace mpckdc {
namespace {

KdcIdentity Kdc() {
  KdcIdentity kdc;
  kdc.name = "kdc1";
  kdc.session.fill(0x11);
  return kdc;
}

Job FullJob() {
  Job job;
  job.id = 0x0102030405060708;
  job.operation = Operation::kLogin;
  job.deadline_ms = 2000;
  job.client.emplace();
  job.client->fill(0xc1);
  job.opens.push_back({*job.client, 1, "open"});
  job.seals.push_back({*job.client, 3, 77});
  job.make_macs.push_back({*job.client, 56, "data"});
  job.verify_macs.push_back({*job.client, 17, "data", "sum"});
  return job;
}

TEST(Digest, EncodingIsTheDocumentedOne) {
  Job job;
  job.id = 5;
  job.operation = Operation::kOpenTicket;
  job.deadline_ms = 1;
  Handle handle;
  handle.fill(0xaa);
  job.opens.push_back({handle, 2, "m"});
  const std::string want = std::string("mpc-kdc job v2\0", 15) + std::string("\0\4kdc1", 6) +
                           std::string(16, '\x11') + std::string("\0\0\0\0\0\0\0\5", 8) + "\4" +
                           std::string("\0\0\0\1", 4) + std::string(1, '\0') +
                           std::string(8, '\0') + std::string("\0\1", 2) + std::string(16, '\xaa') +
                           std::string("\0\0\0\2\0\0\0\1m", 9) + std::string(6, '\0');
  EXPECT_EQ(absl::BytesToHexString(EncodeJob(Kdc(), job)), absl::BytesToHexString(want));
}

TEST(Digest, EveryFieldCounts) {
  const std::vector<std::function<void(KdcIdentity&, Job&)>> changes = {
      [](KdcIdentity&, Job&) {},
      [](KdcIdentity& k, Job&) { k.name = "kdc2"; },
      [](KdcIdentity& k, Job&) { k.session[15] ^= 1; },
      [](KdcIdentity&, Job& j) { j.id ^= 1; },
      [](KdcIdentity&, Job& j) { j.operation = Operation::kOpenPreauth; },
      [](KdcIdentity&, Job& j) { j.deadline_ms = 2001; },
      [](KdcIdentity&, Job& j) { j.client.reset(); },
      [](KdcIdentity&, Job& j) { j.certificate = {"ab", "c"}; },
      [](KdcIdentity&, Job& j) { j.certificate = {"a", "bc"}; },
      [](KdcIdentity&, Job& j) { j.certificate = {"", "abc"}; },
      [](KdcIdentity&, Job& j) { (*j.client)[0] ^= 1; },
      [](KdcIdentity&, Job& j) { j.grant = 1; },
      [](KdcIdentity&, Job& j) { j.opens[0].handle[3] ^= 1; },
      [](KdcIdentity&, Job& j) { j.opens[0].usage = 2; },
      [](KdcIdentity&, Job& j) { j.opens[0].message = "Open"; },
      [](KdcIdentity&, Job& j) { j.opens.clear(); },
      [](KdcIdentity&, Job& j) { j.seals[0].max_plaintext = 78; },
      [](KdcIdentity&, Job& j) { j.seals[0].usage = 2; },
      [](KdcIdentity&, Job& j) { j.seals[0].text.hashes = "h"; },
      [](KdcIdentity&, Job& j) { j.seals.push_back(j.seals[0]); },
      [](KdcIdentity&, Job& j) { j.make_macs[0].data = "datb"; },
      [](KdcIdentity&, Job& j) {
        j.verify_macs[0] = {*j.client, 17, "dat", "asum"};
      },
      [](KdcIdentity&, Job& j) { j.verify_macs[0].checksum = "sun"; },
      [](KdcIdentity&, Job& j) {
        j.source = {1, false};
      },
      [](KdcIdentity&, Job& j) {
        j.source = {1, true};
      },
      [](KdcIdentity&, Job& j) {
        j.source = {2, true};
      },
  };
  std::set<Digest> seen;
  for (const auto& change : changes) {
    KdcIdentity kdc = Kdc();
    Job job = FullJob();
    change(kdc, job);
    EXPECT_TRUE(seen.insert(JobDigest(kdc, job)).second);
  }
}

// A KDC and a server that know no sources agree with servers that do.
TEST(Digest, WithoutASourceItIsAsBefore) {
  Job job = FullJob();
  const std::string before = EncodeJob(Kdc(), job);
  job.source = {0, true};
  EXPECT_EQ(EncodeJob(Kdc(), job), before);
  job.source = {0x0102030405060708, true};
  EXPECT_EQ(EncodeJob(Kdc(), job), before + "\1\2\3\4\5\6\7\x08\1");
}

// It is for logs alone: a KDC that says another one at each server must not stop anything.
TEST(Digest, TheRequestsNameIsNoPartOfIt) {
  Job job = FullJob();
  const std::string before = EncodeJob(Kdc(), job);
  job.request = 17;
  EXPECT_EQ(EncodeJob(Kdc(), job), before);
}

TEST(Digest, TagRequestBindsJobSealAndCiphertext) {
  const Digest a = JobDigest(Kdc(), FullJob());
  Digest b = a;
  b[0] ^= 1;
  std::set<Digest> seen;
  EXPECT_TRUE(seen.insert(TagRequestDigest(a, Nonce{}, {1, 0, "c"})).second);
  EXPECT_TRUE(seen.insert(TagRequestDigest(b, Nonce{}, {1, 0, "c"})).second);
  EXPECT_TRUE(seen.insert(TagRequestDigest(a, Nonce{}, {1, 1, "c"})).second);
  EXPECT_TRUE(seen.insert(TagRequestDigest(a, Nonce{}, {1, 0, "d"})).second);
  EXPECT_TRUE(seen.insert(TagRequestDigest(a, Nonce{1}, {1, 0, "c"})).second);
}

}  // namespace
}  // namespace mpckdc
