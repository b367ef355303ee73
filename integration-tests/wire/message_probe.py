# SPDX-License-Identifier: Apache-2.0
"""How long a round's message takes, on a connection that was just busy and on one that was idle.

    message_probe.py serve ADDRESS PORT BUFFER_BYTES
    message_probe.py ask ADDRESS PORT BYTES IDLE_SECONDS BUFFER_BYTES

What servers do to each other between logins: nothing, then a batch's messages. Asks again and again
without a pause until the connection is warm, then pauses before each. Prints milliseconds from the
first byte's sending to the answer's coming, {"warm": [...], "after_idle": [...]}. BUFFER_BYTES 0
leaves the sockets' buffers to the kernel; a size has to be set before the connection is made, for
the window that TCP offers is limited by what it was then.
"""

import json
import socket
import struct
import sys
import time

WARM_UP, WARM, IDLE = 30, 10, 3
HEADER = struct.Struct('>I')    # bytes that follow
ANSWER = b'.'


def serve(address, port, buffer_bytes):
    with socket.socket() as listener:
        tune(listener, buffer_bytes)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen()
        print('ready', flush=True)
        connection, _ = listener.accept()
        with connection, connection.makefile('rb') as stream:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while header := stream.read(HEADER.size):
                stream.read(*HEADER.unpack(header))
                connection.sendall(ANSWER)


def ask(address, port, size, idle, buffer_bytes):
    with socket.socket() as connection:
        tune(connection, buffer_bytes)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.connect((address, port))
        message = HEADER.pack(size) + bytes(size)

        def milliseconds():
            begin = time.monotonic()
            connection.sendall(message)
            if connection.recv(1) != ANSWER:
                raise SystemExit('the other end went away')
            return 1e3 * (time.monotonic() - begin)

        for _ in range(WARM_UP):
            milliseconds()
        warm, after_idle = [milliseconds() for _ in range(WARM)], []
        for _ in range(IDLE):
            time.sleep(idle)
            after_idle.append(milliseconds())
    print(json.dumps({'warm': warm, 'after_idle': after_idle}))


def tune(connection, buffer_bytes):
    if buffer_bytes:
        for which in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            connection.setsockopt(socket.SOL_SOCKET, which, buffer_bytes)


if __name__ == '__main__':
    if sys.argv[1] == 'serve':
        serve(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        ask(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]), int(sys.argv[6]))
