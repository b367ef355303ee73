# SPDX-License-Identifier: Apache-2.0
"""What stands between a realm and its LDAP server: a relay that counts requests and writes, and cuts the connection
at one of them, before the server has it or before the client has the answer."""

import socket
import threading

# LDAP's requests that write, by their tag: modify, add, delete, rename.
WRITES = {0x66: 'modify', 0x68: 'add', 0x4a: 'delete', 0x6c: 'rename'}
BEFORE, AFTER = 'before', 'after'


def message_length(data):
    """Of the LDAP message (a BER sequence) with which the data begins; None: not all of it is here."""
    if len(data) < 2:
        return None
    size, head = data[1], 2
    if size & 0x80:
        count = size & 0x7f
        if len(data) < 2 + count:
            return None
        size, head = int.from_bytes(data[2:2 + count], 'big'), 2 + count
    return head + size if len(data) >= head + size else None


def operation(message):
    """The tag of the request in a message, which follows its number."""
    head = 2 + (message[1] & 0x7f if message[1] & 0x80 else 0)
    return message[head + 2 + message[head + 1]]


class LdapRelay:
    """`with` it. cut(number, when, stay_down) arms it for the next writes: the `number`-th one, from
    0, ends its connection, and with `stay_down` all that come until lift()."""

    def __init__(self, target_port):
        self._target = ('127.0.0.1', target_port)
        self._front = socket.create_server(('127.0.0.1', 0))
        self._front.settimeout(0.1)
        self.port = self._front.getsockname()[1]
        self.uri = f'ldap://127.0.0.1:{self.port}'
        self.requests = 0
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._open = set()
        self.lift()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def lift(self):
        with self._lock:
            self.writes, self.was_cut, self._down = [], False, False
            self._number, self._when, self._stay_down = None, BEFORE, False

    def cut(self, number, when, stay_down=False):
        self.lift()
        with self._lock:
            self._number, self._when, self._stay_down = number, when, stay_down

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()
        self._front.close()
        self._end_all()

    def _serve(self):
        while not self._ended.is_set():
            try:
                client, _ = self._front.accept()
            except socket.timeout:
                continue
            if self._down:
                client.close()
                continue
            try:
                server = socket.create_connection(self._target)
            except OSError:
                client.close()
                continue
            with self._lock:
                self._open |= {client, server}
            cutting = threading.Event()
            for source, target, pump in ((client, server, self._requests),
                                         (server, client, self._answers)):
                threading.Thread(target=pump, args=(source, target, cutting), daemon=True).start()

    def _requests(self, client, server, cutting):
        data = b''
        try:
            while part := client.recv(1 << 16):
                data += part
                while (length := message_length(data)) is not None:
                    message, data = data[:length], data[length:]
                    with self._lock:
                        self.requests += 1
                    if self._is_last(operation(message)):
                        if self._when == BEFORE:
                            break
                        cutting.set()
                    server.sendall(message)
                else:
                    continue
                break
        except OSError:
            pass
        self._end(client, server)

    def _answers(self, server, client, cutting):
        """A connection that is being cut ends when the answer is here."""
        try:
            while part := server.recv(1 << 16):
                if cutting.is_set():
                    break
                client.sendall(part)
        except OSError:
            pass
        self._end(client, server)

    def _is_last(self, tag):
        with self._lock:
            if tag not in WRITES:
                return False
            self.writes.append(WRITES[tag])
            if len(self.writes) - 1 != self._number:
                return False
            self.was_cut, self._down = True, self._stay_down
        return True

    def _end(self, *sockets):
        for one in sockets:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()
        with self._lock:
            self._open -= set(sockets)
        if self._down:
            self._end_all()

    def _end_all(self):
        with self._lock:
            rest, self._open = self._open, set()
        for one in rest:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()
