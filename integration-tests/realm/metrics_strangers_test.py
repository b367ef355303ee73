# SPDX-License-Identifier: Apache-2.0
"""Strangers at the port of a server's metrics: the collector is served all the same."""

import socket
import time
import urllib.error
import urllib.request

import pytest

import daemon
import realm as realm_module
import strangers

SOON = 3     # seconds
HALF = b'GET /metrics HTTP/1.1\r\nHost: x\r\nX: ' + b'a' * 500  # of a request that never ends
ASKS = b'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n'  # and does not read the answer


@pytest.fixture(scope='module')
def live(tmp_path_factory):
    options = realm_module.Options(metrics=tuple(daemon.free_ports(3)))
    with realm_module.Realm(tmp_path_factory.mktemp('metrics') / 'realm', options) as made:
        yield made.create()


def scrape(live, path='/metrics'):
    """The seconds that it takes, and the page."""
    began = time.monotonic()
    with urllib.request.urlopen(f'http://127.0.0.1:{live.options.metrics[0]}{path}', timeout=20) as page:
        text = page.read().decode()
    return time.monotonic() - began, text


def test_the_page(live):
    def connected():
        return '\nmpckdc_state{what="peers_connected"} 1\n' in scrape(live)[1]
    assert daemon.wait_until(connected, 20, 0.3), scrape(live)[1]
    with pytest.raises(urllib.error.HTTPError, match='404'):
        scrape(live, '/metricsx')


@pytest.mark.parametrize('said', [b'', HALF, ASKS], ids=['nothing', 'half', 'asks'])
def test_one_who_stays(live, said):
    with socket.create_connection(('127.0.0.1', live.options.metrics[0])) as stranger:
        stranger.sendall(said)
        time.sleep(0.3)
        took, text = scrape(live)
        assert took < SOON and 'mpckdc_state' in text


def test_who_says_too_much_is_refused(live):
    with socket.create_connection(('127.0.0.1', live.options.metrics[0])) as stranger:
        stranger.settimeout(20)
        try:
            stranger.sendall(HALF * 100)
            assert stranger.makefile('rb').read().startswith(b'HTTP/1.1 431')
        except ConnectionError:
            pass  # it was closed before all was said


@pytest.mark.parametrize('said', [b'', HALF, ASKS], ids=['nothing', 'half', 'asks'])
def test_a_crowd(live, said):
    with strangers.Strangers(live.options.metrics[0], per_second=3 * strangers.PER_SECOND, addresses=3,
                             first=said):
        time.sleep(2)
        for _ in range(5):
            took, text = scrape(live)
            assert took < SOON and 'mpckdc_state' in text
