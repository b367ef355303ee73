// SPDX-License-Identifier: Apache-2.0
//
// Tests only: what three MPC servers would compute, computed on whole keys by OpenSSL.
#ifndef KDC_PLUGIN_TESTS_ORACLE_H_
#define KDC_PLUGIN_TESTS_ORACLE_H_

#include <atomic>
#include <array>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "mpc-server/key/enctype.h"
#include "mpc-server/key/output_format.h"
#include "mpc-server/key/text_shares.h"
#include "mpc-server/testing/gcm_plain.h"
#include "proto/admin.pb.h"
#include "proto/kdc_key.pb.h"

namespace mpckdc::test {

// Of two that are equally long.
std::string Xor(std::string a, const std::string& b);

// Kg(usage).
std::string UsageKey(const std::string& base, uint32_t usage);

// nonce | header length | header | ciphertext | tag.
std::string SealMessage(const std::string& base, uint32_t usage, const std::string& nonce,
                        const std::string& header, const std::string& plain);
bool OpenMessage(const std::string& base, uint32_t usage, const std::string& message,
                 std::string* header, std::string* plain);

// What three servers send of an answer's outputs (mpc-server/key/output_format.h), by whoever knows
// the values.
class MaskedAnswer {
 public:
  MaskedAnswer();
  // In the order of the outputs: what each sends.
  std::array<std::string, 3> Split(uint32_t number, const std::string& value);
  // After the last: the answers' `keys`.
  std::array<std::string, 3> Keys();

 private:
  std::array<AnswerKeys, 3> keys_;
  std::vector<std::unique_ptr<ShareCheck>> checks_;
};

// What differs from server to server.
void ClearComponents(v1::Job& job);

// The keys and the state that the three servers would share. A job is computed when the first server
// gets it; the others are given their shares of the same result. A job with shares of a plaintext
// waits until all three have come.
class Oracle {
 public:
  void SetKey(const v1::KeyInfo& info, const std::string& base);
  // A party's share of a new key: with the third the key is there.
  void Commit(int party, const v1::SharePackage& package);
  void Stage(int party, const v1::SharePackage& package);
  // Whether the keys are equal; nullopt: there is no such old key.
  std::optional<bool> Compare(const std::string& staged, const std::string& old);
  std::atomic<bool> blind{false};  // keys are never equal
  void KeepForHistory(const std::string& handle);
  void DeleteKey(const std::string& handle);
  std::map<std::string, v1::KeyInfo> Keys();
  std::string Base(const std::string& handle);  // "" if unknown
  void SetGate(const std::string& handle, v1::Gate gate);

  v1::JobAnswer Answer(int party, const std::string& session, const v1::Job& job);
  v1::TagAnswer Tag(int party, const std::string& session, const v1::TagRequest& request);

  int jobs();  // computed so far
  // The servers' own components of each plaintext that was sealed, in the order of the jobs.
  std::vector<std::array<std::string, 3>> plaintext_shares();

 private:
  struct Sealed {
    std::string key;  // of the usage
    std::string nonce;
    std::string header;
    std::string keystream;
    std::string ciphertext;  // of the first request for the tag
    std::array<std::string, 3> tag_shares, tag_keys;
    std::set<int> asked;
  };
  struct Done {
    std::string job;  // serialised, as first received, without the shares
    std::set<int> received;                // by these parties
    std::array<v1::JobAnswer, 3> answers;
    bool computed = false;
    MaskedAnswer masks;
    std::vector<std::array<std::string, 3>> plaintexts;  // by seal
    std::vector<Sealed> seals;
    bool leaves_grant = false;
  };

  const Enctype& EnctypeOf(const std::string& handle) {  // of a known key
    return *FindEnctype(infos_[handle].enctype());
  }
  bool Open(const v1::Open& open, std::string* header, std::string* plain);
  template <class Part>
  std::string MacOf(const Part& part, const std::string& nonce);
  bool Verify(const v1::VerifyMac& mac);
  void AddOpen(const v1::Open& open, Done& done);
  void AddSeal(const v1::Job& job, int index, Done& done);
  void AddMac(const v1::MakeMac& mac, Done& done);
  bool Receive(int party, const v1::Job& job, std::unique_lock<std::mutex>& lock, Done& done);
  void Compute(const std::string& session, const v1::Job& job, Done& done);
  v1::Verdict Judge(const std::string& session, const v1::Job& job, std::string* detail);
  std::string HeaderFor(const v1::Job& job, const v1::Seal& seal);
  std::string NextNonce();

  std::mutex mutex_;
  std::condition_variable received_;
  std::map<std::string, v1::KeyInfo> infos_;
  std::map<std::string, std::string> bases_;
  std::map<std::string, std::map<int, v1::SharePackage>> staged_;
  std::map<std::string, std::map<int, v1::SharePackage>> shares_;  // by handle, party
  std::map<std::pair<std::string, uint64_t>, Done> done_;
  std::map<std::string, int> presented_;  // pre-auths; a grant pays for two logins
  uint64_t next_nonce_ = 1;
};

}  // namespace mpckdc::test

#endif  // KDC_PLUGIN_TESTS_ORACLE_H_
