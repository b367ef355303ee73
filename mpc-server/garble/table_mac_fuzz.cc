// SPDX-License-Identifier: Apache-2.0
//
// The MAC of a garbled run's tables, as the CPU's library makes it and as the portable code does.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/garble/draws.h"
#include "mpc-server/garble/table_mac.h"
#include "mpc-server/testing/fuzz.h"

namespace mpckdc::garble {
namespace {

// key (16) | blocks of a piece, less one (1) | which byte is another (2) | in what (1) | bytes
FuzzSeeds Seeds() {
  FuzzSeeds seeds;
  for (const size_t blocks : {0, 1, 7, 8, 9, 40}) {
    std::string bytes(16 * blocks, '\0');
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(7 * i);
    seeds.push_back(absl::StrCat(std::string(16, 'k'), std::string("\2\0\3\1", 4), bytes));
  }
  return seeds;
}

MacTag InPieces(const RunKey& key, absl::Span<const uint8_t> bytes, size_t piece) {
  TableMac mac(key);
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    mac.Add(bytes.subspan(0, piece));
  }
  return mac.Finish();
}

MacTag Portable(const RunKey& key, absl::Span<const uint8_t> bytes) {
  Block h, pad, sum{}, length{};
  Draws draws(key);
  draws.Fill(absl::MakeSpan(h));
  draws.Fill(absl::MakeSpan(pad));
  PortableGhash(h, bytes, sum);
  length[14] = static_cast<uint8_t>(bytes.size() >> 8);
  length[15] = static_cast<uint8_t>(bytes.size());
  PortableGhash(h, length, sum);
  return XorBlocks(sum, pad);
}

MPCKDC_FUZZ(table_mac, Seeds) {
  ByteReader reader(in);
  RunKey key{};
  reader.Into(key);
  const size_t piece = 16 * (1 + reader.Uint(1)), at = reader.Uint(2);
  const auto change = static_cast<uint8_t>(reader.Uint(1));
  const absl::Span<const uint8_t> left = reader.Bytes(reader.left());
  if (!reader.ok() || left.size() > 0xffff) return;
  // A copy that ends with its last whole block, so that a reader past the end is seen.
  std::vector<uint8_t> bytes(left.begin(), left.end() - static_cast<ptrdiff_t>(left.size() % 16));
  const MacTag tag = InPieces(key, bytes, piece);
  FUZZ_CHECK(tag == Portable(key, bytes));
  if (bytes.empty()) return;
  bytes[at % bytes.size()] ^= change;
  FUZZ_CHECK((InPieces(key, bytes, bytes.size()) == tag) == (change == 0));
}

}  // namespace
}  // namespace mpckdc::garble
