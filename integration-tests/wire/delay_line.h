// SPDX-License-Identifier: Apache-2.0
//
// Packets on their way through a wire of a fixed length: each is delivered a fixed time after it
// came, and a receiver's port carries no more than its rate.
//
//     came            left the port of the receiver        delivered
//      |--- waits ----|--- wire bytes * 8 / rate ---|------- delay ------|
//
// Packets to one receiver leave in the order in which they came, so that a queue per receiver is
// sorted by time and only its head has to be looked at.
//
// Memory: all of it at the beginning. A packet lies in a slot until it is delivered; the queues
// hold the slots' numbers. The slot that was freed last is the next to be used: a line that is
// nearly empty works in the cache, and slots that were never needed have no pages.
//
//     slab     | slot 0 | slot 1 | slot 2 | ...         kSlotBytes each
//     free     [ 7 2 5 ... ]                            a stack
//     queue 0  [ . . 0 6 . . ]                          a ring per receiver, of as many as slots
//     queue 1  [ 1 3 4 . . . ]
//
// Times are nanoseconds of any clock that only rises; the caller passes them in.
#ifndef INTEGRATION_TESTS_WIRE_DELAY_LINE_H_
#define INTEGRATION_TESTS_WIRE_DELAY_LINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"

namespace mpckdc::wire {

// The largest packet with its offload header is 65,535 + 10 bytes; whole pages.
inline constexpr size_t kSlotBytes = 17 * 4096;
inline constexpr int64_t kNever = INT64_MAX;

class DelayLine {
 public:
  struct Options {
    int ports = 3;
    int64_t delay_ns = 0;
    double bits_per_second = 0;  // of each receiver's port; 0: no limit
    size_t slots = 4096;
  };
  struct Packet {
    absl::Span<const uint8_t> bytes;
    int to = 0;
    int64_t due = 0;
  };

  explicit DelayLine(const Options& options);

  // Where the next packet may be written; empty when all slots are taken.
  absl::Span<uint8_t> Room();
  // The first `size` bytes of Room() came at `now` for port `to`. `wire_bytes` is what they occupy
  // on a cable, with everything that a network card adds.
  void Send(int to, size_t size, size_t wire_bytes, int64_t now);

  // When the next packet is due; kNever: there is none.
  int64_t NextDue() const;
  // Calls deliver(Packet) for each that is due at `now`, the earliest first.
  template <typename F>
  void Deliver(int64_t now, F deliver) {
    for (int port = Earliest(); port >= 0 && Head(port).due <= now; port = Earliest()) {
      deliver(Head(port));
      Pop(port);
    }
  }

  size_t in_flight() const { return in_flight_; }
  size_t most_in_flight() const { return most_in_flight_; }
  // The longest that a packet waited because the receiver's port was busy.
  int64_t longest_wait_ns() const { return longest_wait_ns_; }

 private:
  struct Queue {
    std::vector<uint32_t> ring;
    size_t head = 0, size = 0;
    int64_t port_free_at = INT64_MIN;
  };
  struct Slot {
    size_t size = 0;
    int64_t due = 0;
  };

  int Earliest() const;  // the port whose head is due first, or -1
  Packet Head(int port) const;
  void Pop(int port);

  const Options options_;
  std::unique_ptr<uint8_t[]> slab_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  std::vector<Queue> queues_;
  size_t in_flight_ = 0, most_in_flight_ = 0;
  int64_t longest_wait_ns_ = 0;
};

}  // namespace mpckdc::wire

#endif  // INTEGRATION_TESTS_WIRE_DELAY_LINE_H_
