// SPDX-License-Identifier: Apache-2.0
// For tests only: bytes that are not those that were sent, drawn by a seed. What a peer may send is
// any bytes; these are near what it ought to send, so that they get far, and some are not.
#ifndef MPC_SERVER_TESTING_MUTATIONS_H_
#define MPC_SERVER_TESTING_MUTATIONS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "absl/types/span.h"

namespace mpckdc {

class Mutations {
 public:
  explicit Mutations(uint64_t seed) : random_(seed) {}

  uint64_t Below(uint64_t n) { return random_() % n; }
  bool Chance(uint64_t in) { return Below(in) == 0; }

  // Other bytes of the same length; not empty.
  void Alter(absl::Span<uint8_t> bytes) {
    const std::vector<uint8_t> before(bytes.begin(), bytes.end());
    do {
      AlterOnce(bytes);
    } while (std::equal(before.begin(), before.end(), bytes.begin()));
    if (Chance(8)) earlier_.assign(before.begin(), before.end());
  }

  // Cut, longer, or of a length of its own, beside what Alter() does.
  void AlterLength(std::vector<uint8_t>& bytes) {
    const std::vector<uint8_t> before = bytes;
    switch (Below(5)) {
      case 0:
        bytes.resize(Below(bytes.size() + 1));
        break;
      case 1:
        bytes.erase(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(Below(bytes.size() + 1)));
        break;
      case 2:
        for (uint64_t left = 1 + Below(40); left > 0; --left) bytes.push_back(Byte());
        break;
      case 3:
        bytes.insert(bytes.end(), before.begin(), before.end());
        break;
      default:
        bytes.resize(Below(600));
        for (uint8_t& byte : bytes) byte = Byte();
    }
    if (bytes.size() == before.size()) bytes.push_back(Byte());
    if (!bytes.empty() && Chance(3)) AlterOnce(absl::MakeSpan(bytes));
  }

 private:
  static constexpr size_t kBlock = 16;  // a label, a hash, a tag

  uint8_t Byte() { return static_cast<uint8_t>(random_()); }

  void AlterOnce(absl::Span<uint8_t> bytes) {
    const size_t at = Below(bytes.size());
    const absl::Span<uint8_t> piece =
        bytes.subspan(at, 1 + Below(std::min<size_t>(bytes.size() - at, 64)));
    switch (Below(9)) {
      case 0:
        bytes[at] ^= static_cast<uint8_t>(1 << Below(8));
        break;
      case 1:  // of the last fields, which are short
        bytes[bytes.size() - 1 - Below(std::min<size_t>(bytes.size(), 48))] ^= Byte();
        break;
      case 2:
        bytes[Below(std::min<size_t>(bytes.size(), 64))] = Byte();
        break;
      case 3:
        for (uint8_t& byte : piece) byte = Byte();
        break;
      case 4:
        std::fill(piece.begin(), piece.end(), uint8_t{0});
        break;
      case 5:
        std::fill(piece.begin(), piece.end(), uint8_t{0xFF});
        break;
      case 6:
        for (uint8_t& byte : bytes) byte = Byte();
        break;
      case 7:
        SwapBlocks(bytes);
        break;
      default:  // what came earlier, at another place
        for (size_t i = 0; i < piece.size() && !earlier_.empty(); ++i) {
          piece[i] = earlier_[(at + i) % earlier_.size()];
        }
    }
  }
  void SwapBlocks(absl::Span<uint8_t> bytes) {
    const size_t blocks = bytes.size() / kBlock;
    if (blocks < 2) return;
    const auto block = [&] { return bytes.data() + kBlock * Below(blocks); };
    uint8_t *const a = block(), *const b = block();
    if (a != b) std::swap_ranges(a, a + kBlock, b);
  }

  std::mt19937_64 random_;
  std::vector<uint8_t> earlier_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_MUTATIONS_H_
