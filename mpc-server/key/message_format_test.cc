// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/key/message_format.h"

#include "gtest/gtest.h"

namespace mpckdc {
namespace {

std::string Message(const std::string& header, size_t ciphertext) {
  return std::string(12, 'n') + static_cast<char>(header.size()) + header +
         std::string(ciphertext, 'c') + std::string(16, 't');
}

TEST(MessageFormat, TakesApart) {
  const std::string message = Message("head", 21);
  const auto view = ParseMessage(message);
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(view->nonce[11], 'n');
  EXPECT_EQ(view->header, "head");
  EXPECT_EQ(view->ciphertext, std::string(21, 'c'));
  EXPECT_EQ(view->PlaintextBytes(), 5u);
  EXPECT_EQ(view->tag[0], 't');
}

TEST(MessageFormat, EveryTruncationIsRefusedOrShorter) {
  const std::string message = Message("", 16);
  EXPECT_TRUE(ParseMessage(message).has_value());
  for (size_t size = 0; size < message.size(); ++size) {
    EXPECT_FALSE(ParseMessage(message.substr(0, size)).has_value()) << size;
  }
}

TEST(MessageFormat, HeaderLengthBeyondTheMessageIsRefused) {
  std::string message = Message("", 40);
  message[12] = '\xff';
  EXPECT_FALSE(ParseMessage(message).has_value());
}

TEST(MessageFormat, ChecksumHasOneLength) {
  EXPECT_TRUE(ParseChecksum(std::string(28, 'x')).has_value());
  EXPECT_FALSE(ParseChecksum(std::string(27, 'x')).has_value());
  EXPECT_FALSE(ParseChecksum(std::string(29, 'x')).has_value());
}

TEST(MessageFormat, CounterBlocks) {
  Nonce nonce;
  nonce.fill(7);
  const auto block = CounterBlock(nonce, 0x01020304);
  EXPECT_EQ(block[11], 7);
  EXPECT_EQ(block[12], 1);
  EXPECT_EQ(block[15], 4);
}

}  // namespace
}  // namespace mpckdc
