# SPDX-License-Identifier: Apache-2.0
"""login-storm against a stock KDC: what it counts is what happened, and it sees what is wrong."""

import contextlib
import functools
import re
import signal
import sys
import threading
import time

import pytest

import daemon
import storm
import udp_relay
from storm import PASSWORD, SERVICE, USERS, make_keytab, user_name

@pytest.fixture
def logins(stock):
    """logins(*arguments): of users by a pattern of names."""
    return functools.partial(
        storm.logins, stock, '--users', 'user%04d', '--number', USERS, '--password-file',
        stock.dir / 'password', '--enctype', 'aes128-cts')


def tickets_issued(realm, kind):
    return len(re.findall(rf'{kind} .* ISSUE:', (realm.log_dir / 'kdc.log').read_text()))


@pytest.mark.parametrize('enctype', ['aes128-cts', 'aes256-cts', 'aes128-sha2', 'aes256-sha2'])
def test_counts_are_the_kdcs_own(stock, logins, enctype):
    before = tickets_issued(stock, 'AS_REQ')
    done = logins('--number', 4, '--password-file', '-', '--enctype', enctype, '--count', 120,
                  stdin=(stock.dir / 'password').read_text())
    assert done.report['logins']['ok'] == done.report['logins']['decrypted'] == 120
    assert tickets_issued(stock, 'AS_REQ') - before == 120


@pytest.mark.parametrize('transport', [[], ['--tcp']])
def test_two_steps_and_service_tickets(stock, logins, transport):
    before = tickets_issued(stock, 'TGS_REQ')
    done = logins(*transport, '--two-step', '--tgs', 2, '--service', SERVICE, '--count', 40,
                  '--threads', 2)
    assert done.report['logins']['ok'] == 40
    assert done.report['tickets'] == 80
    assert tickets_issued(stock, 'TGS_REQ') - before == 80
    counts = {phase: latency['count'] for phase, latency in done.report['latency_ms'].items()}
    assert counts == {'login': 40, 'as_first': 40, 'as': 40, 'tgs': 80}


def test_a_sample_is_decrypted(logins):
    done = logins('--check', '10%', '--count', 200)
    assert done.report['logins']['ok'] == 200
    assert done.report['logins']['decrypted'] == 20


def test_keytab_and_csv(stock):
    keytab = make_keytab(stock, 'storm.keytab', [user_name(0), user_name(1)], PASSWORD,
                         'aes256-cts')
    done = storm.logins(stock, '--keytab', keytab, '--enctype', 'aes256-cts', '--count', 10)
    assert done.report['logins']['ok'] == 10 and done.report['setup']['users'] == 2
    csv = stock.dir / 'storm.csv'
    csv.write_text(f'# who,password\n{user_name(2)},{PASSWORD}\n')
    done = storm.logins(stock, '--csv', csv, '--enctype', 'aes128-cts', '--count', 10)
    assert done.report['logins']['ok'] == 10


def test_wrong_passwords_are_expected_errors(logins):
    done = logins('--wrong-passwords', '30%', '--count', 200)
    counts = done.report['logins']
    assert counts['failed'] == 0 and 30 < counts['refused'] < 90
    assert done.report['errors'] == {'KDC_ERR_PREAUTH_FAILED': {
        'code': 24, 'expected': counts['refused'], 'unexpected': 0}}


@pytest.mark.parametrize('line, error, code', [
    (f'{user_name(3)},the password of last year', 'KDC_ERR_PREAUTH_FAILED', 24),
    ('nobody,x', 'KDC_ERR_C_PRINCIPAL_UNKNOWN', 6)])
def test_what_is_refused_without_a_wrong_password_is_no_expected_error(stock, line, error, code):
    csv = stock.dir / 'refused.csv'
    csv.write_text(line + '\n')
    done = storm.logins(stock, '--csv', csv, '--enctype', 'aes128-cts', '--count', 5,
                        '--fail-if', 'failed>0', status=1)
    assert done.report['errors'] == {error: {'code': code, 'expected': 0, 'unexpected': 5}}


@pytest.mark.parametrize('transport', [[], ['--tcp']])
def test_no_kdc_is_losses_and_resends(logins, transport):
    port = daemon.free_ports(1)[0]
    done = logins(*transport, '--kdc', f'127.0.0.1:{port}', '--count', 8, '--resend-after', '50ms',
                  '--resends', 2, '--fail-if', 'loss>50%', status=1)
    assert done.report['logins']['lost'] == 8
    assert done.report['resends'] == 16
    assert done.report['unreachable'] >= 8
    assert 0.35 <= done.report['seconds'] < 5  # 50 + 100 + 200 ms


def test_a_kdc_that_sleeps_loses_nothing(stock):
    keytab = make_keytab(stock, 'sleep.keytab', [user_name(i) for i in range(USERS)],
                         PASSWORD, 'aes128-cts')  # keys that need no time
    stock.kdc.send_signal(signal.SIGSTOP)
    threading.Timer(1.2, stock.kdc.send_signal, [signal.SIGCONT]).start()
    done = storm.logins(stock, '--keytab', keytab, '--enctype', 'aes128-cts', '--count', 100,
                        '--resend-after', '200ms', '--resends', 5)
    assert done.report['logins']['ok'] == 100
    assert done.report['resends'] >= 16
    assert done.report['latency_ms']['login']['max'] > 300


def test_what_an_overload_leaves_queued_harms_nobody(stock, logins):
    """The KDC answers requests that were given up; the next run must not meet these answers."""
    stock.kdc.send_signal(signal.SIGSTOP)
    threading.Timer(2, stock.kdc.send_signal, [signal.SIGCONT]).start()
    done = logins('--rate', 1000, '--duration', '1500ms', '--resend-after', '20ms', '--resends', 6,
                  '--fail-if', 'lost>0', status=None)
    assert done.report['logins']['wrong_answers'] == 0 and done.report['resends'] > 500
    done = logins('--count', 300)
    assert done.report['logins']['ok'] == 300 and done.report['late'] == 0


def test_open_loop_counts_who_was_due(logins):
    done = logins('--rate', 200, '--duration', '1s', '--warm-up', '200ms')
    assert 140 < done.report['logins']['started'] < 260  # four deviations of a Poisson process
    assert done.report['setup']['loop'] == 'open'


@contextlib.contextmanager
def asleep(process):
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def test_open_loop_beyond_what_may_be_in_flight_is_shed(stock, logins):
    with asleep(stock.kdc):
        done = logins('--rate', 500, '--duration', '400ms', '--in-flight', 10, '--resend-after',
                      '100ms', '--resends', 0, '--fail-if', 'shed>0', status=1)
    assert done.report['logins']['shed'] > 0
    assert done.report['logins']['lost'] == done.report['logins']['started'] >= 10


def test_ramp(logins):
    done = logins('--rate', 30, '--ramp', 60, '--ramp-steps', 3, '--duration', '600ms',
                  '--knee-p99', '5s')
    steps = done.report['ramp']
    assert [step['rate'] for step in steps] == [30, 45, 60][:len(steps)]
    assert done.report['knee_per_s'] == pytest.approx(
        max([step['ok_per_s'] for step in steps if step['kept_up']], default=0))


def test_a_ramp_ends_where_the_kdc_falls_behind(stock, logins):
    with asleep(stock.kdc):
        done = logins('--rate', 100, '--ramp', 1000, '--duration', '300ms', '--resend-after',
                      '100ms', '--resends', 0)
    assert len(done.report['ramp']) == 1 and not done.report['ramp'][0]['kept_up']
    assert done.report['knee_per_s'] == 0


def test_time_and_cpu_of_a_run(stock, logins):
    begun = time.monotonic()
    done = logins('--duration', '1s', '--pid', f'kdc={stock.kdc.pid()}', '--fail-if',
                  'cpu.kdc>100s', '--fail-if', 'tool-cpu>100ms')
    assert 0 < done.report['cpu']['seconds_per_1000_logins']['kdc'] < 100
    assert 0 < done.report['cpu']['tool_seconds_per_login'] < 0.1
    assert 1 <= done.report['seconds'] < 1.5
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize('limit,status', [
    ('p99>60s', 0), ('p99>1us', 1), ('rate<1', 0), ('rate<100000000', 1), ('loss>0%', 0),
    ('p99>250', 2), ('p98>1s', 2), ('cpu.kdc>1s', 2)])
def test_thresholds(logins, limit, status):
    done = logins('--count', 10, '--fail-if', 'lost>0', '--fail-if', limit, status=status)
    if status == 2:
        assert limit in done.errors and done.report is None
    else:
        assert done.report['limits'][1] == {'limit': limit, 'exceeded': status == 1}


def log_lines(file):
    lines = [line.split() for line in file.read_text().splitlines()]
    return [(float(due), float(ms), end, int(code), int(sends), user)
            for due, ms, end, code, sends, user in lines]


@pytest.mark.parametrize('threads', [1, 2])
def test_every_login_is_in_the_log(stock, logins, threads):
    file = stock.dir / 'logins.log'
    before = time.time()
    done = logins('--count', 60, '--threads', threads, '--wrong-passwords', '30%', '--log', file)
    lines = log_lines(file)
    ends = [end for _, _, end, _, _, _ in lines]
    counts = done.report['logins']
    assert (ends.count('ok'), ends.count('refused')) == (counts['ok'], counts['refused'])
    assert len(lines) == 60 and {user for *_, user in lines} <= {user_name(i) for i in range(USERS)}
    assert all(before - 1 < due < time.time() for due, *_ in lines)
    assert max(ms for _, ms, end, *_ in lines if end == 'ok') == pytest.approx(
        done.report['latency_ms']['login']['max'], abs=0.01)
    assert {code for _, _, end, code, *_ in lines if end == 'refused'} == {24}


def test_lost_logins_are_in_the_log(stock, logins):
    file = stock.dir / 'lost.log'
    logins('--kdc', f'127.0.0.1:{daemon.free_ports(1)[0]}', '--count', 4, '--resend-after', '50ms',
           '--resends', 1, '--log', file)
    assert [(end, code, sends) for _, _, end, code, sends, _ in log_lines(file)] == [
        ('lost', 0, 2)] * 4


def test_ctrl_c_ends_a_run_with_its_report(stock):
    begun = time.monotonic()
    done = storm.logins(
        stock, '--users', 'user%04d', '--number', 2, '--password-file', stock.dir / 'password',
        '--enctype', 'aes128-cts', '--rate', 50, '--duration', '10m',
        prefix=['timeout', '--foreground', '--preserve-status', '--signal=INT', '1.5'])
    assert time.monotonic() - begun < 30
    assert 0.5 < done.report['seconds'] < 5
    assert done.report['logins']['ok'] == done.report['logins']['started'] > 10


@pytest.mark.parametrize('suffix,magic', [('png', b'\x89PNG'), ('svg', b'<?xml')])
def test_plots(stock, logins, suffix, magic):
    file = stock.dir / f'plot.{suffix}'
    done = logins('--count', 50, '--plot', file)
    assert file.read_bytes().startswith(magic)


# Refusing ---------------------------------------------------------------------------------------

@pytest.mark.parametrize('kdc, why', [
    ('192.0.2.1:88', '--i-own-this-kdc'), ('10.1.2.3:88', '--i-own-this-kdc'),
    ('[2001:db8::1]:88', '--i-own-this-kdc'), ('localhost:88', 'numeric')])
def test_foreign_addresses_and_names_are_refused(logins, kdc, why):
    done = logins('--kdc', kdc, '--count', 1, status=2)
    assert why in done.errors and done.report is None


def test_a_tests_namespace_is_not_foreign(logins):
    if not storm.may_make_namespaces():
        pytest.skip('needs root and unshare --net')
    done = logins('--kdc', '192.0.2.1:88', '--count', 1, prefix=['unshare', '--net'], status=2)
    # Nothing is there, and no route: but it may try.
    assert 'unreachable' in done.errors and '--i-own-this-kdc' not in done.errors


# A KDC that lies --------------------------------------------------------------------------------

class LyingKdc(udp_relay.UdpRelay):
    """Stands before the KDC and answers every request with the first ticket that it saw for that
    user: a right reply to another request."""

    def __init__(self, kdc_port):
        super().__init__(kdc_port)
        self._first = {}

    def answer(self, request, reply):
        return self._first.setdefault(re.search(rb'user\d{4}', request).group(), reply)


def test_a_reply_to_another_request_is_a_wrong_answer(stock, logins):
    with LyingKdc(stock.ports.kdc) as liar:
        done = logins('--number', 2, '--kdc', f'127.0.0.1:{liar.port}', '--count', 10,
                      '--in-flight', 1, status=3)
    assert done.report['logins']['ok'] == 2  # the first of each is right
    assert done.report['logins']['wrong_answers'] == 8
    assert 'another nonce' in done.report['complaints'][0]


# A terminal ---------------------------------------------------------------------------------------

TERMINAL = [sys.executable, '-c', 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)']


@pytest.mark.parametrize('prefix', [[], TERMINAL])
def test_progress_is_for_terminals_only(logins, prefix):
    done = logins('--duration', '1300ms', prefix=prefix)
    assert ('in flight' in done.output + done.errors) == (prefix is TERMINAL)
