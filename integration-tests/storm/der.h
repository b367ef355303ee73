// SPDX-License-Identifier: Apache-2.0
//
// As much DER as Kerberos messages need: definite lengths, tags below 31, 64-bit integers.
#ifndef INTEGRATION_TESTS_STORM_DER_H_
#define INTEGRATION_TESTS_STORM_DER_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace mpckdc::storm {

using Bytes = absl::Span<const uint8_t>;

inline constexpr uint8_t kDerInteger = 0x02;
inline constexpr uint8_t kDerBitString = 0x03;
inline constexpr uint8_t kDerOctetString = 0x04;
inline constexpr uint8_t kDerTime = 0x18;           // GeneralizedTime
inline constexpr uint8_t kDerGeneralString = 0x1b;
inline constexpr uint8_t kDerSequence = 0x30;
constexpr uint8_t DerContext(int number) { return static_cast<uint8_t>(0xa0 | number); }
constexpr uint8_t DerApplication(int number) { return static_cast<uint8_t>(0x60 | number); }

// Writes back to front: when a tag is put in front of its contents their length is known, and
// nothing is moved. So the LAST field of a sequence is written FIRST.
//
//     buffer   [ ......free...... | last thing written ... first thing written ]
//                                 ^at_                                         ^end
class DerWriter {
 public:
  explicit DerWriter(absl::Span<uint8_t> buffer) : buffer_(buffer), at_(buffer.size()) {}

  // tag(contents), where body() writes the contents.
  template <class Body>
  void In(uint8_t tag, Body body) {
    const size_t end = at_;
    body();
    Header(tag, end - at_);
  }

  void Integer(int64_t value);
  void OctetString(Bytes bytes) { Element(kDerOctetString, bytes); }
  void GeneralString(absl::string_view text);
  void Flags(uint32_t flags);          // KerberosFlags: 32 bits, bit 0 is the highest
  void Time(uint32_t seconds);         // KerberosTime: seconds since 1970, GMT
  void Raw(Bytes bytes);

  // False when the buffer was too small; Written() is then meaningless.
  bool ok() const { return ok_; }
  Bytes Written() const { return buffer_.subspan(at_); }

 private:
  void Byte(uint8_t byte);
  void Header(uint8_t tag, size_t length);
  void Element(uint8_t tag, Bytes contents);

  absl::Span<uint8_t> buffer_;
  size_t at_;
  bool ok_ = true;
};

// Reads elements in their order. The first thing that is not as asked makes it !ok(), and from then
// on everything that it returns is empty or zero: a caller checks once, at the end.
class DerReader {
 public:
  DerReader() : ok_(false) {}
  explicit DerReader(Bytes bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  bool empty() const { return rest_.empty(); }
  // Whether all was read and was right.
  bool Done() const { return ok_ && rest_.empty(); }
  uint8_t NextTag() const { return ok_ && !rest_.empty() ? rest_[0] : 0; }

  // The contents of the next element, which must have this tag.
  DerReader Enter(uint8_t tag);
  // The same if it is there.
  std::optional<DerReader> EnterIf(uint8_t tag);
  // The next element, header included.
  Bytes Whole(uint8_t tag);
  void Skip();

  int64_t Integer();
  Bytes OctetString() { return Enter(kDerOctetString).rest_; }
  absl::string_view GeneralString();
  uint32_t Flags();
  uint32_t Time();
  Bytes rest() const { return rest_; }

 private:
  struct Element {
    uint8_t tag;
    size_t header;
    size_t length;
  };
  std::optional<Element> Look() const;
  void Fail();

  Bytes rest_;
  bool ok_ = true;
};

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_DER_H_
