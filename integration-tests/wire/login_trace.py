# SPDX-License-Identifier: Apache-2.0
"""Every message between the servers and the KDC during one login on a line, with its times.

    login_trace.py [--line far | --line MS:MBIT] [--type NAME] [--warm-up N] [--idle S]
                   [--engine 'KEY = VALUE'] [--slow-start-after-idle]

Prints for each message when its first and its last byte left and when it was there, in milliseconds
since the KDC's job left, and how many messages lie one behind the other: `chain` is the longest row
of messages so far of which each was sent after the one before it had come.

The headers of frames between servers are in the clear (frame_format.h), and each frame is a record of
its own (AES-GCM records only). Of the KDC's connections only the size of what passes is known.
"""

import argparse
import collections
import contextlib
import pathlib
import socket
import struct
import subprocess
import sys
import time

FRAME = struct.Struct('>BBHIII')    # version, type, round, session, batch, payload bytes
TAG_BYTES = 16                      # behind the payload
AGREEMENT, ROUND = 4, 3             # frame types
JOB_BYTES = 80                      # of TLS: less is what HTTP/2 says to itself
RECORD = struct.Struct('>qBI')      # nanoseconds, type of packet, bytes
OUTGOING = 4                        # type of packet (PACKET_OUTGOING)
ALL_PROTOCOLS, SO_TIMESTAMPNS = 3, 35
CAPTURE_BYTES = 64 << 20

Message = collections.namedtuple('Message', 'source target what bytes first last received')


# In each namespace ------------------------------------------------------------------------------

def capture(device, path):
    """Until it is killed."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ALL_PROTOCOLS)) as tap, \
            open(path, 'wb', buffering=0) as out:
        tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, CAPTURE_BYTES)
        tap.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        tap.bind((device, 0))
        print('ready', flush=True)
        while True:
            data, extra, _, address = tap.recvmsg(1 << 16, 256)
            seconds, nanoseconds = struct.unpack('qq', extra[0][2][:16])
            out.write(RECORD.pack(seconds * 10**9 + nanoseconds, address[2], len(data)) + data)


@contextlib.contextmanager
def captured(wire, folder):
    """Yields {host: file}, which are complete at the end."""
    with contextlib.ExitStack() as stack:
        files = {host: folder / f'{host}.packets' for host in wire.hosts}
        for host, file in files.items():
            argv = [sys.executable, __file__, 'capture', wire.line.device, file]
            process = stack.enter_context(
                subprocess.Popen(wire.place(host).argv(argv), stdout=subprocess.PIPE))
            stack.callback(process.kill)
            process.stdout.readline()
        yield files
        time.sleep(0.5)


# What was captured ------------------------------------------------------------------------------

def packets(data):
    """(time, outgoing, bytes of IP)"""
    at = 0
    while at + RECORD.size <= len(data):
        when, kind, size = RECORD.unpack_from(data, at)
        at += RECORD.size
        yield when, kind == OUTGOING, data[at:at + size]
        at += size


def segment(packet):
    """((source, port, target, port), sequence number, payload) of TCP, or None."""
    header = (packet[0] & 15) * 4
    if packet[0] >> 4 != 4 or packet[9] != socket.IPPROTO_TCP:
        return None
    source, target = (socket.inet_ntoa(packet[i:i + 4]) for i in (12, 16))
    port, to_port, sequence, _, offset = struct.unpack_from('>HHIIB', packet, header)
    payload = packet[header + (offset >> 4) * 4:struct.unpack_from('>H', packet, 2)[0]]
    return (source, port, target, to_port), sequence, payload


class Stream:
    """One direction of a connection as one host saw it: bytes, and when they passed."""

    def __init__(self):
        self.parts = []     # (sequence number, time, bytes)

    def joined(self):
        """(bytes, [(end, time)]) up to the first gap."""
        data, marks = bytearray(), []
        start = self.parts[0][0]
        for sequence, when, payload in sorted(self.parts, key=lambda p: (p[0] - start) % 2**32):
            at = (sequence - start) % 2**32
            if at > len(data):
                break
            data += payload[len(data) - at:]
            marks.append((len(data), when))
        return bytes(data), marks


def passed(marks, position):
    return next((when for end, when in marks if end >= position), None)


def frames(data):
    """(type, round, batch, begin, end) of each whole frame; data begins with one."""
    at = 0
    while at + FRAME.size <= len(data):
        version, kind, number, _, batch, size = FRAME.unpack_from(data, at)
        if version != 1 or not 1 <= kind <= 7:
            return
        end = at + FRAME.size + size + TAG_BYTES
        if end > len(data):
            return
        yield kind, number, batch, at, end
        at = end


def messages(files, addresses, peer_ports):
    """All that passed between the hosts, by the time at which it left."""
    sent, came = collections.defaultdict(Stream), collections.defaultdict(Stream)
    for file in files.values():
        for when, outgoing, packet in packets(file.read_bytes()):
            found = segment(packet)
            if found and found[2]:
                (sent if outgoing else came)[found[0]].parts.append((found[1], when, found[2]))
    names = {address: host for host, address in addresses.items()}
    result = []
    for key in sent.keys() & came.keys():
        source, target = names[key[0]], names[key[2]]
        if key[1] in peer_ports or key[3] in peer_ports:
            result += peer_messages(source, target, sent[key], came[key])
        elif 'kdc' in (source, target):
            result += [Message(source, target, 'job', len(payload), when, when, received)
                       for (_, when, payload), (_, received, _)
                       in zip(sent[key].parts, came[key].parts) if len(payload) >= JOB_BYTES]
    return sorted(result, key=lambda message: message.first)


def peer_messages(source, target, sent, came):
    (data, left), (_, arrived) = sent.joined(), came.joined()
    for kind, number, batch, begin, end in frames(data):
        what = f'batch {batch} round {number}' if kind == ROUND else 'agreement'
        if kind in (ROUND, AGREEMENT):
            yield Message(source, target, what, end - begin - FRAME.size - TAG_BYTES,
                          passed(left, begin + 1), passed(left, end), passed(arrived, end))


def chains(login):
    """For each message the longest row of messages that ends with it."""
    depth, arrivals, result = collections.Counter(), [], []
    for message in login:
        for arrival in sorted(a for a in arrivals if a[0] <= message.first):
            depth[arrival[1]] = max(depth[arrival[1]], arrival[2])
            arrivals.remove(arrival)
        result.append(depth[message.source] + 1)
        if message.received is not None:
            arrivals.append((message.received, message.target, result[-1]))
    return result


def of_login(found):
    """From the KDC's first job on, without what came before it."""
    start = next(message.first for message in found if message.source == 'kdc')
    return start, [message for message in found if message.first >= start]


def show(found):
    start, login = of_login(found)

    def ms(when):
        return '      - ' if when is None else f'{(when - start) / 1e6:8.1f}'
    print('     sent    until    there  chain')
    for message, chain in zip(login, chains(login)):
        print(f'{ms(message.first)} {ms(message.last)} {ms(message.received)} {chain:6}  '
              f'{message.source} > {message.target} {message.what}, {message.bytes:,} bytes')


# ------------------------------------------------------------------------------------------------

def main():
    import bench_distance
    import distance
    import lines
    arguments = parse_arguments(bench_distance)
    chosen = (bench_distance.LINES.get(arguments.line) or bench_distance.line(arguments.line))
    folder = lines.BUILD / 'bench'
    folder.mkdir(parents=True, exist_ok=True)
    kernel = lines.Kernel(slow_start_after_idle=arguments.slow_start_after_idle)
    load = distance.Load((arguments.type,), engine='\n'.join(arguments.engine))
    with chosen.wire(kernel) as wire, distance.running_realm(
            wire, load, folder / 'distance-realm') as live:
        if arguments.warm_up:
            distance.log_in(live, arguments.type, arguments.warm_up)
        time.sleep(arguments.idle)
        with captured(wire, live.dir) as files:
            login = distance.log_in(live, arguments.type, 1)
        found = messages(files, {host: wire.place(host).address for host in wire.hosts},
                         set(live.ports.peers))
    print(f'{arguments.type} on {chosen.name}: {distance.in_ms(login["p50"])} ms '
          f'{login["failures"] or ""}')
    show(found)


def parse_arguments(bench_distance):
    parser = argparse.ArgumentParser(description='the messages of one login on a line')
    parser.add_argument('--line', default='far',
                        help=f'MS:MBIT, or of {", ".join(bench_distance.LINES)} one with a delay')
    parser.add_argument('--type', default='aes256-cts')
    parser.add_argument('--warm-up', type=int, default=6, help='logins before it')
    parser.add_argument('--idle', type=float, default=3, help='seconds after them')
    parser.add_argument('--engine', action='append', default=[], metavar='KEY = VALUE')
    parser.add_argument('--slow-start-after-idle', action='store_true')
    return parser.parse_args()


if __name__ == '__main__':
    if sys.argv[1:2] == ['capture']:
        capture(sys.argv[2], pathlib.Path(sys.argv[3]))
    else:
        main()
