# SPDX-License-Identifier: Apache-2.0
"""What stands between clients and a KDC: a relay of datagrams on the loopback interface."""

import socket
import threading


class UdpRelay:
    """`with` it: a port that passes requests on to another, and the replies back. The other sees
    them come from the address `source`."""

    def __init__(self, target_port, source='127.0.0.1'):
        self.datagrams = []  # all that passed, requests and replies
        self._target = ('127.0.0.1', target_port)
        self._source = (source, 0)
        self._front = socket.socket(type=socket.SOCK_DGRAM)
        self._front.bind(('127.0.0.1', 0))
        self._front.settimeout(0.1)
        self.port = self._front.getsockname()[1]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def answer(self, request, reply):
        """What the client is told instead of the reply; None: it is lost."""
        return reply

    def redirect(self, target_port):
        """From now on requests go there."""
        self._target = ('127.0.0.1', target_port)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()
        self._front.close()

    def _serve(self):
        while not self._ended.is_set():
            try:
                request, client = self._front.recvfrom(1 << 16)
            except socket.timeout:
                continue
            self.datagrams.append(request)
            with socket.socket(type=socket.SOCK_DGRAM) as onward:
                onward.bind(self._source)
                onward.settimeout(10)
                onward.sendto(request, self._target)
                try:
                    reply = onward.recv(1 << 16)
                except OSError:
                    continue
            self.datagrams.append(reply)
            told = self.answer(request, reply)
            if told is not None:
                self._front.sendto(told, client)
