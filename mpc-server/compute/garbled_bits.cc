// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/compute/garbled_bits.h"

#include <string>
#include <utility>

#include "mpc-server/base/sha256.h"

namespace mpckdc {

void GarbledInputs::Put(absl::Span<const SharedBlock> blocks, size_t bits) {
  for (size_t i = 0; i < bits; ++i, ++row_) {
    const SharedBlock& block = blocks[i / 128];
    const size_t byte = i % 128 / 8, at = row_ * lanes_ + lane_;
    bits_.own[at] = block.a[byte] >> i % 8 & 1;
    bits_.left[at] = (block.a[byte] ^ block.x[byte]) >> i % 8 & 1;
  }
}

SecretVector<SharedBlock> BlocksOfOutputs(const garble::SharedBits& bits, size_t first_row,
                                          size_t rows, size_t lane, size_t lanes) {
  SecretVector<SharedBlock> blocks((rows + 127) / 128);
  for (size_t i = 0; i < rows; ++i) {
    SharedBlock& block = blocks[i / 128];
    const size_t byte = i % 128 / 8, at = (first_row + i) * lanes + lane;
    block.a[byte] |= static_cast<uint8_t>(bits.own[at] << i % 8);
    block.x[byte] |= static_cast<uint8_t>((bits.own[at] ^ bits.left[at]) << i % 8);
  }
  return blocks;
}

namespace {

void AddNumber(uint64_t n, std::string& to) {
  for (int i = 0; i < 8; ++i) to.push_back(static_cast<char>(n >> 8 * i));
}

Digest HashOf(const Digest& agreed, absl::Span<const uint64_t> which,
              const garble::RunInput& input) {
  std::string all(agreed.begin(), agreed.end());
  AddNumber(which.size(), all);
  for (const uint64_t part : which) AddNumber(part, all);
  const garble::Plan& plan = *input.plan;
  for (const size_t n : {input.lanes, plan.gates(), plan.steps().size(), plan.input_rows(),
                         plan.shown_rows(), plan.output_rows(), plan.strings().size()}) {
    AddNumber(n, all);
  }
  for (const auto& strings : input.strings) {
    for (const absl::string_view text : strings) {
      AddNumber(text.size(), all);
      all.append(text.data(), text.size());
    }
  }
  return Sha256(all);
}

}  // namespace

std::unique_ptr<garble::GarbledRun> NextGarbledRun(
    PartyContext& party, const garble::RunQueue& queue, const Digest& agreed,
    absl::Span<const uint64_t> which, const garble::RunInput& input, garble::SharedBits inputs) {
  const uint32_t number = party.NextGarbling();
  const int evaluator = queue.NextEvaluator(static_cast<int>(party.batch() % kParties));
  return std::make_unique<garble::GarbledRun>(
      party.party(), evaluator,
      garble::DrawNeighbourKeys(party, number, HashOf(agreed, which, input)), input,
      std::move(inputs), garble::PaceOf(party.quick_bytes()));
}

}  // namespace mpckdc
