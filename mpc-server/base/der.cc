// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/base/der.h"

#include <cstddef>

namespace mpckdc {
namespace {

constexpr uint8_t kLong = 0x80;        // the length has more than one byte
constexpr size_t kMaxLengthBytes = 3;  // 16 MiB
constexpr uint8_t kHighTag = 0x1f;     // the tag has more than one byte

uint8_t ByteAt(absl::string_view in, size_t i) { return static_cast<uint8_t>(in[i]); }

}  // namespace

std::optional<absl::string_view> DerReader::Take(uint8_t tag) {
  const bool high = (tag & kHighTag) == kHighTag;
  if (rest_.size() < 2 || ByteAt(rest_, 0) != tag || high) return std::nullopt;
  size_t length = ByteAt(rest_, 1), begin = 2;
  if (length >= kLong) {
    const size_t bytes = length - kLong;
    if (bytes == 0 || bytes > kMaxLengthBytes || rest_.size() < begin + bytes) return std::nullopt;
    length = 0;
    for (size_t i = 0; i < bytes; ++i) length = length << 8 | ByteAt(rest_, begin + i);
    // Fewer bytes would have done.
    if (length < kLong || length >> (8 * (bytes - 1)) == 0) return std::nullopt;
    begin += bytes;
  }
  if (rest_.size() - begin < length) return std::nullopt;
  const absl::string_view contents = rest_.substr(begin, length);
  rest_.remove_prefix(begin + length);
  return contents;
}

std::optional<absl::string_view> DerReader::TakeField(uint8_t field, uint8_t tag) {
  DerReader after = *this;
  const auto inside = after.Take(field);
  if (!inside) return std::nullopt;
  const auto contents = OnlyDer(tag, *inside);
  if (contents) *this = after;
  return contents;
}

std::optional<absl::string_view> OnlyDer(uint8_t tag, absl::string_view in) {
  DerReader reader(in);
  const auto contents = reader.Take(tag);
  return reader.AtEnd() ? contents : std::nullopt;
}

std::optional<int64_t> DerInteger(absl::string_view contents) {
  if (contents.empty() || contents.size() > 8) return std::nullopt;
  if (contents.size() > 1) {
    const bool next = (ByteAt(contents, 1) & 0x80) != 0;
    const uint8_t first = ByteAt(contents, 0);
    if ((first == 0 && !next) || (first == 0xff && next)) return std::nullopt;
  }
  auto value = static_cast<uint64_t>((ByteAt(contents, 0) & 0x80) != 0 ? -1 : 0);
  for (size_t i = 0; i < contents.size(); ++i) value = value << 8 | ByteAt(contents, i);
  return static_cast<int64_t>(value);
}

}  // namespace mpckdc
