// SPDX-License-Identifier: Apache-2.0
//
// A job as a KDC sends it to each of the three servers, and a server's answer to it: the messages
// of proto/kdc_key.proto as plain structs. Byte strings that come from the network are std::string.
#ifndef MPC_SERVER_JOB_JOB_H_
#define MPC_SERVER_JOB_JOB_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "mpc-server/base/secret.h"
#include "mpc-server/job/certificate_proof.h"
#include "mpc-server/job/verdict.h"
#include "mpc-server/key/key_info.h"
#include "mpc-server/key/message_format.h"
#include "mpc-server/key/output_format.h"
#include "mpc-server/key/text_shares.h"

namespace mpckdc {

using JobId = uint64_t;
using SessionId = std::array<uint8_t, 16>;  // of one KDC process, the same at the three servers

// The closed set. Which parts each may have is job/operation_table.h.
enum class Operation : uint8_t {
  kUnspecified = 0,
  kLogin = 1,
  kOpenPreauth = 2,
  kSealGranted = 3,
  kOpenTicket = 4,
  kReissueTicket = 5,
  kMakeChecksum = 6,
  kVerifyChecksum = 7,
};

struct OpenPart {
  Handle handle{};
  uint32_t usage = 0;
  std::string message;  // gcm: nonce | header length | header | ciphertext | tag
                        // 17 to 20: ciphertext of (confounder | plaintext) | HMAC

  friend bool operator==(const OpenPart&, const OpenPart&) = default;
};

struct SealPart {
  Handle handle{};
  uint32_t usage = 0;
  uint32_t max_plaintext = 0;  // bytes, without the 16 zero bytes; 17 to 20: exactly so many
  TextShares text{};           // 17 to 20: what this server gets of the plaintext

  friend bool operator==(const SealPart&, const SealPart&) = default;
};

struct MakeMacPart {
  Handle handle{};
  uint32_t usage = 0;
  std::string data;

  friend bool operator==(const MakeMacPart&, const MakeMacPart&) = default;
};

struct VerifyMacPart {
  Handle handle{};
  uint32_t usage = 0;
  std::string data;
  std::string checksum;  // gcm: nonce | tag; 17 to 20: HMAC

  friend bool operator==(const VerifyMacPart&, const VerifyMacPart&) = default;
};

// Where the request came from that a job is for, as its KDC says.
struct Source {
  uint64_t id = 0;      // a keyed hash of an address or a host, the same at all KDCs; 0: not said
  bool proved = false;  // by TCP or FAST armor; anybody can put any address into a datagram

  friend bool operator==(const Source&, const Source&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Source& s) {
    return H::combine(std::move(h), s.id, s.proved);
  }
};

struct Job {
  JobId id = 0;
  Operation operation = Operation::kUnspecified;
  uint32_t deadline_ms = 0;  // from receipt; 0: limits::kDefaultJobDeadline
  std::optional<Handle> client;
  JobId grant = 0;
  std::vector<OpenPart> opens;
  std::vector<SealPart> seals;
  std::vector<MakeMacPart> make_macs;
  std::vector<VerifyMacPart> verify_macs;
  Source source;
  CertificateProof certificate;  // of a login by certificate; otherwise empty
  uint64_t request = 0;  // by which logs name it; no part of its digest

  friend bool operator==(const Job&, const Job&) = default;
};

// Who sent a job. `name` is the NAME of the certificate's spiffe://REALM/mpc/kdc/NAME; `session` is
// what the client said in its Hello. Both enter the job's digest.
struct KdcIdentity {
  std::string name;
  SessionId session{};

  friend bool operator==(const KdcIdentity&, const KdcIdentity&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const KdcIdentity& k) {
    return H::combine(std::move(h), k.name, k.session);
  }
};

// ---- Answers. Shares are this server's, masked (key/output_format.h). ----
// Gcm: under a gcm key, Cts: under one of 17 to 20.

struct GcmOpenResult {
  std::string share;  // of the keystream, as long as the plaintext
};
struct CtsOpenResult {
  std::string share;  // of the plaintext
};
using OpenResult = std::variant<GcmOpenResult, CtsOpenResult>;

struct GcmSealResult {
  Nonce nonce{};
  std::string header;  // of a ticket (ticket_header.h); otherwise empty
  std::string share;   // of the keystream, 16 + max_plaintext bytes
};
struct CtsSealResult {
  std::string share;  // of the whole message
};
using SealResult = std::variant<GcmSealResult, CtsSealResult>;

struct GcmMacResult {
  Nonce nonce{};
  std::string share;  // of the tag
};
struct CtsMacResult {
  std::string share;  // of the HMAC, cut to the enctype's mac_bytes
};
using MakeMacResult = std::variant<GcmMacResult, CtsMacResult>;

struct JobResult {
  JobId id = 0;
  Judgement judgement;
  std::vector<OpenResult> opens;  // all empty unless judgement.ok()
  std::vector<SealResult> seals;
  std::vector<MakeMacResult> make_macs;
  AnswerKeys keys{};
};

struct TagRequest {
  JobId job = 0;
  uint32_t seal = 0;       // index into the job's seals
  std::string ciphertext;  // of (16 zero bytes | plaintext)
};

struct TagResult {
  JobId job = 0;
  uint32_t seal = 0;
  Judgement judgement;
  Tag tag_share{};
  AnswerKeys keys{};
};

}  // namespace mpckdc

#endif  // MPC_SERVER_JOB_JOB_H_
