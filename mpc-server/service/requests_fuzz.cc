// SPDX-License-Identifier: Apache-2.0
//
// What a KDC sends, behind protobuf's own decoder, and what a server's administrator writes.
#include <google/protobuf/stubs/logging.h>

#include <map>
#include <string>

#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/job/digest.h"
#include "mpc-server/job/operation_table.h"
#include "mpc-server/job/ticket_header.h"
#include "mpc-server/job/validate.h"
#include "mpc-server/judge/quota_rates.h"
#include "mpc-server/key/text_shares.h"
#include "mpc-server/service/config.h"
#include "mpc-server/service/proto_convert.h"
#include "mpc-server/testing/fuzz.h"

namespace mpckdc {
namespace {

const google::protobuf::LogSilencer kQuiet;  // of text that is no UTF-8

// ---- Keys that this server has: by the first byte of a handle ----

struct Key {
  const char* principal;
  KeyClass key_class;
  Gate gate;
  int32_t enctype;
};
constexpr Key kKeys[] = {
    {"alice@R", KeyClass::kUser, Gate::kTimestamp, kEnctypeAes256Gcm},
    {"krbtgt/R@R", KeyClass::kTgs, Gate::kNone, kEnctypeAes256Gcm},
    {"carol@R", KeyClass::kUser, Gate::kTimestampOrPkinit, kEnctypeAes256Sha1},
    {"bob@R", KeyClass::kUser, Gate::kPkinit, kEnctypeAes128Gcm},
    {"guest@R", KeyClass::kUser, Gate::kNone, kEnctypeAes128Gcm},
    {"kadmin/admin@R", KeyClass::kService, Gate::kNone, kEnctypeAes256Gcm},
    {"kadmin/changepw@R", KeyClass::kService, Gate::kNone, kEnctypeAes256Sha1},
    {"krbtgt/R@OTHER", KeyClass::kTgs, Gate::kNone, kEnctypeAes256Gcm},
    {"krbtgt/R@STOCK", KeyClass::kTgs, Gate::kNone, kEnctypeAes256Sha384},
    {"krbtgt/R@R", KeyClass::kTgsOld, Gate::kNone, kEnctypeAes256Sha1},
    {"HTTP/www@R", KeyClass::kService, Gate::kNone, kEnctypeAes128Sha256},
    {"WELLKNOWN/ANONYMOUS@R", KeyClass::kUser, Gate::kNone, kEnctypeAes256Gcm},
};

std::string H(char number) {
  std::string handle(16, '\0');
  handle[0] = number;
  return handle;
}

const KeyInfo* Find(const Handle& handle) {
  static const auto* const infos = [] {
    auto* const made = new std::vector<KeyInfo>;
    for (const Key& key : kKeys) {
      KeyInfo& info = made->emplace_back();
      info.handle[0] = static_cast<uint8_t>(made->size() - 1);
      info.principal = key.principal;
      info.principal_id = PrincipalIdOf(key.principal);
      info.kvno = 1;
      info.enctype = key.enctype;
      info.key_class = key.key_class;
      info.gate = key.gate;
    }
    return made;
  }();
  return handle[0] < infos->size() && handle[1] == 0 ? &(*infos)[handle[0]] : nullptr;
}

// ---- Jobs ----

std::string Message(const std::string& header, size_t plaintext) {
  return std::string(12, 'n') + static_cast<char>(header.size()) + header +
         std::string(16 + plaintext, 'c') + std::string(16, 't');
}

void AddSeal(v1::Job& job, char key, uint32_t usage, uint32_t size, bool cts) {
  v1::Seal& seal = *job.add_seals();
  seal.set_handle(H(key));
  seal.set_usage(usage);
  seal.set_max_plaintext(size);
  if (!cts) return;
  SeededRandomForTest random(1);
  const TextShares shares = SplitText(std::vector<uint8_t>(size, 'x'), random)[0];
  seal.set_own_component(std::string(AsText(shares.own)));
  seal.set_before_component(std::string(AsText(shares.before)));
  seal.set_component_hashes(shares.hashes);
}

void AddOpen(v1::Job& job, char key, uint32_t usage, const std::string& message) {
  v1::Open& open = *job.add_opens();
  open.set_handle(H(key));
  open.set_usage(usage);
  open.set_message(message);
}

std::string LoginSeed(char client, char tgs, bool cts, bool certificate) {
  v1::Job job;
  job.set_id(5);
  job.set_operation(v1::OPERATION_LOGIN);
  job.set_client(H(client));
  job.set_source(77);
  if (!certificate)
    AddOpen(job, client, kUsagePreauth, cts ? std::string(16 + 28 + 12, 'm') : Message("", 28));
  AddSeal(job, tgs, kUsageTicket, 40, false);
  AddSeal(job, client, kUsageAsReply, 40, cts);
  v1::MakeMac& mac = *job.add_make_macs();
  mac.set_handle(H(client));
  mac.set_usage(kUsageAsReqChecksum);
  mac.set_data("request");
  if (certificate) {
    job.mutable_certificate()->set_pa_pk_as_req("0\x02\x05");
    job.mutable_certificate()->set_request_body("0\x02\x05");
  }
  return job.SerializeAsString();
}

FuzzSeeds JobSeeds() {
  FuzzSeeds seeds = {LoginSeed(0, 1, false, false), LoginSeed(2, 1, true, false),
                     LoginSeed(3, 1, false, true), LoginSeed(0, 5, false, false),
                     LoginSeed(2, 7, true, true)};
  v1::Job job;
  job.set_id(6);
  job.set_operation(v1::OPERATION_REISSUE_TICKET);
  AddOpen(job, 1, kUsageTicket, Message(EncodeTicketHeader({}), 150));
  AddSeal(job, 1, kUsageTicket, 120, false);
  seeds.push_back(job.SerializeAsString());
  job.set_operation(v1::OPERATION_OPEN_TICKET);
  job.clear_seals();
  seeds.push_back(job.SerializeAsString());
  job.mutable_opens(0)->set_handle(H(8));
  job.mutable_opens(0)->set_message(std::string(200, 'm'));
  seeds.push_back(job.SerializeAsString());
  job.Clear();
  job.set_operation(v1::OPERATION_SEAL_GRANTED);
  job.set_client(H(0));
  job.set_grant(4);
  AddSeal(job, 1, kUsageTicket, 100, false);
  seeds.push_back(job.SerializeAsString());
  // Longer than a digest's counts have room for.
  job.mutable_seals(0)->set_component_hashes(std::string(1 << 16, 'x'));
  seeds.push_back(job.SerializeAsString());
  job.Clear();
  job.set_operation(v1::OPERATION_VERIFY_CHECKSUM);
  for (const char key : {'\1', '\x09'}) {
    v1::VerifyMac& mac = *job.add_verify_macs();
    mac.set_handle(H(key));
    mac.set_usage(kUsagePacChecksum);
    mac.set_data("pac");
    mac.set_checksum(std::string(key == 1 ? 28 : 12, 'c'));
  }
  seeds.push_back(job.SerializeAsString());
  job.Clear();
  job.set_operation(v1::OPERATION_MAKE_CHECKSUM);
  v1::MakeMac& mac = *job.add_make_macs();
  mac.set_handle(H(1));
  mac.set_usage(kUsageCammac);
  mac.set_data("cammac");
  seeds.push_back(job.SerializeAsString());
  return seeds;
}

MPCKDC_FUZZ(job, JobSeeds) {
  v1::Job proto;
  if (!proto.ParseFromArray(in.data(), static_cast<int>(in.size()))) return;
  const auto job = JobFromProto(proto);
  if (!job.ok()) return;
  const KdcIdentity kdc{"kdc1", {}};
  FUZZ_CHECK(JobDigest(kdc, *job) == Sha256(EncodeJob(kdc, *job)));  // as the engine does at once
  static_cast<void>(PrincipalOfTicket(*job));
  if (!CheckShape(*job).ok()) return;
  // What the table lets through has these bounds.
  FUZZ_CHECK(FindOperation(job->operation) != nullptr);
  FUZZ_CHECK(job->opens.size() + job->seals.size() + job->make_macs.size() +
                 job->verify_macs.size() <=
             limits::kMaxPartsPerJob);
  for (int party = 0; party < 3; ++party) static_cast<void>(CheckTexts(*job, party));
  if (!CheckKeys(*job, "R", Find).ok()) return;
  for (const OpenPart& open : job->opens) FUZZ_CHECK(Find(open.handle) != nullptr);
  for (const SealPart& seal : job->seals) {
    const KeyInfo* const info = Find(seal.handle);
    FUZZ_CHECK(info != nullptr && info->key_class != KeyClass::kTgsOld &&
               info->key_class != KeyClass::kHistory);
    FUZZ_CHECK(!IsTgtFromOtherRealm(info->principal, "R"));
    // A ticket of kadmin's always has a header.
    FUZZ_CHECK(seal.usage != kUsageTicket || !IsKadmin(info->principal) ||
               FindEnctype(info->enctype)->is_gcm());
  }
}

FuzzSeeds TagSeeds() {
  v1::TagRequest request;
  request.set_job(6);
  request.set_seal(1);
  request.set_ciphertext(std::string(40, 'c'));
  return {request.SerializeAsString()};
}

MPCKDC_FUZZ(tag_request, TagSeeds) {
  v1::TagRequest proto;
  if (!proto.ParseFromArray(in.data(), static_cast<int>(in.size()))) return;
  const v1::TagRequest before = proto;
  const TagRequest request = TagRequestFromProto(proto);
  FUZZ_CHECK(request.job == before.job() && request.ciphertext == before.ciphertext());
  static_cast<void>(TagRequestDigest({}, {}, request));
}

// ---- Configuration ----

FuzzSeeds ConfigSeeds() {
  const std::string least = R"(realm = "R"
party = 0
cluster = 1
data_dir = "d"
[identity]
certificate = "c"
key = "k"
ca = "a"
[listen]
clients = "h:1"
peers = "h:2"
[peers]
p0 = "h:2"
p1 = "h:3"
p2 = "h:4"
[store]
key_file = "f"
)";
  return {least,
          least + "backend = \"postgresql\"\npostgresql = \"host=db dbname=kdc\"\ncache_mib = 64\n",
          least + R"([batch]
window_ms = 5
mode = "fixed"
max_jobs = 100
[policy]
max_renewable_life = "7d"
clock_skew = "5m"
refresh_every = "never"
delete_grace = "24h"
[pkinit]
anchors = "a.pem"
eku_checking = "scLogin"
allow_upn = true
[quota]
principal_logins = "60/min burst 120"
kdc_logins = "unlimited"
compared_per_hour = 5
[log]
level = "debug"
format = "json"
file = "log"
[audit]
sync = "batch"
rotate_mib = 10
keep_files = 3
[metrics]
listen = "[::1]:9090"
[engine]
isa = "avx2"
workers = 2
records = "tls"
randomness = "exchanged"
security = "semi-honest"
protocol = "garbled"
)"};
}

MPCKDC_FUZZ(server_config, ConfigSeeds) {
  const auto config = ParseConfig(AsText(in), "/etc/x.toml");
  if (!config.ok()) {
    FUZZ_CHECK(config.status().message().find("/etc/x.toml:") == 0);
    return;
  }
  FUZZ_CHECK(!config->realm.empty() && config->party >= 0 && config->party <= 2);
  FUZZ_CHECK(config->store.key_file.empty() != config->store.credential.empty());
  FUZZ_CHECK(config->batch.max_jobs >= 1 && config->batch.max_jobs <= limits::kMaxBatchJobs);
}

FuzzSeeds RateSeeds() {
  return {"60/min burst 120", "unlimited", "1/s", "5/hour burst 7", "0/day"};
}

// A rate that is read is said in words that are read as the same.
MPCKDC_FUZZ(quota_rate, RateSeeds) {
  const auto rate = ParseRate(AsText(in));
  if (!rate.ok()) return;
  const auto again = ParseRate(RateText(*rate));
  FUZZ_CHECK(again.ok() && RateText(*again) == RateText(*rate));
}

}  // namespace
}  // namespace mpckdc
