// SPDX-License-Identifier: Apache-2.0
//
// Audit logs from which fuzz targets set out.
#ifndef MPC_SERVER_AUDIT_LOG_SEEDS_H_
#define MPC_SERVER_AUDIT_LOG_SEEDS_H_

#include <string>

#include "absl/time/time.h"
#include "mpc-server/audit/line.h"

namespace mpckdc::audit {

inline const absl::Time kTime = absl::FromUnixSeconds(1'800'000'000);

// One server's log, as the server writes it.
class Log {
 public:
  explicit Log(int party) : owner_{"EXAMPLE.COM", party} {}
  Log& Add(const std::string& kind, const Fields& fields) {
    return AddAt(kTime + absl::Seconds(head_.seq), kind, fields);
  }
  Log& AddAt(absl::Time time, const std::string& kind, const Fields& fields) {
    text_ += EncodeLine(owner_, time, kind, MembersOf(fields), &head_);
    return *this;
  }
  // Not as the server does: files that are not there, and bytes of somebody else.
  void Forget() { text_.clear(); }
  void AddRaw(const std::string& bytes) { text_ += bytes; }
  const std::string& text() const { return text_; }
  uint64_t lines() const { return head_.seq; }

 private:
  Owner owner_;
  Head head_;
  std::string text_;
};

inline Fields Job(uint64_t id, const char* verdict) {
  return {{"kdc", "kdc1"},       {"session", "5e"}, {"id", id},           {"op", "LOGIN"},
          {"principal", "208b"}, {"digest", "d"},   {"verdict", verdict}, {"detail", "why"}};
}

inline Log GoodLog(int party) {
  Log log(party);
  log.Add("start", {{"boot", "a"}});
  log.Add("batch", {{"ring", "51"}, {"batch", 1}, {"view", "v"}, {"jobs", {Job(1, "OK")}}});
  log.Add("jobs", {{"jobs", {Job(2, "QUOTA")}}});
  log.Add("counted", {{"kdc", "kdc1"}, {"since", "2027-01-15T08:00:00.000000Z"}, {"count", 7}});
  log.Add("batch", {{"ring", "51"},
                    {"batch", 2},
                    {"view", "v"},
                    {"error", "e"},
                    {"jobs", {Job(3, "UNAVAILABLE")}}});
  log.Add("admin",
          {{"name", "root"}, {"act", "delete"}, {"names", {"\xff", "gr\xc3\xbc\xc3\x9f\n"}}});
  log.Add("stop", Fields());
  return log;
}

}  // namespace mpckdc::audit

#endif  // MPC_SERVER_AUDIT_LOG_SEEDS_H_
