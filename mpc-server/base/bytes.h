// SPDX-License-Identifier: Apache-2.0
//
// Big-endian integers in byte strings: a writer that appends and a reader that never reads past its
// end. A failed read returns zero and makes ok() false from then on.
#ifndef MPC_SERVER_BASE_BYTES_H_
#define MPC_SERVER_BASE_BYTES_H_

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace mpckdc {

template <class Bytes>
void AppendUint(Bytes& out, uint64_t value, size_t width) {
  for (size_t i = width; i-- > 0;) {
    out.push_back(static_cast<typename Bytes::value_type>(static_cast<uint8_t>(value >> (8 * i))));
  }
}

template <class Bytes>
void AppendBytes(Bytes& out, absl::Span<const uint8_t> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

inline absl::Span<const uint8_t> AsBytes(absl::string_view text) {
  return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

inline absl::string_view AsText(absl::Span<const uint8_t> bytes) {
  return absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

class ByteWriter {
 public:
  explicit ByteWriter(absl::string_view begin = "") : bytes_(begin) {}

  void Uint(uint64_t value, size_t width) { AppendUint(bytes_, value, width); }
  void Bytes(absl::string_view bytes) { bytes_.append(bytes.data(), bytes.size()); }
  template <size_t N>
  void Fixed(const std::array<uint8_t, N>& value) {
    Bytes(AsText(value));
  }
  // The length in `width` bytes, then the bytes.
  void Counted(absl::string_view bytes, size_t width) {
    assert(width == 8 || bytes.size() < 1ull << 8 * width);
    Uint(bytes.size(), width);
    Bytes(bytes);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(absl::Span<const uint8_t> in) : in_(in) {}

  uint64_t Uint(size_t width) {
    uint64_t value = 0;
    for (uint8_t byte : Bytes(width)) value = value << 8 | byte;
    return value;
  }

  absl::Span<const uint8_t> Bytes(size_t count) {
    if (!ok_ || count > in_.size()) {
      ok_ = false;
      return {};
    }
    absl::Span<const uint8_t> bytes = in_.subspan(0, count);
    in_.remove_prefix(count);
    return bytes;
  }

  std::string Text(size_t count) { return std::string(AsText(Bytes(count))); }

  // Fills all of `out`, or leaves it as it was and fails.
  template <class Array>
  void Into(Array& out) {
    absl::Span<const uint8_t> bytes = Bytes(out.size());
    std::copy(bytes.begin(), bytes.end(), out.begin());
  }

  size_t left() const { return in_.size(); }
  bool ok() const { return ok_; }
  bool AtEnd() const { return ok_ && in_.empty(); }

 private:
  absl::Span<const uint8_t> in_;
  bool ok_ = true;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_BASE_BYTES_H_
