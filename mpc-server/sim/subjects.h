// SPDX-License-Identifier: Apache-2.0
//
// What three servers compute together, a few lanes of each circuit at a time: what a liar among
// them lies about (sim/lies.h).
#ifndef MPC_SERVER_SIM_SUBJECTS_H_
#define MPC_SERVER_SIM_SUBJECTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "mpc-server/share/replicated_share.h"
#include "mpc-server/share/session.h"

namespace mpckdc::sim {

// What a computation comes to at one server: shares that would leave it, and what was opened.
struct Results {
  std::vector<SharedBlock> shares;
  std::vector<uint8_t> opened;

  void Clear() {
    shares.clear();
    opened.clear();
  }
};

// Verifies what was computed since the last time; OK: it may be opened, or leave.
using Verify = std::function<absl::Status(PartyContext& party)>;

// The same computation again and again, on inputs of its own. Not thread safe, but for its parties,
// which run side by side.
class Subject {
 public:
  explicit Subject(std::string name, size_t row_bytes, double share)
      : name_(std::move(name)), row_bytes_(row_bytes), share_(share) {}
  virtual ~Subject() = default;

  const std::string& name() const { return name_; }
  size_t row_bytes() const { return row_bytes_; }  // of a row of its messages
  double share() const { return share_; }          // of all runs, about
  // Whether each party sends something else: a garbled run, of keyed randomness alone.
  virtual bool has_roles() const { return false; }
  // In a batch that has begun. The results are appended.
  virtual absl::Status Run(PartyContext& party, const Verify& verify, Results* results) = 0;

 private:
  const std::string name_;
  const size_t row_bytes_;
  const double share_;
};

// All of them; `seed` draws the inputs.
std::vector<std::unique_ptr<Subject>> AllSubjects(uint64_t seed);

}  // namespace mpckdc::sim

#endif  // MPC_SERVER_SIM_SUBJECTS_H_
