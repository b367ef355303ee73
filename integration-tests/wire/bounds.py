# SPDX-License-Identifier: Apache-2.0
"""What a line allows at most, and how near to it a measurement came.

    one batch of N blocks:      R messages, one after the other, of together N * B bytes per party

    latency bound               R * d          d: one way. Every message has to arrive before the
                                               next round, however small it is
    rate bound                  N * B / r      r: the TCP payload that the line carries
    both                        max of the two: chunks of a batch that overlap can hide one behind
                                the other, nothing can make it less. Without overlap: their sum

r is less than the line's own rate: each frame of 1,538 bytes on the cable carries 1,448 of TCP's.
"""

import lines

# Messages of one AES, one after the other: mpc-server/doc/protocol.md. A batch whose chunks are not
# all under way at once takes a multiple of it; that is its own fault and not the line's.
ROUNDS = {('throughput', 128): 40, ('latency', 128): 30,
          ('throughput', 256): 56, ('latency', 256): 42}

TCP_SHARE = ((lines.MTU - lines.TCP_HEADERS) / (lines.MTU + lines.ETHERNET_BYTES))


def rate_bound(mbit, bytes_per_block):
    """Blocks per second."""
    return mbit * 1e6 * TCP_SHARE / (8 * bytes_per_block)


def latency_bound_ms(rounds, one_way_ms):
    return rounds * one_way_ms


def batch_bound_ms(blocks, mbit, bytes_per_block, rounds, one_way_ms):
    return max(latency_bound_ms(rounds, one_way_ms),
               1e3 * blocks / rate_bound(mbit, bytes_per_block))


def share_of_line(blocks_per_s, bytes_per_block, mbit):
    """The protocol's messages with their frame headers against the line's rate."""
    return blocks_per_s * bytes_per_block * 8 / (mbit * 1e6)
