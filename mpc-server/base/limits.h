// SPDX-License-Identifier: Apache-2.0
//
// Every limit of mpc-server in one place: its value with its unit, why it has it and, behind
// "Exceeded:", what whoever exceeds it is told. A limit that a peer or a client may exceed is
// checked where the value enters the process; exceeding it is an error answer, never an assertion.
// doc/limits.md is made from this file (doc/limits_table.py).
#ifndef MPC_SERVER_BASE_LIMITS_H_
#define MPC_SERVER_BASE_LIMITS_H_

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace mpckdc::limits {

// ---- Clients ----

// One gRPC message, either direction: 4,096 logins are about 1 MiB.
// Exceeded: the stream ends, RESOURCE_EXHAUSTED.
inline constexpr size_t kMaxMessageBytes = 4 << 20;
// Jobs and tag requests together: bounds the work of one read.
// Exceeded: the stream ends, RESOURCE_EXHAUSTED.
inline constexpr size_t kMaxJobsPerMessage = 4096;
// Per stream, accepted and not yet written: several batches deep; bounds memory.
// Exceeded: reading stops until answers are written.
inline constexpr size_t kMaxJobsInFlight = 65536;
// KDC worker processes of a realm that are connected at once.
// Exceeded: the stream is refused, RESOURCE_EXHAUSTED.
inline constexpr size_t kMaxStreamsPerServer = 1024;
// Jobs of all streams together, with what their answers will hold: a stream that has a job under
// way is not read from meanwhile. A batch of 4,096 logins with requests of 60 KiB fits.
// Exceeded: reading stops until answers are written.
inline constexpr size_t kMaxJobBytesInFlight = 256 << 20;
// Answers joined into one message, about.
// Exceeded: the rest follows in the next message.
inline constexpr size_t kMaxAnswerBytes = 1 << 20;
// The first message of a stream: one that says nothing holds a slot.
// Exceeded: the stream ends, DEADLINE_EXCEEDED.
inline constexpr absl::Duration kHelloTimeout = absl::Seconds(10);

// From a TCP connection to the end of its TLS handshake, of clients and of peers.
// Exceeded: the connection is closed.
inline constexpr absl::Duration kHandshakeTimeout = absl::Seconds(5);

// ---- Proofs of messages (active security) ----

// What a ring keeps of messages that are not proved yet: a block of AES-128 takes 1,360 bytes, an
// opened bit of a hash about 1. Longer work is proved in slices, six rounds each.
// Exceeded: what there is, is proved amid the work.
inline constexpr size_t kProofLogBytes = 24 << 20;

// ---- Garbled circuits (jobs under types 17 to 20; compute/protocol_choice.h) ----

// Parts of a garbled batch: two runs of sixteen lanes. More lanes save nothing, and a login more
// takes 1.3 MB of a server's memory (of type 20 4 MB): labels and commitments, since tables pass.
// Exceeded: the rest goes into the next batch; a job of more parts is computed in rounds.
inline constexpr size_t kGarbledParts = 32;
// The longest message of a garbled batch: 4 KiB to seal are up to 120 MB of tables.
// Exceeded: the job is computed in rounds.
inline constexpr size_t kGarbledMessageBytes = 4 << 10;
// Tables of a garbled batch, which pass from one server to another: a second of a line of 1 Gb/s,
// and the jobs behind them wait.
// Exceeded: the rest goes into the next batch; a job of more is computed in rounds.
inline constexpr uint64_t kGarbledTableBytes = 128 << 20;
// Tables of a job in a garbled batch with others: what kLongBatchRounds is for rounds.
// Exceeded: the job runs in a batch of such jobs, which take turns with the others.
inline constexpr uint64_t kLongBatchTableBytes = 32 << 20;
// A round of the replicated protocol without the distance, as CtsWork::RoundsOf counts them (a
// third too many for few jobs): a lone login takes 4,717 in 190 ms on loopback, whose distance is
// some 13 us (`mpc-bench rfc3962 --security=active --protocol=replicated --batch=1`, three servers
// on two cores). For the choice alone.
inline constexpr absl::Duration kReplicatedRoundTime = absl::Microseconds(17);
// What each further job of a batch of rounds takes: 500 logins, two jobs each, in 0.6 s. For the
// choice alone.
inline constexpr absl::Duration kReplicatedJobTime = absl::Microseconds(300);
// Rounds of a batch of few gcm logins: thirty of AES, a check, two proofs, an opening. For the
// choice alone.
inline constexpr int kGcmBatchRounds = 50;
// One of them without the distance: those of a stock client's lone login take 3 ms on loopback.
// Rounds of long batches follow each other more closely. For the choice alone.
inline constexpr absl::Duration kGcmRoundTime = absl::Microseconds(60);
// A garbled batch without the distance and its tables: a lone login, two batches and 9.8 MB, takes
// 14 ms (--protocol=garbled). For the choice alone.
inline constexpr absl::Duration kGarbledBatchTime = absl::Microseconds(3500);
// Tables garbled, sent and evaluated in a second: 32 logins take 220 ms. For the choice alone.
inline constexpr uint64_t kGarbledTableBytesPerSecond = 1'450'000'000;
// The longest filler by which servers try their lines when a session begins (agree/line_trial.h).
// Exceeded: the line is no slow one.
inline constexpr size_t kLineTrialBytes = 8 << 20;
// What a garbled run on a slow line sends at least between two words to who waits: frames have
// their price.
inline constexpr size_t kQuickBytesAtLeast = 128 << 10;

// ---- Connections that have not shown a certificate yet, at each of the two ports ----

// At the peers' port, from the addresses that [peers] gives for the previous server. At the
// clients' port those who were here before have room for kMaxStreamsPerServer.
// Exceeded: the oldest is closed.
inline constexpr size_t kMaxExpectedCallers = 128;
// From all other addresses; and as many with gRPC, within kHandshakeTimeout.
// Exceeded: the oldest of the address that has most of them is closed; for gRPC they wait.
inline constexpr size_t kMaxStrangers = 256;
// From one of the other addresses, or one /48 of IPv6; as many as a server can have rings.
// Exceeded: its oldest is closed.
inline constexpr size_t kMaxCallersPerAddress = 64;
// Handshakes of strangers in a row: each may cost a signature.
// Exceeded: the peers come first.
inline constexpr absl::Duration kStrangersStep = absl::Milliseconds(20);

// ---- One job ----

// Opens, seals and checksums; the table of operations allows fewer.
// Exceeded: MALFORMED.
inline constexpr size_t kMaxPartsPerJob = 8;
// One message to open: a ticket with a large PAC is a few KiB.
// Exceeded: MALFORMED.
inline constexpr size_t kMaxOpenBytes = 64 << 10;
// The plaintext of one seal.
// Exceeded: MALFORMED.
inline constexpr size_t kMaxSealBytes = 64 << 10;
// The data under one checksum: an AS-REQ over UDP.
// Exceeded: MALFORMED.
inline constexpr size_t kMaxMacDataBytes = 64 << 10;
// A login by certificate: PA-PK-AS-REQ, and the request that it is about. With a chain of four
// certificates of RSA 4096 it is 7 KB.
// Exceeded: MALFORMED.
inline constexpr size_t kMaxProofBytes = 32 << 10;
// Certificates in it.
// Exceeded: REFUSED.
inline constexpr int kMaxProofCertificates = 8;
// Between a client's certificate and its anchor.
// Exceeded: REFUSED.
inline constexpr int kMaxCertificateChain = 6;
// Logins by certificate of one KDC whose signatures wait to be verified; some 0.5 to 0.7 ms each.
// Exceeded: QUOTA.
inline constexpr size_t kMaxProofsWaiting = 4096;
// Bytes of those: the server has a copy of each, however long its job has been answered.
// Exceeded: QUOTA.
inline constexpr size_t kMaxProofBytesWaiting = 32 << 20;
// A reply or a PAC under a key of enctypes 17 to 20, where each block waits for the one before it:
// 64 bytes are some 450 rounds for the whole batch.
// Exceeded: MALFORMED.
inline constexpr size_t kMaxCtsMessageBytes = 16 << 10;
// A ticket under such a key, to seal or to open: anybody may send one that the realm never sealed.
// Exceeded: MALFORMED.
inline constexpr size_t kMaxCtsTicketBytes = 2 << 10;
// An AS-REQ under a checksum (usage 56) of a key of enctypes 17 to 20.
// Exceeded: MALFORMED.
inline constexpr size_t kMaxCtsRequestBytes = 4 << 10;
// Bounds how long a job stays in memory.
// Exceeded: shortened to this.
inline constexpr absl::Duration kMaxJobDeadline = absl::Seconds(30);
// When a job names none: a client tries again after about that.
// Exceeded: DEADLINE.
inline constexpr absl::Duration kDefaultJobDeadline = absl::Seconds(2);

// ---- Batches ----

// [batch] max_jobs: memory of the slices.
// Exceeded: the rest goes into the next batch.
inline constexpr size_t kDefaultBatchJobs = 4096;
// The most that max_jobs may be.
// Exceeded: configuration error.
inline constexpr size_t kMaxBatchJobs = 16384;
// Keys of which a server remembers that the three hold different records, to name each once.
// Exceeded: further ones are refused, and named again each time.
inline constexpr size_t kMaxDifferentRecords = 1024;
// What a server keeps of a deviation's text.
// Exceeded: cut.
inline constexpr size_t kMaxDeviationText = 1024;
// AES blocks of one batch, and blocks under its checksums: each takes a power of H, which is 32
// bytes of locked memory.
// Exceeded: the rest goes into the next batch.
inline constexpr size_t kMaxBatchBlocks = 1 << 20;
// Batches of fewer AES blocks take the S-box of 3 rounds and 22 bits, others that of 4 and 17.
inline constexpr size_t kLatencySboxBlocks = 1024;
// Lanes under keys of enctypes 17 to 20 in a batch from which on the adder with fewer bits is
// cheaper than the one with the fewest rounds (doc/bench.md).
inline constexpr size_t kPrefixAdderLanes = 128;
// The same for the adder with the fewest bits.
inline constexpr size_t kRippleAdderLanes = 8192;
// Blocks of one chunk of a batch on one ring: a long batch needs no more memory than a short one.
// Smaller ones cost more messages (doc/bench.md).
inline constexpr size_t kChunkBlocks = 16384;
// Rounds of one batch of the long ring that is computed in rounds, about: 64 bytes of a message are
// some 500.
// Exceeded: the job runs in a batch of such jobs, which take turns with the others.
inline constexpr uint64_t kLongBatchRounds = 8192;
// AES blocks of a job under gcm keys before its messages are known to be good: a login with a PAC
// takes 160, and 60 KiB that nobody sealed would be 4,096.
// Exceeded: a batch judges the messages' tags first, and a later one computes the job.
inline constexpr size_t kMaxUnprovenBlocks = 256;
// How many times as long as it took until the next batch beyond that budget: a stranger can send a
// job that needs one, and the others need the ring most of the time.
inline constexpr int kDeepBatchPause = 3;
// From one short batch's beginning to the next one's while a long one is computed: each costs CPU
// whatever it holds, which both would otherwise wait for.
inline constexpr absl::Duration kBesideLongBatch = absl::Milliseconds(4);
// By how much the long ring's thread yields to the others (setpriority(2)): a long batch takes a
// tenth of a second, a login under gcm keys a few milliseconds.
inline constexpr int kLongRingNiceness = 15;
// Chunks of one ring at once: the wire stays busy.
inline constexpr size_t kChunksUnderWay = 2;
// A ring's share of a batch at least: below, messages cost more than a second thread saves.
inline constexpr size_t kRingBlocks = 2048;
// [engine] workers: rings, threads and connections to each neighbour, beside those of the long
// ring. Exceeded: a number that the neighbours do not have ends the connection.
inline constexpr size_t kDefaultWorkers = 2;
// The most that workers may be.
// Exceeded: configuration error.
inline constexpr size_t kMaxWorkers = 64;
// A login under a key of enctypes 17 to 20 is followed by a job with its reply, and a reply that
// misses a batch waits for the batch's end. So the next batch waits this long for each of them ...
inline constexpr absl::Duration kReplyReturn = absl::Microseconds(200);
// ... and never longer than this, or than half of the last batch's time.
inline constexpr absl::Duration kMaxReplyWait = absl::Milliseconds(100);
// [batch] window: the paper's tick.
inline constexpr absl::Duration kDefaultBatchWindow = absl::Milliseconds(100);
// The most that window may be.
// Exceeded: configuration error.
inline constexpr absl::Duration kMaxBatchWindow = absl::Seconds(10);
// A peer that is silent in a round.
// Exceeded: the batch fails, UNAVAILABLE; the servers connect again.
inline constexpr absl::Duration kPeerTimeout = absl::Seconds(2);

// ---- Kept between messages ----

// Keys staged and never committed: an enrolment interrupted between servers.
// Exceeded: dropped.
inline constexpr absl::Duration kStagedKeyLife = absl::Minutes(10);
// How long a deleted key stays usable where a database still names it ([policy] delete_grace):
// yesterday's dump, a KDC's replica before its next propagation.
// Exceeded: collected; the handle is unknown then.
inline constexpr absl::Duration kDefaultDeleteGrace = absl::Hours(24);
// The longest delete_grace: a key that was replaced for a reason is not kept for ever.
// Exceeded: configuration error.
inline constexpr absl::Duration kMaxDeleteGrace = absl::Hours(24 * 366);
// Retired keys collected in one transaction: logins wait for none longer.
// Exceeded: the rest the next time.
inline constexpr size_t kCollectAtOnce = 512;
// How often it is looked for retired keys whose time is up; a clock that leaps is noticed sooner.
inline constexpr absl::Duration kCollectEvery = absl::Seconds(5);
// Sealed, and its tag not yet asked for: a KDC asks at once.
// Exceeded: the tag is REFUSED.
inline constexpr absl::Duration kPendingSealLife = absl::Seconds(30);
// From a verified pre-authentication to its seal, and to its repetition when an answer was lost.
// Exceeded: REFUSED, REPLAY.
inline constexpr absl::Duration kGrantLife = absl::Seconds(60);
// Per server.
// Exceeded: the oldest is forgotten.
inline constexpr size_t kMaxPendingSeals = 1 << 18;
// Powers of H that they keep in locked memory, per server: 4,096 logins take about 4 MiB.
// Exceeded: the oldest are forgotten.
inline constexpr size_t kMaxPendingSealBytes = 128 << 20;
// Per server, and as many pre-authentications that may be presented again, about 200 bytes each.
// Exceeded: the oldest is forgotten.
inline constexpr size_t kMaxGrants = 1 << 18;
// Per server.
// Exceeded: FAILED_PRECONDITION.
inline constexpr size_t kMaxStagedKeys = 1 << 16;

// ---- Quotas ([quota]; jobs.md says why); a KDC's are unlimited ----

// Logins that were judged OK.
// Exceeded: QUOTA.
inline constexpr uint32_t kPrincipalLoginsPerMinute = 60;
// A service principal that 120 machines use at the full minute.
inline constexpr uint32_t kPrincipalLoginsBurst = 120;
// Guesses; a keytab forgotten on some machines. Whoever may make them at each of a principal's
// known sources too has 30 a minute, burst 60. Exceeded: QUOTA, for right passwords too, but from
// known sources.
inline constexpr uint32_t kPrincipalFailuresPerMinute = 22;
// Tokens in a full bucket.
inline constexpr uint32_t kPrincipalFailuresBurst = 36;
// From each known source of a principal, when others have used up principal_failures.
// Exceeded: QUOTA.
inline constexpr uint32_t kKnownFailuresPerMinute = 1;
// Tokens in a full bucket.
inline constexpr uint32_t kKnownFailuresBurst = 3;
// Where a principal logged in from: home, office, phone, a few hosts.
// Exceeded: the one unused for longest is forgotten.
inline constexpr size_t kKnownSources = 8;
// Since the last login from there.
inline constexpr absl::Duration kKnownSourceLife = absl::Hours(24 * 30);
// Principals whose sources are known, per server, up to 100 MiB.
// Exceeded: the eighth that has not logged in for longest is forgotten.
inline constexpr size_t kMaxKnownPrincipals = 1 << 18;
// Tickets of one source that cannot be opened; a site behind one address.
// Exceeded: QUOTA; UNPROVED for a datagram.
inline constexpr uint32_t kSourceFailuresPerMinute = 60;
// Tokens in a full bucket.
inline constexpr uint32_t kSourceFailuresBurst = 120;
// Tickets in datagrams that cannot be opened, per KDC: their addresses may be made up.
// Exceeded: UNPROVED, clients use TCP.
inline constexpr uint32_t kUnprovedFailuresPerMinute = 600;
// Tokens in a full bucket.
inline constexpr uint32_t kUnprovedFailuresBurst = 600;
// For what a batch computed beyond a KDC's unproved_failures, datagrams wait.
// Exceeded: forgiven.
inline constexpr absl::Duration kMaxUnprovedDebt = absl::Minutes(10);
// Logins as nobody, of one source: hosts behind one address that fetch armor for FAST.
// Exceeded: QUOTA; UNPROVED for a datagram.
inline constexpr uint32_t kAnonymousLoginsPerMinute = 60;
// Tokens in a full bucket.
inline constexpr uint32_t kAnonymousLoginsBurst = 120;
// Sources whose tickets could not be opened lately, or that were nobody, per server, about 5 MiB.
// Exceeded: the fullest eighth is forgotten.
inline constexpr size_t kMaxQuotaSources = 1 << 16;
// Renewals, forwarded and proxied tickets.
// Exceeded: QUOTA.
inline constexpr uint32_t kPrincipalReissuesPerMinute = 60;
// Tokens in a full bucket.
inline constexpr uint32_t kPrincipalReissuesBurst = 120;
// All users of another realm have together what so many principals have.
// Exceeded: QUOTA, for those who have taken most.
inline constexpr uint32_t kForeignUsersTogether = 64;
// Either number of a rate.
// Exceeded: configuration error.
inline constexpr uint32_t kMaxQuota = 1'000'000'000;
// Buckets that are not full, per server, about 30 MiB.
// Exceeded: the fullest eighth is forgotten.
inline constexpr size_t kMaxQuotaPrincipals = 1 << 18;
// A clock that is set ahead must not refill a bucket.
// Exceeded: the rest of the step is lost.
inline constexpr absl::Duration kMaxQuotaStep = absl::Seconds(5);

// ---- Refusals at the door, in the audit log; gRPC's errors, in the log ----

// Lines of one kind in full: a flood must not fill the disk.
// Exceeded: counted, one line a second.
inline constexpr size_t kRefusalLinesPerSecond = 5;
// Kinds told apart in one second.
// Exceeded: they share one kind.
inline constexpr size_t kMaxRefusalKinds = 16;

// ---- Clocks and nonces ----

// How far a pre-authentication's time may be from the server's clock: Kerberos's usual window.
// Exceeded: CLOCK_SKEW.
inline constexpr absl::Duration kDefaultClockSkew = absl::Seconds(300);
// Between two servers, who judge by their own clocks.
// Exceeded: log, audit line, `mpc-admin doctor` warns.
inline constexpr absl::Duration kMaxPeerSkew = absl::Seconds(5);
// One sync of the disk serves so long.
inline constexpr absl::Duration kNonceReserveAhead = absl::Seconds(16);
// The age of a ticket, counted from the login.
// Exceeded: REFUSED.
inline constexpr absl::Duration kDefaultMaxRenewableLife = absl::Hours(24 * 7);

// ---- Keys and administration ----

// In every record's additional data.
// Exceeded: configuration error.
inline constexpr size_t kMaxRealmBytes = 255;
// Unparsed, with realm: longer than any in use.
// Exceeded: INVALID_ARGUMENT.
inline constexpr size_t kMaxPrincipalBytes = 1024;
// Longer than any in use.
// Exceeded: INVALID_ARGUMENT.
inline constexpr size_t kMaxSaltBytes = 1024;
// Users have 3.
// Exceeded: INVALID_ARGUMENT.
inline constexpr size_t kMaxUsagesPerKey = 8;
// Keys or handles in one call of the AdminService.
// Exceeded: INVALID_ARGUMENT.
inline constexpr size_t kMaxKeysPerCall = 1024;
// Keys sealed and signed together, which costs as much as for one.
// Exceeded: INVALID_ARGUMENT.
inline constexpr size_t kMaxKeysPerPackage = 64;
// One sealed share package: 64 aes256 keys with the longest names and salts.
// Exceeded: INVALID_ARGUMENT.
inline constexpr size_t kMaxPackageBytes = 384 << 10;
// The list is a stream.
// Exceeded: more messages.
inline constexpr size_t kMaxListKeysPerMessage = 256;
// Keys looked at in one call: neither its time nor the memory it takes grow with the realm.
// Exceeded: the next call goes on.
inline constexpr size_t kMaxListKeysPerCall = 1 << 15;
// All three servers must have been asked to draw a key.
// Exceeded: UNAVAILABLE.
inline constexpr absl::Duration kDrawKeyTimeout = absl::Seconds(30);

// ---- Enrolling many at once (mpc-admin enroll --all) ----

// Principals of one transaction, with one to six keys each: they share one sync of each store.
// Exceeded: the next transaction.
inline constexpr size_t kBulkPrincipals = 512;
// Packages of one StageKeys call: below kMaxMessageBytes by more than one package.
// Exceeded: another call.
inline constexpr size_t kMaxStageCallBytes = 3 << 20;
// About 8 million keys in memory.
// Exceeded: an error that says to split the keytab.
inline constexpr size_t kMaxKeytabBytes = 512 << 20;

// ---- The process and its store ----

// Answers in flight at SIGTERM.
// Exceeded: UNAVAILABLE.
inline constexpr absl::Duration kShutdownGrace = absl::Seconds(3);
// [store] map_size_gib: sparse, so it costs address space only.
// Exceeded: RESOURCE_EXHAUSTED, "disk full".
inline constexpr uint64_t kDefaultMapGib = 64;
// The most that map_size_gib may be.
// Exceeded: configuration error.
inline constexpr uint64_t kMaxMapGib = 16384;
// Of the share store's records, that a refresh writes in one transaction; other writes wait for it.
inline constexpr size_t kRefreshKeysPerWrite = 128;
// Keys that a refresh lists in one read. It keeps 24 bytes of each until it ends.
inline constexpr size_t kRefreshKeysPerList = 1 << 14;
// Of each hundred moments, those in which a refresh's records are listed and written: what is left
// is the logins'.
inline constexpr int kRefreshDuty = 25;
// By how much the thread that does it yields to those of the logins (setpriority(2)). Not more: what
// it writes they wait for.
inline constexpr int kRefreshNiceness = 5;
// From an administrator's call at one server until all three have entered the next share epoch.
// Exceeded: UNAVAILABLE.
inline constexpr absl::Duration kRefreshTimeout = absl::Seconds(60);
// Handles that a server remembers of the latest jobs, to hand these keys over first.
inline constexpr size_t kRecentHandles = 1 << 16;
// How often the shares are refreshed.
inline constexpr absl::Duration kDefaultRefreshEvery = absl::Hours(24);
// How often staged keys and replay entries that have expired are dropped.
inline constexpr absl::Duration kHousekeeping = absl::Seconds(30);

// ---- A share store on PostgreSQL ([store] backend = "postgresql") ----

// To one host of the connection string, in whole seconds; libpq takes no less.
// Exceeded: the next host.
inline constexpr absl::Duration kDatabaseConnect = absl::Seconds(2);
// One round trip of a read or of a batch's replay entries: the engine waits for it.
// Exceeded: the connection is given up, UNAVAILABLE.
inline constexpr absl::Duration kDatabaseAnswer = absl::Seconds(2);
// One round trip of an enrolment, which may be thousands of rows.
// Exceeded: the connection is given up, UNAVAILABLE.
inline constexpr absl::Duration kDatabaseBulkAnswer = absl::Seconds(30);
// For another mpc-server of the party that writes.
// Exceeded: UNAVAILABLE.
inline constexpr absl::Duration kDatabaseLock = absl::Seconds(10);
// For what became of a commit whose answer was lost: a standby may be about to take over.
// Exceeded: UNAVAILABLE, saying that it is not known.
inline constexpr absl::Duration kDatabaseResolve = absl::Seconds(5);
// For a connection, when there was one a moment ago.
// Exceeded: UNAVAILABLE.
inline constexpr absl::Duration kDatabaseWait = absl::Seconds(1);
// From one try to connect to the next while the database is away.
inline constexpr absl::Duration kDatabaseRetry = absl::Milliseconds(200);
// For the database when mpc-server starts.
// Exceeded: it does not start.
inline constexpr absl::Duration kDatabaseStart = absl::Seconds(10);
// One migration.
// Exceeded: it is given up; nothing of it is kept.
inline constexpr absl::Duration kDatabaseMigration = absl::Hours(1);
// Connections of one server that read; one more listens.
// Exceeded: waits.
inline constexpr size_t kDatabaseReaders = 16;
// A party's machines, and so triples, on one store: their numbers are below this.
// Exceeded: configuration error.
inline constexpr int kMaxTriples = 16;
// How often a machine tells the others of its party that it is up, on a shared store.
inline constexpr absl::Duration kFellowNotes = absl::Seconds(5);
// Without such a note for so long it counts as down: another writes a refresh's records.
inline constexpr absl::Duration kFellowSilence = absl::Seconds(30);
// For so long the old store key is kept after a refresh for a machine that is down.
// Exceeded: that machine needs the new key from its administrator.
inline constexpr absl::Duration kFellowGone = absl::Hours(12);
// Connections of one server that write.
// Exceeded: waits.
inline constexpr size_t kDatabaseWriters = 4;
// Rows of one page of a scan.
inline constexpr size_t kDatabasePageRows = 1024;
// How often the position that the database had reached is written into data_dir.
inline constexpr absl::Duration kDatabaseRemember = absl::Seconds(1);
// [store] cache_mib: records kept decoded in locked memory, some 1.5 KiB each.
// Exceeded: the one unused for longest is forgotten.
inline constexpr size_t kDefaultCacheMib = 256;
// The most that cache_mib may be.
// Exceeded: configuration error.
inline constexpr size_t kMaxCacheMib = 1 << 20;

// ---- Password history (AdminService.CompareKeys, service/key_history.h) ----

// Old keys in one call: the history of ten passwords with keys of six types.
// Exceeded: INVALID_ARGUMENT.
inline constexpr size_t kMaxComparedKeys = 64;
// Staged keys with which they are compared.
// Exceeded: INVALID_ARGUMENT.
inline constexpr size_t kMaxStagedCompared = 8;
// All three servers must have been asked; a user waits for it.
// Exceeded: UNAVAILABLE.
inline constexpr absl::Duration kCompareTimeout = absl::Seconds(10);
// [quota] compared_per_hour: staged keys that are compared with a principal's old ones. Each may be
// a guess at a password. A change takes one for each of its keys: sixteen changes of six.
// Exceeded: RESOURCE_EXHAUSTED.
inline constexpr uint32_t kComparedPerHour = 96;
// [quota] compared_per_day.
// Exceeded: RESOURCE_EXHAUSTED.
inline constexpr uint32_t kComparedPerDay = 384;
// The most that either may be.
// Exceeded: configuration error.
inline constexpr uint32_t kMaxCompared = 1'000'000;
// Transactions of which a server remembers who staged them, to compare for nobody else.
// Exceeded: the oldest is forgotten, and not compared.
inline constexpr size_t kMaxStagers = 4096;

// ---- Renaming (AdminService.RenameKeys, service/key_history.h) ----

// How often a key may get another principal's name in a day, all its copies together: each name
// begins with quotas of its own for logins.
// Exceeded: RESOURCE_EXHAUSTED.
inline constexpr uint32_t kRenamedPerDay = 8;

// ---- Audit log ----

// A batch of kMaxBatchJobs refused jobs is about 20 MiB; 28 with as many keys as there may be.
// Exceeded: not written, so UNAVAILABLE.
inline constexpr size_t kMaxAuditLineBytes = 32 << 20;
// [audit] sync = "interval": the lines that a power failure may take.
inline constexpr absl::Duration kAuditSyncInterval = absl::Seconds(1);
// [audit] rotate_mib: a file that tools still open.
// Exceeded: the next file begins.
inline constexpr uint64_t kDefaultAuditRotateMib = 256;
// The most that rotate_mib may be.
// Exceeded: configuration error.
inline constexpr uint64_t kMaxAuditRotateMib = 1 << 20;
// [audit] keep_files; and the files that one command takes.
// Exceeded: configuration or usage error.
inline constexpr size_t kMaxAuditFiles = 1 << 20;
// Jobs of `audit reconcile` that not all three logs have, about 2 KB each.
// Exceeded: an error that says to choose a shorter span.
inline constexpr size_t kMaxUnmatchedJobs = 500'000;
// Jobs answered without a batch between two audit lines, about a second.
// Exceeded: counted in `left_out`.
inline constexpr size_t kMaxUnbatchedJobs = 4096;

// ---- Protocol versions spoken ----

// The oldest KDC that is served (proto/kdc_key.proto). 2: every share has two holders, who are
// compared. Exceeded: FAILED_PRECONDITION, naming both ranges.
inline constexpr uint32_t kMinKdcVersion = 2;
// The newest.
// Exceeded: FAILED_PRECONDITION, naming both ranges.
inline constexpr uint32_t kMaxKdcVersion = 2;
// The oldest client of an administrator that is served (proto/admin.proto).
// Exceeded: FAILED_PRECONDITION, naming both ranges.
inline constexpr uint32_t kMinClientVersion = 1;
// The newest.
// Exceeded: FAILED_PRECONDITION, naming both ranges.
inline constexpr uint32_t kMaxClientVersion = 2;

}  // namespace mpckdc::limits

#endif  // MPC_SERVER_BASE_LIMITS_H_
