// SPDX-License-Identifier: Apache-2.0
// A deviation: what a server can only have sent against the protocol, never for a crash, a delay, a
// reload, another version or a mistake of its administrator. A network fault or a broken TLS link
// is none either. doc/protocol.md lists every place that finds one.
//
// It is a status with a payload that says who it may have been. It travels up like any other error
// and ends the session; the engine then quarantines the realm (agree/quarantine.h).
#ifndef MPC_SERVER_SHARE_DEVIATION_H_
#define MPC_SERVER_SHARE_DEVIATION_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "mpc-server/wire/ring.h"

namespace mpckdc {

// Some of the three servers.
class Suspects {
 public:
  constexpr Suspects() = default;  // nobody
  static constexpr Suspects One(int party) { return Suspects(1u << party); }
  // Both but this one: where the two contradict each other, or a value that both had a part in is
  // wrong.
  static constexpr Suspects Neighbours(int party) { return Suspects(kAll & ~(1u << party)); }
  // As mask() gives it. Nothing for bits that are no party's.
  static constexpr std::optional<Suspects> FromMask(uint64_t mask) {
    if ((mask & ~uint64_t{kAll}) != 0) return std::nullopt;
    return Suspects(static_cast<uint32_t>(mask));
  }

  constexpr bool Has(int party) const { return (mask_ >> party & 1) != 0; }
  constexpr bool empty() const { return mask_ == 0; }
  constexpr uint8_t mask() const { return mask_; }  // bit i is P_i's
  std::string Text() const;                         // "P1", "P0 or P2"

  friend constexpr Suspects operator&(Suspects a, Suspects b) {
    return Suspects(a.mask_ & b.mask_);
  }
  friend constexpr Suspects operator|(Suspects a, Suspects b) {
    return Suspects(a.mask_ | b.mask_);
  }
  friend constexpr bool operator==(Suspects, Suspects) = default;

 private:
  static constexpr uint32_t kAll = (1u << kParties) - 1;
  constexpr explicit Suspects(uint32_t mask) : mask_(static_cast<uint8_t>(mask)) {}

  uint8_t mask_ = 0;
};

// DataLoss, with who may have deviated: one or two parties, never the one that calls. `text` says
// what was seen, without secrets; who it was is appended.
absl::Status Deviation(Suspects suspects, absl::string_view text);

// Whom a status accuses; nothing if it is no deviation.
std::optional<Suspects> SuspectsOf(const absl::Status& status);
inline bool IsDeviation(const absl::Status& status) { return SuspectsOf(status).has_value(); }

// The same status with another text; who is accused stays.
absl::Status WithText(const absl::Status& status, absl::string_view text);

// Of the ends of things that ran beside each other, the one to report: a deviation before any other
// error, since the one that sees it ends the others; else the first error.
const absl::Status& Weightier(const absl::Status& first, const absl::Status& second);

}  // namespace mpckdc

#endif  // MPC_SERVER_SHARE_DEVIATION_H_
