// SPDX-License-Identifier: Apache-2.0
//
// Every limit of mpc-server in one place, with its unit in its name or type. doc/limits.md says why
// each has its value. A limit that a peer or a client may exceed is checked where the value enters
// the process; exceeding it is an error answer, never an assertion.
#ifndef MPC_SERVER_BASE_LIMITS_H_
#define MPC_SERVER_BASE_LIMITS_H_

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace mpckdc::limits {

// ---- Client messages (KeyService) ----
inline constexpr size_t kMaxMessageBytes = 4 << 20;    // one gRPC message, either direction
inline constexpr size_t kMaxJobsPerMessage = 4096;     // jobs and tag requests together
inline constexpr size_t kMaxJobsInFlight = 65536;      // per stream: accepted and not yet written
inline constexpr size_t kMaxStreamsPerServer = 1024;   // KDC processes connected at once
inline constexpr size_t kMaxAnswerBytes = 1 << 20;     // one message of coalesced answers, about

// ---- One job ----
inline constexpr size_t kMaxPartsPerJob = 8;           // opens + seals + macs; the table allows fewer
inline constexpr size_t kMaxOpenBytes = 64 << 10;      // one message to open
inline constexpr size_t kMaxSealBytes = 64 << 10;      // plaintext of one seal
inline constexpr size_t kMaxMacDataBytes = 64 << 10;   // data under one checksum
// Under keys of 17 to 20 each block of a message waits for the one before it: some 0.5 ms each.
inline constexpr size_t kMaxCtsMessageBytes = 16 << 10;  // ticket, reply, PAC
inline constexpr size_t kMaxCtsRequestBytes = 4 << 10;   // AS-REQ under a checksum (usage 56)
inline constexpr absl::Duration kMaxJobDeadline = absl::Seconds(30);      // longer is shortened
inline constexpr absl::Duration kDefaultJobDeadline = absl::Seconds(2);   // when a job names none

// ---- Batches ----
inline constexpr size_t kDefaultBatchJobs = 4096;      // config [batch] max_jobs
inline constexpr size_t kMaxBatchJobs = 16384;
inline constexpr size_t kMaxBatchBlocks = 1 << 20;     // AES blocks of one batch
inline constexpr size_t kLatencySboxBlocks = 1024;     // batches of fewer: 3-round S-box
inline constexpr size_t kPrefixAdderLanes = 128;       // parts of 17 to 20 in a batch; fewer:
inline constexpr size_t kRippleAdderLanes = 8192;      // fewest rounds; more: fewest bits
inline constexpr size_t kPartBlocks = 16384;           // of a batch's part on one ring
inline constexpr size_t kPartsUnderWay = 2;            // parts of one ring at once
inline constexpr size_t kRingBlocks = 2048;            // a ring's share of a batch at least
inline constexpr size_t kDefaultWorkers = 2;           // config [engine] workers: rings, threads
inline constexpr size_t kMaxWorkers = 64;
// A login under a key of 17 to 20 is followed by a job with its reply: what krb5kdc takes for each,
// and at most (of the last batch's time: half).
inline constexpr absl::Duration kReplyReturn = absl::Microseconds(200);
inline constexpr absl::Duration kMaxReplyWait = absl::Milliseconds(100);
inline constexpr absl::Duration kDefaultBatchWindow = absl::Milliseconds(100);
inline constexpr absl::Duration kMaxBatchWindow = absl::Seconds(10);

// ---- State kept between messages ----
inline constexpr absl::Duration kStagedKeyLife = absl::Minutes(10);   // staged, never committed
inline constexpr absl::Duration kPendingSealLife = absl::Seconds(30); // sealed, tag not yet asked for
inline constexpr absl::Duration kGrantLife = absl::Seconds(60);       // pre-auth verified, not yet used
inline constexpr size_t kMaxPendingSeals = 1 << 18;                   // per server
inline constexpr size_t kMaxGrants = 1 << 18;                         // per server

// ---- Quotas: tokens a minute and in a full bucket (config [quota]); a KDC's are unlimited ----
inline constexpr uint32_t kPrincipalLoginsPerMinute = 60;
inline constexpr uint32_t kPrincipalLoginsBurst = 120;
inline constexpr uint32_t kPrincipalFailuresPerMinute = 30;
inline constexpr uint32_t kPrincipalFailuresBurst = 60;
inline constexpr uint32_t kPrincipalReissuesPerMinute = 60;
inline constexpr uint32_t kPrincipalReissuesBurst = 120;
inline constexpr uint32_t kMaxQuota = 1'000'000'000;              // either number
inline constexpr size_t kMaxQuotaPrincipals = 1 << 18;            // buckets kept, per server
inline constexpr absl::Duration kMaxQuotaStep = absl::Seconds(5);  // longer ones count so

// ---- Refusals in the audit log ----
inline constexpr size_t kRefusalLinesPerSecond = 5;  // of one kind in full; the others are counted
inline constexpr size_t kMaxRefusalKinds = 16;       // told apart in one second

// ---- Clocks and nonces ----
inline constexpr absl::Duration kDefaultClockSkew = absl::Seconds(300);  // pre-auth window
inline constexpr absl::Duration kMaxPeerSkew = absl::Seconds(5);  // beyond it mpc-admin doctor warns
inline constexpr absl::Duration kNonceReserveAhead = absl::Seconds(16);
inline constexpr absl::Duration kDefaultMaxRenewableLife = absl::Hours(24 * 7);

// ---- Keys and administration ----
inline constexpr size_t kMaxRealmBytes = 255;
inline constexpr size_t kMaxPrincipalBytes = 1024;     // unparsed, with realm
inline constexpr size_t kMaxSaltBytes = 1024;
inline constexpr size_t kMaxUsagesPerKey = 8;
inline constexpr size_t kMaxKeysPerCall = 1024;        // keys or handles in one AdminService call
inline constexpr size_t kMaxKeysPerPackage = 64;       // keys sealed and signed together
inline constexpr size_t kMaxStagedKeys = 1 << 16;      // per server
inline constexpr size_t kMaxPackageBytes = 384 << 10;  // one sealed share package
inline constexpr size_t kMaxListKeysPerMessage = 256;
inline constexpr size_t kMaxListKeysPerCall = 1 << 15; // keys looked at; a limit of 0 has none

// ---- Enrolling many at once (mpc-admin enroll --all) ----
inline constexpr size_t kBulkPrincipals = 512;         // of one transaction; one to six keys each
inline constexpr size_t kMaxStageCallBytes = 3 << 20;  // packages of one StageKeys call
inline constexpr size_t kMaxKeytabBytes = 512 << 20;   // about 8 million keys

// ---- Connections ----
inline constexpr absl::Duration kHelloTimeout = absl::Seconds(10);     // first message of a stream
inline constexpr absl::Duration kPeerTimeout = absl::Seconds(2);       // a peer silent in a round
inline constexpr absl::Duration kShutdownGrace = absl::Seconds(3);     // SIGTERM: answers in flight
inline constexpr absl::Duration kDrawKeyTimeout = absl::Seconds(30);   // all three must have asked

// ---- Share store ----
inline constexpr uint64_t kDefaultMapGib = 64;         // sparse: costs address space only
inline constexpr uint64_t kMaxMapGib = 16384;
inline constexpr absl::Duration kHousekeeping = absl::Seconds(30);  // staged keys, replay entries

// ---- Audit log ----
inline constexpr size_t kMaxAuditLineBytes = 32 << 20;  // kMaxBatchJobs refused jobs: 12 MiB
inline constexpr absl::Duration kAuditSyncInterval = absl::Seconds(1);  // [audit] sync = "interval"
inline constexpr uint64_t kDefaultAuditRotateMib = 256;
inline constexpr uint64_t kMaxAuditRotateMib = 1 << 20;
inline constexpr size_t kMaxAuditFiles = 1 << 20;       // [audit] keep_files
inline constexpr size_t kMaxUnmatchedJobs = 500'000;    // `audit reconcile`: about 2 KB each
inline constexpr size_t kMaxUnbatchedJobs = 4096;       // answered without a batch, not yet logged

// ---- Protocol versions spoken ----
inline constexpr uint32_t kMinClientVersion = 1;
inline constexpr uint32_t kMaxClientVersion = 1;

}  // namespace mpckdc::limits

#endif  // MPC_SERVER_BASE_LIMITS_H_
