// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/job_queue.h"

#include "gtest/gtest.h"
#include "mpc-server/job/operation_table.h"

namespace mpckdc {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

WaitingJobPtr Waiting(JobId id, size_t blocks = 10) {
  auto job = std::make_shared<WaitingJob>();
  job->job.id = id;
  job->blocks = blocks;
  job->received = kNow;
  job->deadline = kNow + absl::Seconds(2);
  return job;
}

bool Any(const WaitingJob&) { return true; }

TEST(JobQueue, BoundsJobsAndBlocks) {
  JobQueue queue;
  for (JobId id = 1; id <= 5; ++id) queue.Add(Waiting(id));
  EXPECT_EQ(queue.Ready(kNow, Any, 3, 1000).size(), 3u);
  EXPECT_EQ(queue.Ready(kNow, Any, 100, 25).size(), 2u);
  EXPECT_EQ(queue.Ready(kNow, Any, 100, 1).size(), 1u);  // one too large for a batch still runs
}

TEST(JobQueue, JobsThatDoNotFitTakeNoRoom) {
  JobQueue queue;
  for (JobId id = 1; id <= 6; ++id) queue.Add(Waiting(id));
  const auto ready = queue.Ready(
      kNow, [](const WaitingJob& job) { return job.job.id % 2 == 0; }, 2, 1000);
  ASSERT_EQ(ready.size(), 2u);
  EXPECT_EQ(ready[0]->job.id, 2u);
  EXPECT_EQ(ready[1]->job.id, 4u);
}

// A checksum over 64 KiB takes 4,096 powers of H: 128 KiB of locked memory.
TEST(JobQueue, ChecksumsCountByWhatTheyTake) {
  Job job;
  job.make_macs.push_back({{}, kUsageAsReqChecksum, std::string(64 << 10, 'd')});
  EXPECT_GE(BlocksOfJob(job), 4096u);
  EXPECT_LE(BlocksOfJob(job), 4100u);
  job.make_macs.clear();
  job.verify_macs.push_back({{}, kUsagePacChecksum, std::string(32 << 10, 'd'), "c"});
  EXPECT_GE(BlocksOfJob(job), 2048u);
  EXPECT_LE(BlocksOfJob(job), 2052u);
}

TEST(JobQueue, RetriesWaitAndAClockSetBackDoesNotHoldThem) {
  JobQueue queue;
  const WaitingJobPtr job = Waiting(1);
  queue.Add(job);
  job->next_try = kNow + absl::Milliseconds(20);
  EXPECT_TRUE(queue.Ready(kNow, Any, 9, 999).empty());
  EXPECT_EQ(queue.NextTry(kNow), job->next_try);
  EXPECT_EQ(queue.Ready(kNow + absl::Milliseconds(20), Any, 9, 999).size(), 1u);
  EXPECT_EQ(queue.Ready(kNow - absl::Hours(1), Any, 9, 999).size(), 1u);
}

TEST(JobQueue, ExpiryIsRemembered) {
  JobQueue queue;
  ASSERT_TRUE(queue.TakeId(GroupId{}, 1, kNow).ok());
  queue.Add(Waiting(1));
  EXPECT_TRUE(queue.TakeExpired(kNow + absl::Seconds(1)).empty());
  EXPECT_EQ(queue.TakeExpired(kNow + absl::Seconds(2)).size(), 1u);
  EXPECT_TRUE(queue.Expired(GroupId{}, 1));
  EXPECT_TRUE(queue.IdTaken(GroupId{}, 1));
  EXPECT_EQ(queue.Find(GroupId{}, 1), nullptr);
}

TEST(JobQueue, IdsOnlyIncreaseWithinASession) {
  JobQueue queue;
  EXPECT_TRUE(queue.TakeId(GroupId{1}, 5, kNow).ok());
  EXPECT_FALSE(queue.TakeId(GroupId{1}, 5, kNow).ok());
  EXPECT_FALSE(queue.TakeId(GroupId{1}, 4, kNow).ok());
  EXPECT_FALSE(queue.TakeId(GroupId{2}, 0, kNow).ok());
  EXPECT_TRUE(queue.TakeId(GroupId{2}, 1, kNow).ok());
  EXPECT_TRUE(queue.TakeId(GroupId{1}, 9, kNow).ok());
}

// A KDC that opens session after session can neither exhaust memory nor make a server forget the
// ids of a session in use.
TEST(JobQueue, SessionsAreBoundedAndOnlyOldOnesForgotten) {
  JobQueue queue;
  const auto group = [](uint32_t number) {
    return GroupId{static_cast<uint8_t>(number >> 16), static_cast<uint8_t>(number >> 8),
                   static_cast<uint8_t>(number), 9};
  };
  const GroupId mine{};
  ASSERT_TRUE(queue.TakeId(mine, 5, kNow).ok());
  uint32_t opened = 0;
  while (opened < 1'000'000 && queue.TakeId(group(opened), 1, kNow).ok()) ++opened;
  ASSERT_LT(opened, 1'000'000u);
  EXPECT_EQ(queue.TakeId(group(opened), 1, kNow).verdict, Verdict::kUnavailable);
  EXPECT_FALSE(queue.TakeId(mine, 5, kNow).ok()) << "still known";
  EXPECT_TRUE(queue.TakeId(mine, 6, kNow + absl::Minutes(4)).ok()) << "and in use";
  EXPECT_FALSE(queue.TakeId(group(opened), 1, kNow + absl::Minutes(4)).ok());
  EXPECT_TRUE(queue.TakeId(group(opened), 1, kNow + absl::Minutes(6)).ok()) << "the old ones went";
  EXPECT_FALSE(queue.TakeId(mine, 6, kNow + absl::Minutes(6)).ok());
}

}  // namespace
}  // namespace mpckdc
