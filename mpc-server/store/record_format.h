// SPDX-License-Identifier: Apache-2.0
//
// Numbers of the share store's records: constants only. doc/share_store_format.md draws them. All
// integers are big-endian. A change that an older reader would misread needs a new version.
#ifndef MPC_SERVER_STORE_RECORD_FORMAT_H_
#define MPC_SERVER_STORE_RECORD_FORMAT_H_

#include <cstddef>
#include <cstdint>

namespace mpckdc::record_format {

inline constexpr uint8_t kFormatVersion = 1;  // of a sealed record
// The version of the tables, in the identity record. Version 1 had no "records", version 2 no
// "retired" and no refreshes, version 3 no keys with usage 64, none of class tgs-old, no copies and no
// gates by certificate; all are read and become 4. A program of version 2 would never collect what is retired,
// and would take shares of two epochs for those of one; one of version 3 would call such records
// damaged.
inline constexpr uint8_t kStoreVersion = 4;
inline constexpr uint8_t kOldestStoreVersion = 1;

// ---- Every sealed record: header | nonce | ciphertext | tag ----
// header: version (1) | kind (1) | zero (2) | epoch (8)
enum class Kind : uint8_t { kKey = 1, kMark = 2, kItem = 3 };
inline constexpr size_t kHeaderBytes = 12;
inline constexpr size_t kNonceBytes = 24;  // XChaCha20-Poly1305, random
inline constexpr size_t kTagBytes = 16;
inline constexpr size_t kOverheadBytes = kHeaderBytes + kNonceBytes + kTagBytes;
inline constexpr size_t kKeyBytes = 32;

// Additional data: header | realm length (2) | realm | party (1) | cluster (2) | name.
// name: the handle (key records), "nonce-mark", or "item/" and the item's name.

// ---- Plaintext of a key record ----
// kvno (4) | enctype (4) | salt type (4) | class (1) | gate (1) | principal length (2) |
// salt length (2) | base blocks (1) | usages (1) | principal | salt |
// of a copy, whose class has the bits kCopiedBit and kLineageBit: handle (16) | lineage (16) |
//   first (16); if kCopiedBit alone: handle (16) | id of the first owner (16), which is read |
// base: per block x (16) | a (16) |
// per usage: usage (4) | round keys (1) | per round key x (16) | a (16) |
//   gcm:      H x (16) | H a (16)
//   17 to 20: blocks of HMAC states (1) | per block x (16) | a (16)
inline constexpr size_t kKeyFixedBytes = 20;
inline constexpr uint8_t kCopiedBit = 0x80;
inline constexpr uint8_t kLineageBit = 0x40;
inline constexpr uint8_t kCopyBits = kCopiedBit | kLineageBit;
inline constexpr size_t kCopiedBytes = 48;
inline constexpr size_t kShareBytes = 32;        // one SharedBlock: x | a
inline constexpr size_t kUsageFixedBytes = 5;
inline constexpr size_t kMacCountBytes = 1;

// ---- Places of key records: the number (8) of the commit's order ----
inline constexpr size_t kPlaceBytes = 8;

// ---- Item `refresh`, under the key of the epoch before: version (1) | state (1) | into (8) |
// refresh (16) | seed (32), and of version 2, where several machines use the store, the store key
// of `into` (32). Item `epoch`: version (1) | refresh (16) | began (8, microseconds) ----
inline constexpr uint8_t kRefreshVersion = 1;
inline constexpr uint8_t kRefreshWithKeyVersion = 2;
inline constexpr uint8_t kRefreshPrepared = 1;
inline constexpr uint8_t kRefreshEntered = 2;
inline constexpr uint8_t kRefreshJoining = 3;  // of an empty store, without a seed (zeros)
inline constexpr size_t kRefreshBytes = 58;

// ---- Item `steward`: triple (1). Items `worker/TRIPLE`: fellows.h ----
inline constexpr uint8_t kFellowVersion = 1;

// ---- Identity record, readable without the key, authenticated with it ----
// version (1) | party (1) | cluster (2) | epoch (8) | flags (1) | zero (1) | realm length (2) |
// realm | nonce (24) | tag (16) over all before the nonce and the name "identity"
inline constexpr uint8_t kFlagInitialised = 1;

// ---- Transactions: state (1) | time (8, microseconds since 1970) | keys (4) ----
inline constexpr uint8_t kTxnStaged = 1;
inline constexpr uint8_t kTxnCommitted = 2;
inline constexpr size_t kTxnBytes = 13;

// ---- Replay entries: the key is expiry (8, microseconds) | handle (16) | nonce (12), ----
// and the value claimant (16) | since (8, microseconds) | tickets, replies, checksums (1 each) |
// zero (1) | ticket key (16); of a message that nobody may present again it may be empty.
inline constexpr size_t kReplayKeyBytes = 36;
inline constexpr size_t kReplayValueBytes = 44;

// ---- Retired keys (retired.h): each has two entries ----
// letter (1) | handle (16)            -> time (8, microseconds)
// letter (1) | time (8) | handle (16) -> nothing, or kKeptForHistory (1)
// or, in the place of the second one: letter (1) | handle (16) -> nothing
inline constexpr char kRetiredByHandle = 'h';
inline constexpr char kRetiredByTime = 't';
inline constexpr char kRetiredReduced = 'k';
inline constexpr uint8_t kKeptForHistory = 1;
inline constexpr size_t kRetiredTimeBytes = 8;
inline constexpr size_t kRetiredByTimeBytes = 25;

// ---- Tables: LMDB's named databases ----
enum Table : size_t { kMeta, kKeys, kStaged, kTransactions, kReplay, kRecords, kRetired };
inline constexpr const char* kTableNames[] = {
    "meta",     // the names below -> identity record, sealed mark and items
    "keys",     // handle -> place (key_table.h)
    "staged",   // transaction | handle -> sealed key record; of a copy | handle of the copied key
    "txns",     // transaction -> state
    "replay",   // replay entry -> nothing
    "records",  // place -> sealed key record
    "retired",  // by handle and by time (retired.h)
};
inline constexpr size_t kTables = sizeof(kTableNames) / sizeof(kTableNames[0]);

// ---- Names of records in "meta" ----
inline constexpr char kNameIdentity[] = "identity";
inline constexpr char kNameMark[] = "nonce-mark";  // of triple 0; "nonce-mark/N" of N
inline constexpr char kItemPrefix[] = "item/";
inline constexpr char kNameRefresh[] = "item/refresh";  // epochs.h
inline constexpr char kNameEpoch[] = "item/epoch";
inline constexpr char kNameSteward[] = "item/steward";
inline constexpr char kFellowPrefix[] = "item/worker/";
inline constexpr char kNameReceiving[] = "item/receiving";  // its value says nothing

}  // namespace mpckdc::record_format

#endif  // MPC_SERVER_STORE_RECORD_FORMAT_H_
