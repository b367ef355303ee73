# SPDX-License-Identifier: Apache-2.0
import struct

import login_trace
from login_trace import Message


def frame(kind, number, batch, size):
    return struct.pack('>BBHIII', 1, kind, number, 9, batch, size) + bytes(size + 16)


def test_frames_are_told_apart_and_a_cut_one_is_left_out():
    data = frame(4, 0, 0, 34) + frame(3, 7, 26, 100)
    assert list(login_trace.frames(data)) == [(4, 0, 0, 0, 66), (3, 7, 26, 66, 198)]
    assert len(list(login_trace.frames(data[:-1]))) == 1
    assert not list(login_trace.frames(b'\x17\x03\x03' + bytes(60)))    # TLS


def test_streams_are_joined_in_order_once_and_across_the_end_of_numbers():
    stream = login_trace.Stream()
    stream.parts = [(2**32 - 4, 10, b'abcd'), (4, 30, b'ij'), (0, 20, b'efgh'), (0, 25, b'efgh')]
    data, marks = stream.joined()
    assert data == b'abcdefghij'
    assert [login_trace.passed(marks, position) for position in (1, 5, 10, 11)] == [10, 20, 30, None]


def test_a_chain_counts_what_was_sent_after_something_came():
    job = Message('kdc', 'p0', 'job', 400, 0, 0, 10)
    stream = [Message('p0', 'p1', 'tables', 1000, 11 + i, 12 + i, 21 + i) for i in range(3)]
    answer = Message('p1', 'kdc', 'job', 300, 24, 24, 34)
    assert login_trace.chains([job, *stream, answer]) == [1, 2, 2, 2, 3]
    assert login_trace.chains([job, answer._replace(first=5)]) == [1, 1]
