# SPDX-License-Identifier: Apache-2.0
"""A RADIUS server (RFC 2865) on a local stream socket that accepts one password: enough for OTP."""

import hashlib
import socketserver
import struct
import threading

_REQUEST, _ACCEPT, _REJECT, _PASSWORD = 1, 2, 3, 2
_SECRET = b''  # krb5kdc's default for a local socket


def _attributes(data):
    at = 0
    while at + 2 <= len(data):
        kind, size = data[at], data[at + 1]
        yield kind, data[at + 2:at + size]
        at += max(size, 2)


def _reveal(hidden, authenticator):
    plain, previous = b'', authenticator
    for at in range(0, len(hidden), 16):
        block = hidden[at:at + 16]
        mask = hashlib.md5(_SECRET + previous).digest()
        plain += bytes(a ^ b for a, b in zip(block, mask))
        previous = block
    return plain.rstrip(b'\0')


class _Handler(socketserver.StreamRequestHandler):
    def handle(self):
        while len(head := self.rfile.read(20)) == 20:
            code, identifier, size = struct.unpack('>BBH', head[:4])
            body = self.rfile.read(size - 20)
            if code == _REQUEST:
                self.wfile.write(self._answer(identifier, head[4:], body))

    def _answer(self, identifier, authenticator, body):
        given = [_reveal(value, authenticator) for kind, value in _attributes(body)
                 if kind == _PASSWORD]
        code = _ACCEPT if given == [self.server.accepted] else _REJECT
        head = struct.pack('>BBH', code, identifier, 20)
        return head + hashlib.md5(head + authenticator + _SECRET).digest()


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def __init__(self, path, accepted):
        self._path = path
        self.accepted = accepted.encode()

    def start(self):
        super().__init__(str(self._path), _Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def stop(self):
        if getattr(self, 'socket', None):
            self.shutdown()
            self.server_close()
