// SPDX-License-Identifier: Apache-2.0
// The log's memory and layout. What circuits write into it: circuit/recording_test.cc.
#include "mpc-server/share/proof_log.h"

#include <cstring>

#include "gtest/gtest.h"

namespace mpckdc {
namespace {

void FillWithOnes(const ProofSection& s) { std::memset(s.rows, 0xFF, s.bytes()); }

TEST(ProofLogTest, RowsLieAsDrawn) {
  ProofLog log;
  const ProofSection many = log.Open(Gadget::kSbox17, 65);
  EXPECT_EQ(many.row, 64u);
  EXPECT_EQ(many.bytes(), 2u * 32 * (17 + 17) * 64);
  EXPECT_EQ(many.Wires(kProofOwn), many.rows);
  EXPECT_EQ(many.Wires(kProofOwn, 1), many.rows + 17 * 64);
  EXPECT_EQ(many.Wires(kProofLeft), many.rows + 32 * 17 * 64);
  EXPECT_EQ(many.T(kProofOwn), many.rows + 2 * 32 * 17 * 64);
  EXPECT_EQ(many.T(kProofLeft, 31), many.rows + many.bytes() - 17 * 64);
  const ProofSection few = log.Open(ProductsGadget(3), 64);
  EXPECT_EQ(few.gadget, Gadget::kProducts3);
  EXPECT_EQ(few.row, 8u);
  EXPECT_EQ(few.bytes(), 2u * 32 * (6 + 1) * 8);
  EXPECT_EQ(few.T(kProofOwn, 1), few.rows + 2 * 32 * 6 * 8 + 8);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(many.rows) % 8, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(few.rows) % 8, 0u);
  EXPECT_EQ(log.bytes(), many.bytes() + few.bytes());
}

TEST(ProofLogTest, FieldSections) {
  ProofLog log;
  const ProofFieldSection s = log.OpenField(2, 5);
  EXPECT_EQ(s.S(kProofLeft), s.blocks + 5);
  EXPECT_EQ(s.T(kProofOwn), s.blocks + 10);
  EXPECT_EQ(s.Sum(kProofOwn), s.blocks + 20);
  EXPECT_EQ(s.Sum(kProofLeft), s.blocks + 22);
  EXPECT_GE(reinterpret_cast<uint8_t*>(s.ends), reinterpret_cast<uint8_t*>(s.blocks + 24));
  s.ends[0] = 2;
  s.ends[1] = 5;
  EXPECT_TRUE(log.field_sections().empty());
  log.CloseField(s);
  ASSERT_EQ(log.field_sections().size(), 1u);
  EXPECT_EQ(log.field_sections()[0].pairs, 5u);
  EXPECT_EQ(log.message_bytes(), 32u);
}

// Whatever a circuit left there.
TEST(ProofLogTest, WhatIsNotThereIsZero) {
  for (const size_t lanes : {1, 8, 13, 64, 65, 504, 511, 512}) {
    for (const size_t nodes : {1, 31, 32}) {
      ProofLog log;
      FillWithOnes(log.Open(Gadget::kSbox22, lanes));
      log.Clear();
      const ProofSection opened = log.Open(Gadget::kSbox22, lanes);
      FillWithOnes(opened);
      log.Close(opened, nodes);
      EXPECT_EQ(log.message_bytes(), nodes * 22 * ((lanes + 7) / 8));
      const ProofSection& s = log.sections()[0];
      for (const auto rows : {&ProofSection::Wires, &ProofSection::T}) {
        for (const int role : {0, 1}) {
          for (size_t i = 0; i < 32 * 22; ++i) {
            for (size_t lane = 0; lane < 8 * s.row; ++lane) {
              const int bit = (s.*rows)(role, 0)[i * s.row + lane / 8] >> lane % 8 & 1;
              ASSERT_EQ(bit, i / 22 < nodes && lane < lanes) << lanes << " lanes, row " << i;
            }
          }
        }
      }
    }
  }
}

// A section that is open stays where it is, with what is in it; the others' memory is used again.
TEST(ProofLogTest, OpenSectionsOutliveClear) {
  ProofLog log;
  const ProofSection kept = log.Open(Gadget::kSbox17, 512);
  FillWithOnes(kept);
  for (int i = 0; i < 40; ++i) log.Close(log.Open(Gadget::kSbox17, 512), 32);
  const ProofFieldSection field = log.OpenField(1, 1);
  EXPECT_EQ(log.sections().size(), 40u);
  log.Clear();
  EXPECT_TRUE(log.sections().empty());
  const size_t capacity = log.capacity();
  for (int i = 0; i < 40; ++i) {
    const ProofSection s = log.Open(Gadget::kSbox17, 512);
    EXPECT_NE(s.rows, kept.rows);
    std::memset(s.rows, 0, s.bytes());
    log.Close(s, 32);
  }
  EXPECT_EQ(log.capacity(), capacity);
  log.Close(kept, 32);
  EXPECT_EQ(log.sections().size(), 41u);
  EXPECT_EQ(log.sections()[40].rows, kept.rows);
  EXPECT_EQ(kept.rows[kept.bytes() - 1], 0xFF);
  field.ends[0] = 1;
  log.CloseField(field);
  log.Clear();
  EXPECT_EQ(log.bytes(), 0u);
}

// Batches of other kinds one after the other, in parts or whole.
TEST(ProofLogTest, KeepsItsMemory) {
  ProofLog log;
  const auto batch = [&](Gadget gadget, size_t lanes) {
    for (int i = 0; i < 50; ++i) log.Close(log.Open(gadget, lanes), 32);
    log.Clear();
  };
  batch(Gadget::kSbox22, 512);
  const size_t capacity = log.capacity();
  EXPECT_GE(capacity, 50u * 2 * 32 * 44 * 64);
  for (int i = 0; i < 3; ++i) {
    batch(Gadget::kSbox17, 512);
    batch(Gadget::kProducts7, 512);
    batch(Gadget::kSbox17, 1);
  }
  EXPECT_EQ(log.capacity(), capacity);
}

// After an error in the midst of a circuit.
TEST(ProofLogTest, ResetForgetsWhatIsOpenToo) {
  ProofLog log;
  log.Open(Gadget::kSbox17, 512);
  log.Close(log.Open(Gadget::kProducts1, 3), 4);
  EXPECT_EQ(log.message_bytes(), 4u);
  log.Reset();
  EXPECT_EQ(log.bytes(), 0u);
  EXPECT_EQ(log.message_bytes(), 0u);
  EXPECT_TRUE(log.sections().empty());
}

}  // namespace
}  // namespace mpckdc
