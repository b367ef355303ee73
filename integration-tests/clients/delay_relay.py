# SPDX-License-Identifier: Apache-2.0
"""A KDC that is far away, or slow: a relay in front of one that holds every answer back.

Requests pass at once, answers after `delay` seconds, by UDP and by TCP. Clients differ in what they
do meanwhile: wait, ask again, give up. The relay counts what they ask.
"""

import asyncio
import threading


class DelayRelay:
    """`with` it: a port for each transport of `targets` ({'udp': a port of the KDC on 127.0.0.1}),
    the same for all; 0 is any."""

    def __init__(self, targets, address='127.0.0.1', port=0):
        self.delay = 0.0
        self.requests = 0
        self.port = port
        self._targets = targets
        self._address = address
        self._loop = asyncio.new_event_loop()
        self._begun = threading.Event()
        self._broken = None
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self):
        self._thread.start()
        self._begun.wait()
        if self._broken:
            raise self._broken
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _serve(self):
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._open())
        except OSError as error:
            self._broken = error
        self._begun.set()
        if not self._broken:
            self._loop.run_forever()
            self._loop.run_until_complete(self._close())
        self._loop.close()

    async def _close(self):
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    async def _open(self):
        if 'tcp' in self._targets:
            server = await asyncio.start_server(self._connection, self._address, self.port)
            self.port = server.sockets[0].getsockname()[1]
        if 'udp' in self._targets:
            front, _ = await self._loop.create_datagram_endpoint(
                lambda: _Front(self), local_addr=(self._address, self.port))
            self.port = front.get_extra_info('sockname')[1]

    def later(self, function, *arguments):
        self._loop.call_later(self.delay, function, *arguments)

    # UDP ------------------------------------------------------------------------------------------

    def pass_on(self, front, request, client):
        """Each request by a socket of its own."""
        self.requests += 1
        self._loop.create_task(self._loop.create_datagram_endpoint(
            lambda: _Onward(self, front, request, client),
            remote_addr=('127.0.0.1', self._targets['udp'])))

    # TCP ------------------------------------------------------------------------------------------

    async def _connection(self, from_client, to_client):
        from_kdc, to_kdc = await asyncio.open_connection('127.0.0.1', self._targets['tcp'])
        try:
            await asyncio.gather(self._requests(from_client, to_kdc),
                                 self._answers(from_kdc, to_client))
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client has given up
        finally:
            to_kdc.close()
            to_client.close()

    async def _requests(self, from_client, to_kdc):
        """Whole requests, so that they can be counted."""
        while length := await from_client.read(4):
            length += await from_client.readexactly(4 - len(length))
            to_kdc.write(length + await from_client.readexactly(int.from_bytes(length, 'big')))
            self.requests += 1
        to_kdc.write_eof()

    async def _answers(self, from_kdc, to_client):
        """What comes is passed on later; the end of it too."""
        while data := await from_kdc.read(1 << 16):
            self.later(to_client.write, data)
        await asyncio.sleep(self.delay)
        to_client.write_eof()


class _Front(asyncio.DatagramProtocol):
    def __init__(self, relay):
        self.relay = relay

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, addr):
        self.relay.pass_on(self.transport, data, addr)


class _Onward(asyncio.DatagramProtocol):
    """One request to the KDC; its answer goes back by the door that it came in."""

    def __init__(self, relay, front, request, client):
        self.relay, self.front, self.request, self.client = relay, front, request, client

    def connection_made(self, transport):
        self.transport = transport
        transport.sendto(self.request)

    def datagram_received(self, data, addr):
        self.relay.later(self.front.sendto, data, self.client)
        self.transport.close()
