// SPDX-License-Identifier: Apache-2.0
//
// Reads DER (X.690) element by element: tags of one byte, definite lengths in their shortest form.
// Whatever else is there, it is not what was asked for.
#ifndef MPC_SERVER_BASE_DER_H_
#define MPC_SERVER_BASE_DER_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace mpckdc {

namespace der {
inline constexpr uint8_t kInteger = 0x02, kOctets = 0x04, kObject = 0x06, kUtf8 = 0x0c;
inline constexpr uint8_t kTime = 0x18, kGeneralString = 0x1b, kSequence = 0x30;
// [n] EXPLICIT, and [n] IMPLICIT of a primitive type.
constexpr uint8_t Field(int n) { return static_cast<uint8_t>(0xa0 | n); }
constexpr uint8_t Implicit(int n) { return static_cast<uint8_t>(0x80 | n); }
}  // namespace der

class DerReader {
 public:
  explicit DerReader(absl::string_view in) : rest_(in) {}

  // Takes the next element if it has this tag: its contents. The reader stays where it is if not.
  std::optional<absl::string_view> Take(uint8_t tag);
  // As Take(field), of an element that holds one with `tag` and nothing else.
  std::optional<absl::string_view> TakeField(uint8_t field, uint8_t tag);
  bool At(uint8_t tag) const { return !rest_.empty() && static_cast<uint8_t>(rest_[0]) == tag; }
  bool AtEnd() const { return rest_.empty(); }

 private:
  absl::string_view rest_;
};

// `in` is one element with this tag and nothing else: its contents.
std::optional<absl::string_view> OnlyDer(uint8_t tag, absl::string_view in);

// Of an INTEGER's contents, if it is in its shortest form and has at most 63 bits.
std::optional<int64_t> DerInteger(absl::string_view contents);

}  // namespace mpckdc

#endif  // MPC_SERVER_BASE_DER_H_
