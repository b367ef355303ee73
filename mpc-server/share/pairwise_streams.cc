// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/share/pairwise_streams.h"

#include <sodium.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>

namespace mpckdc {
namespace {

// Purposes of the keys derived from a pairwise seed; 3 and 4: output_masks.cc.
enum KeyNumber : uint64_t { kZeroKey = 1, kRandomKey = 2 };
constexpr char kContext[crypto_kdf_CONTEXTBYTES + 1] = "mpckdc-p";

void Derive(const Seed& seed, KeyNumber number, absl::Span<uint8_t> out) {
  static_assert(sizeof(Seed) == crypto_kdf_KEYBYTES);
  crypto_kdf_derive_from_key(out.data(), out.size(), number, kContext, seed.data());
}

CtrKey StreamKey(const CtrFunctions& ctr, const Seed& seed, KeyNumber number) {
  std::array<uint8_t, 16> key;
  Derive(seed, number, absl::MakeSpan(key));
  CtrKey expanded = ExpandCtrKey(ctr, key.data());
  Wipe(key.data(), key.size());
  return expanded;
}

CtrPrefix MakePrefix(StreamPurpose purpose, uint32_t round, uint32_t session, uint32_t batch) {
  CtrPrefix p;
  p.bytes[0] = static_cast<uint8_t>(purpose);
  for (int i = 0; i < 3; ++i) p.bytes[1 + i] = static_cast<uint8_t>(round >> (16 - 8 * i));
  for (int i = 0; i < 4; ++i) p.bytes[4 + i] = static_cast<uint8_t>(session >> (24 - 8 * i));
  for (int i = 0; i < 4; ++i) p.bytes[8 + i] = static_cast<uint8_t>(batch >> (24 - 8 * i));
  return p;
}

uint32_t BlocksFor(size_t bytes) { return static_cast<uint32_t>((bytes + 15) / 16); }

// Calls fill(out, blocks) for the whole blocks and copies the last, partial one.
template <class F>
void FillBytes(absl::Span<uint8_t> out, F fill) {
  const size_t whole = out.size() / 16;
  if (whole != 0) fill(0, out.data(), whole);
  if (const size_t rest = out.size() % 16; rest != 0) {
    uint8_t block[16];
    fill(static_cast<uint32_t>(whole), block, 1);
    std::memcpy(out.data() + 16 * whole, block, rest);
    Wipe(block, sizeof(block));
  }
}

[[noreturn]] void DieOfReuse(const StreamPlace& place, const StreamPlace& next) {
  std::fprintf(stderr,
               "zero-share counter used twice: batch %u round %u position %u, expected at or after "
               "batch %u round %u position %u\n",
               place.batch, place.round, place.position, next.batch, next.round, next.position);
  std::abort();
}

}  // namespace

void StreamCursor::Take(const StreamPlace& place, uint32_t blocks) {
  const auto order = [](const StreamPlace& p) { return std::tie(p.batch, p.round, p.position); };
  const bool fits = place.round < 1u << 24 && place.position + uint64_t{blocks} <= UINT32_MAX;
  if (order(place) < order(next_) || !fits) DieOfReuse(place, next_);
  next_ = place;
  next_.position += blocks;
}

PairwiseStreams::PairwiseStreams(uint32_t session, const PairwiseSeeds& seeds, Isa isa)
    : session_(session), ctr_(AllCtrs().For(isa)) {
  Keys& k = keys_.Get();
  const Seed& own = seeds.own.Get();
  const Seed& next = seeds.next.Get();
  k.zero_own = StreamKey(ctr_, own, kZeroKey);
  k.zero_next = StreamKey(ctr_, next, kZeroKey);
  k.random_own = StreamKey(ctr_, own, kRandomKey);
  k.random_next = StreamKey(ctr_, next, kRandomKey);
}

void PairwiseStreams::FillZeroShare(const StreamPlace& place, absl::Span<uint8_t> out) {
  zero_cursor_.Take(place, BlocksFor(out.size()));
  const CtrPrefix prefix =
      MakePrefix(StreamPurpose::kZeroShare, place.round, session_, place.batch);
  const Keys& k = keys_.Get();
  FillBytes(out, [&](uint32_t at, uint8_t* to, size_t blocks) {
    ctr_.fill_xor(k.zero_own, k.zero_next, prefix, place.position + at, to, blocks);
  });
}

void PairwiseStreams::FillZeroApart(const StreamPlace& place, const StreamsApart& out,
                                    size_t size) {
  zero_cursor_.Take(place, BlocksFor(size));
  const CtrPrefix prefix =
      MakePrefix(StreamPurpose::kZeroShare, place.round, session_, place.batch);
  const Keys& k = keys_.Get();
  const size_t whole = size / 16, rest = size % 16;
  if (whole != 0) ctr_.fill_apart(k.zero_own, k.zero_next, prefix, place.position, out, whole);
  if (rest == 0) return;
  uint8_t blocks[3][16];
  ctr_.fill_apart(k.zero_own, k.zero_next, prefix, place.position + static_cast<uint32_t>(whole),
                  {blocks[0], blocks[1], blocks[2]}, 1);
  std::memcpy(out.own + 16 * whole, blocks[0], rest);
  std::memcpy(out.next + 16 * whole, blocks[1], rest);
  std::memcpy(out.sum + 16 * whole, blocks[2], rest);
  Wipe(blocks, sizeof(blocks));
}

void PairwiseStreams::TakeZeroShare(const StreamPlace& place, size_t size,
                                    ZeroSource* source) {
  zero_cursor_.Take(place, BlocksFor(size));
  const Keys& k = keys_.Get();
  source->own = &k.zero_own;
  source->next = &k.zero_next;
  source->prefix = MakePrefix(StreamPurpose::kZeroShare, place.round, session_, place.batch);
  source->position = place.position;
}

void PairwiseStreams::Fill(StreamPurpose purpose, StreamCursor& cursor, const StreamPlace& place,
                           absl::Span<uint8_t> own, absl::Span<uint8_t> next) {
  cursor.Take(place, BlocksFor(own.size()));
  const CtrPrefix prefix = MakePrefix(purpose, place.round, session_, place.batch);
  const Keys& k = keys_.Get();
  FillBytes(own, [&](uint32_t at, uint8_t* to, size_t blocks) {
    ctr_.fill(k.random_own, prefix, place.position + at, to, blocks);
  });
  FillBytes(next, [&](uint32_t at, uint8_t* to, size_t blocks) {
    ctr_.fill(k.random_next, prefix, place.position + at, to, blocks);
  });
}

}  // namespace mpckdc
