# SPDX-License-Identifier: Apache-2.0
"""Several KDCs of one directory, and a directory that is away, stands still, refuses, or is cut off amid a write."""

import concurrent.futures
import contextlib
import os
import signal

import pytest

import config_files
import daemon
import ldap_realm
import ldap_relay
import long_tests
import slapd
from ldap_realm import UNAVAILABLE, can_log_in, handles, keys_in_use

pytestmark = pytest.mark.skipif(bool(slapd.missing()), reason=slapd.missing() or 'can run')


@pytest.fixture(scope='module')
def live(tmp_path_factory):
    with ldap_realm.running(tmp_path_factory.mktemp('ldap-outage')) as live:
        yield live


@pytest.fixture(autouse=True)
def healthy_after(live):
    yield
    ldap_realm.agree_again(live)


# Lockout ----------------------------------------------------------------------------------------

@contextlib.contextmanager
def another_kdc(live, uri):
    """A krb5kdc of the realm, as on another machine, with its LDAP server; its clients' environment."""
    port = daemon.free_ports(1)[0]
    text = (live.kdc_dir / 'kdc.conf').read_text()
    profile = live.kdc_dir / 'kdc2.conf'
    profile.write_text(text.replace(f'127.0.0.1:{live.ports.kdc}\n', f'127.0.0.1:{port}\n')
                       .replace('kdc.log', 'kdc2.log').replace(live.relay.uri, uri))
    second = daemon.Daemon('krb5kdc2', [config_files.krb5_program('krb5kdc'), '-n'],
                           {**live.env, 'KRB5_KDC_PROFILE': str(profile)}, live.run_dir,
                           live.log_dir)
    second.start()
    try:
        assert daemon.wait_until(lambda: second.listens_on(port), 30), second.log_tail()
        yield live.krb5_conf_through(port)
    finally:
        second.stop()


@pytest.fixture
def second_kdc(live):
    with another_kdc(live, live.directory.uri) as environment:
        yield environment


def test_lockout_is_shared_by_two_kdcs(live, second_kdc):
    live.kadmin_local('addpol -maxfailure 3 -failurecountinterval 1h -lockoutduration 1h strict')
    live.kadmin_local('addprinc -pw right -policy strict lea')
    for where in (None, second_kdc):
        live.kinit('lea', 'right', env=where)
    assert 'krbLastSuccessfulAuth' in live.entry('lea', 'krbLastSuccessfulAuth')
    for where in (None, second_kdc, None):
        said = live.kinit('lea', 'wrong', check=False, env=where).stdout
        assert 'Password incorrect' in said, said
    count = live.entry('lea', 'krbLoginFailedCount')['krbLoginFailedCount']
    assert count == [b'3'] and live.failed_attempts('lea') == 3
    for where in (None, second_kdc):
        assert 'revoked' in live.kinit('lea', 'right', check=False, env=where).stdout
    live.kadmin_local('modprinc -unlock lea')
    for where in (None, second_kdc):
        live.kinit('lea', 'right', env=where)
    assert live.failed_attempts('lea') == 0


def test_a_kdc_on_a_consumer_of_a_replication(live, tmp_path):
    """It serves what was replicated, also while the provider is away, and counts nothing."""
    consumer = slapd.Slapd(tmp_path / 'consumer', copied=live.directory)
    live.kadmin_local('addprinc -pw first ron')

    def contents(directory):
        return sorted((entry['dn'], sorted(entry.get('krbPrincipalKey', ())))
                      for entry in directory.search('krbPrincipalKey'))

    def replicated():
        return contents(consumer) == contents(live.directory)
    consumer.start()
    try:
        assert daemon.wait_until(replicated, 30)
        with another_kdc(live, consumer.uri) as there:
            live.kinit('ron', 'first', env=there)
            live.kadmin_local('cpw -pw second ron')
            assert daemon.wait_until(replicated, 30)
            live.kinit('ron', 'second', env=there)
            said = live.kinit('ron', 'wrong', env=there, check=False).stdout
            assert 'Password incorrect' in said, said
            live.directory.kill()
            live.kinit('ron', 'second', env=there)
            live.directory.start()
    finally:
        consumer.stop()
    assert live.failed_attempts('ron') == 0


# Outages ----------------------------------------------------------------------------------------

def test_slapd_is_killed_and_comes_back(live):
    """An outage is no wrong password, for a user or for kadmin; nobody is restarted but slapd."""
    live.kadmin_local('addprinc -pw first mia')
    live.enroll('head/admin', 'of head')
    live.kinit('mia', 'first')
    before = keys_in_use(live)
    live.directory.kill()
    said = live.kinit('mia', 'first', check=False).stdout
    assert UNAVAILABLE in said, said
    said = live.kinit('mia', 'wrong', check=False).stdout
    assert UNAVAILABLE in said, said
    said = live.kadmin_local('addprinc -pw first max', check=False)
    assert said.returncode and "Can't contact LDAP server" in said.stdout, said.stdout
    assert keys_in_use(live) == before
    live.directory.start()
    live.kinit('mia', 'first')
    assert live.failed_attempts('mia') == 0
    said = live.kadmin('cpw -pw second mia', 'head/admin', 'of head').stdout
    assert 'changed' in said, said
    live.kinit('mia', 'second')


def test_krb5kdc_is_started_while_slapd_is_away(live):
    """As a stock one it says so and ends: who started it must do so again."""
    live.directory.kill()
    starting = another_kdc(live, live.directory.uri)
    with pytest.raises(AssertionError):
        starting.__enter__()
    said = (live.log_dir / 'kdc2.log').read_text()
    assert "Cannot bind to LDAP server" in said and "Can't contact LDAP server" in said, said
    live.directory.start()
    live.kadmin_local('addprinc -pw first una')
    with another_kdc(live, live.directory.uri) as environment:
        live.kinit('una', 'first', env=environment)


def test_slapd_stands_still_for_a_while(live):
    live.kadmin_local('addprinc -pw first mona')
    live.kinit('mona', 'first')
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        live.directory.server.send_signal(signal.SIGSTOP)
        try:
            login = pool.submit(live.kinit, 'mona', 'first', check=False)
            with pytest.raises(concurrent.futures.TimeoutError):
                login.result(3)
        finally:
            live.directory.server.send_signal(signal.SIGCONT)
        assert login.result().returncode == 0, login.result().stdout
    assert live.failed_attempts('mona') == 0


def test_a_directory_that_is_read_only(live):
    """As a consumer of a replication is: users log in, changes are refused and leave nothing."""
    live.kadmin_local('addprinc -pw first nat')
    before = keys_in_use(live)
    live.directory.set_read_only(True)
    live.kinit('nat', 'first')
    assert not can_log_in(live, 'nat', 'wrong')
    for query in ('cpw -pw second nat', 'addprinc -pw first ned', 'delprinc -force nat'):
        said = live.kadmin_local(query, check=False)
        assert said.returncode and 'unwilling to perform' in said.stdout, said.stdout
    live.directory.set_read_only(False)
    live.kinit('nat', 'first')
    assert keys_in_use(live) == before


def test_a_wrong_password_of_the_service(live):
    """It names the account, and krb5kdc does not start; whoever runs is not disturbed."""
    live.stash_passwords({**slapd.PASSWORDS, slapd.KADMIND: 'forgotten'})
    try:
        said = live.kadmin_local('getprinc K/M', check=False)
        assert said.returncode and slapd.KADMIND in said.stdout and 'Invalid' in said.stdout
    finally:
        live.stash_passwords()
    live.kadmin_local('getprinc K/M')


def descriptors(process):
    return len(os.listdir(f'/proc/{process.pid()}/fd'))


def test_the_directory_refuses_krb5kdcs_account(live):
    """Each request is an outage that asks again, and leaves no connection behind (patch 36)."""
    live.kadmin_local('addprinc -pw first ora')
    live.kinit('ora', 'first')
    before = descriptors(live.kdc)
    change = f'dn: {slapd.KDC}\nchangetype: modify\nreplace: userPassword\nuserPassword: %s\n'
    live.directory.modify(change % 'another')
    live.directory.kill()
    live.directory.start()
    for _ in range(2):  # kinit asks some five times
        said = live.kinit('ora', 'first', check=False).stdout
        assert UNAVAILABLE in said, said
    assert (live.log_dir / 'kdc.log').read_text().count('Invalid credentials') > 5
    assert descriptors(live.kdc) <= before
    live.directory.modify(change % slapd.PASSWORDS[slapd.KDC])
    live.kinit('ora', 'first')
    assert live.failed_attempts('ora') == 0


# Connections that end in the middle of a write ----------------------------------------------------

def cut_each_write(live, when, stay_down, prepare, run, check):
    """Runs an operation with its connection to slapd cut at its first write, its second and so on
    until one goes through; returns how many writes it has."""
    for number in range(9):
        name = f'cut{next(_names)}'
        prepare(name)
        live.relay.cut(number, when, stay_down)
        done = run(name).returncode == 0
        was_cut = live.relay.was_cut
        live.relay.lift()
        live.admin('doctor')  # nothing that the directory names is lost
        assert done or was_cut
        # A lost answer is looked for: what was stored is done.
        assert done == (not was_cut or (when == ldap_relay.AFTER and not stay_down)), name
        check(name, done)
        live.admin('doctor', '--fix')  # and nothing that it names is thought to be superfluous
        daemon.wait_until(lambda: False, 1.2)  # the grace time
        live.admin('gc', '--collect')
        check(name, done)
        if not was_cut:
            return number
    raise AssertionError('an operation without end')


_names = iter(range(1000))
CUTS = [(ldap_relay.BEFORE, False), (ldap_relay.AFTER, False),
        (ldap_relay.BEFORE, True), (ldap_relay.AFTER, True)]
SOME_CUTS = [cut if cut == (ldap_relay.AFTER, False) else pytest.param(*cut, marks=long_tests.LONG)
             for cut in CUTS]


@pytest.mark.parametrize('when, stay_down', SOME_CUTS)
def test_addprinc_is_cut(live, when, stay_down):
    def check(name, done):
        stored = live.entry(name) is not None
        assert stored or not done
        assert can_log_in(live, name, 'first') == stored
        assert stored == (done or when == ldap_relay.AFTER)
    assert cut_each_write(live, when, stay_down, lambda name: None,
                          lambda name: live.kadmin_local(f'addprinc -pw first {name}', check=False),
                          check) == 1


@pytest.mark.parametrize('when, stay_down', SOME_CUTS)
def test_cpw_is_cut(live, when, stay_down):
    def check(name, done):
        new = done or when == ldap_relay.AFTER
        assert can_log_in(live, name, 'second') == new
        assert can_log_in(live, name, 'first') != new
    assert cut_each_write(live, when, stay_down,
                          lambda name: live.kadmin_local(f'addprinc -pw first {name}'),
                          lambda name: live.kadmin_local(f'cpw -pw second {name}', check=False),
                          check) == 1


@pytest.mark.parametrize('when, stay_down', SOME_CUTS)
def test_delprinc_is_cut(live, when, stay_down):
    def check(name, done):
        gone = done or when == ldap_relay.AFTER
        assert (live.entry(name) is None) == gone
        assert can_log_in(live, name, 'first') != gone
        assert (keys_in_use(live, name) == set()) or not done
    assert cut_each_write(live, when, stay_down,
                          lambda name: live.kadmin_local(f'addprinc -pw first {name}'),
                          lambda name: live.kadmin_local(f'delprinc -force {name}', check=False),
                          check) == 1


@pytest.mark.parametrize('when, stay_down', SOME_CUTS)
def test_ktadd_is_cut(live, when, stay_down):
    """A keytab that was not written is written by the same command again, as in any realm."""
    keytab = live.dir / 'cut.keytab'
    live.kadmin_local('addprinc -pw secret asker', check=False)

    def ktadd(name):
        keytab.unlink(missing_ok=True)
        return live.kadmin_local(f'ktadd -k {keytab} host/{name}.example.com', check=False)

    def check(name, done):
        if not done:
            assert ktadd(name).returncode == 0
        live.kinit('asker', 'secret', ccache='asker')  # no ticket of an older key
        live.kvno(f'host/{name}.example.com', '-k', keytab, ccache='asker')
    assert cut_each_write(
        live, when, stay_down,
        lambda name: live.kadmin_local(f'addprinc -randkey host/{name}.example.com'), ktadd,
        check) >= 1


@long_tests.LONG
def test_enrolment_is_cut(live):
    """mpc-admin: the principal has its keys, old or new, or is not there, and the same again works."""
    for when, stay_down in CUTS:
        for number in range(3):
            name = f'cut{next(_names)}'
            live.relay.cut(number, when, stay_down)
            live.enroll(name, 'first', check=False)
            was_cut = live.relay.was_cut
            live.relay.lift()
            live.admin('doctor')
            if live.entry(name) and handles(live, name):
                live.kinit(name, 'first')
            live.enroll(name, 'second', '--replace')
            live.kinit(name, 'second')
            live.admin('doctor', '--fix')
            live.kinit(name, 'second')
            if not was_cut:
                break
