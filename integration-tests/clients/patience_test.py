# SPDX-License-Identifier: Apache-2.0
"""The measurement of patience finds out what a client of known patience does; and Debian's kinit
waits and asks again as `make clients CLIENTS=--patience` says."""

import socket
import time

import pytest

import adapter
import mit
import patience
import stock_answers
from client_lab import Answer

DELAYS = (100, 300, 1000)  # ms
WAITS = 0.6                # seconds: 300 ms is in time on a busy machine, too


class Known(adapter.Client):
    """Sends a login so many times, and waits a while after each."""
    name = 'Known'

    def __init__(self, tries):
        self.tries = tries

    def login(self, case):
        request = stock_answers.with_timestamp(case.lab, case.user).encode()
        with socket.socket(type=socket.SOCK_DGRAM) as client:
            client.connect(('127.0.0.1', case.port))
            client.settimeout(WAITS)
            for _ in range(self.tries):
                client.send(request)
                try:
                    client.recv(1 << 16)
                    return Answer(True)
                except socket.timeout:
                    pass
        return Answer(False, 'nobody answers')


def test_one_that_gives_up_is_found(stock):
    found = patience.measure(Known(1), stock, 'udp', DELAYS)
    assert (found.longest, found.retries, found.asks_again_at) == (300, 0, None)
    assert found.failure.delay == 1000 and 'nobody answers' in found.failure.text


def test_one_that_asks_again_is_found(stock):
    found = patience.measure(Known(3), stock, 'udp', DELAYS)
    assert (found.longest, found.retries, found.asks_again_at) == (1000, 1, 1000)
    assert found.failure is None


@pytest.mark.parametrize('transport', ['udp', 'tcp'])
def test_debians_kinit_waits(stock, transport):
    """Two answers, each late. After a second by UDP it asks again, by TCP."""
    started = time.monotonic()
    found = patience.measure(mit.Mit(), stock, transport, (500, 1500))
    logins = {login.delay: login for login in found.logins}
    assert found.failure is None and logins[0].requests == 2
    assert time.monotonic() - started >= patience.ATTEMPTS * 2 * (0.5 + 1.5)
    assert (logins[1500].requests > 2) == (transport == 'udp')


def test_its_part_of_the_document():
    one = patience.Patience('Hasty', 'tcp', [patience.Login(0, True, 2), patience.Login(
        50, True, 3), patience.Login(100, False, 4, 'no | patience')])
    section = patience.section([one], {'Hasty': 'Hasty 1.0'})
    assert '| Hasty | TCP | 50 ms | 1 | 50 ms | 100 ms: no / patience |' in section
    document = '# Matrix\n\nrows\n'
    once = patience.with_section(document, section)
    assert patience.with_section(once, section) == once and once.startswith('# Matrix\n\nrows\n\n')
    assert patience.section_in(once) == section and patience.section_in(document) == ''
    assert patience.with_section(document, '') == document
