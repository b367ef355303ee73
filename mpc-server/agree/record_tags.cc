// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/record_tags.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/share/deviation.h"

namespace mpckdc {
namespace {

std::string Facts(const KeyRecord& record, uint32_t batch) {
  const KeyInfo& info = record.info;
  ByteWriter out("mpc-kdc record v1");
  out.Uint(batch, 4);
  out.Fixed(info.handle);
  out.Fixed(info.principal_id);
  out.Uint(info.kvno, 4);
  out.Uint(static_cast<uint32_t>(info.enctype), 4);
  out.Uint(static_cast<uint8_t>(info.key_class), 1);
  out.Uint(record.base.size(), 1);
  for (const UsageKey& usage : record.usages) {
    out.Uint(usage.usage, 4);
    out.Uint(usage.round_keys.size(), 1);
    out.Uint(usage.mac_states.size(), 1);
  }
  return out.Take();
}

}  // namespace

absl::Status CheckCounts(int own_party, size_t keys, const std::array<size_t, kParties>& told) {
  for (int party = 0; party < kParties; ++party) {
    if (told[party] == keys) continue;
    const std::string text = absl::StrCat("agreement: party ", party, " speaks of ", told[party],
                                          " keys of an entry that has ", keys);
    if (party == own_party) return absl::InternalError(text);
    return Deviation(Suspects::One(party), text);
  }
  return absl::OkStatus();
}

void RecordTagger::Split(const KeyRecord& record) {
  mine_.clear();
  prevs_.clear();
  const auto add = [this](absl::Span<const SharedBlock> blocks) {
    for (const SharedBlock& block : blocks) {
      mine_.push_back(block.a);
      prevs_.push_back(XorBlocks(block.x, block.a));
    }
  };
  add(record.base);
  for (const UsageKey& usage : record.usages) {
    add(usage.round_keys);
    add({&usage.h, 1});
    add(usage.mac_states);
  }
}

RecordTag RecordTagger::Tag(const Seed& key, absl::string_view facts,
                            absl::Span<const Block> component) {
  RecordTag tag;
  std::array<uint8_t, crypto_generichash_BYTES> digest;
  crypto_generichash_state* const state = &state_.Get();
  crypto_generichash_init(state, key.data(), key.size(), digest.size());
  crypto_generichash_update(state, AsBytes(facts).data(), facts.size());
  crypto_generichash_update(state, reinterpret_cast<const uint8_t*>(component.data()),
                            component.size() * sizeof(Block));
  crypto_generichash_final(state, digest.data(), digest.size());
  std::copy_n(digest.begin(), tag.size(), tag.begin());
  return tag;
}

RecordTags RecordTagger::TagsOf(const KeyRecord& record, const PartyContext& party,
                                uint32_t batch) {
  Split(record);
  const std::string facts = Facts(record, batch);
  return {Tag(party.ComparisonKey(Neighbour::kPrev), facts, prevs_),
          Tag(party.ComparisonKey(Neighbour::kNext), facts, mine_)};
}

std::optional<Difference> Compare(const std::array<RecordTags, kParties>& tags) {
  std::array<bool, kParties> differ;  // P_i and P_{i+1}
  int count = 0;
  for (int i = 0; i < kParties; ++i) {
    differ[i] = tags[i].with_next != tags[NextParty(i)].with_prev;
    count += differ[i];
  }
  if (count == 0) return std::nullopt;
  for (int i = 0; i < kParties; ++i) {
    if (count == 2 && !differ[i]) {  // both pairs of the one that is left
      const int odd = PrevParty(i);
      return Difference{odd, absl::StrCat("server ", odd, "'s differs from both others'")};
    }
    if (count == 1 && differ[i]) {
      return Difference{i, absl::StrCat("server ", i, "'s or server ", NextParty(i),
                                        "'s: in the part that these two hold alike, they differ")};
    }
  }
  return Difference{0, "no two of the servers hold the same"};
}

}  // namespace mpckdc
