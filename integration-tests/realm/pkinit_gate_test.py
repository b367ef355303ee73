# SPDX-License-Identifier: Apache-2.0
"""Logins by certificate (PKINIT) that the servers verify by themselves: stock kinit, the gates pkinit
and timestamp-or-pkinit, and servers that believe less than the KDC does."""

import signal

import pytest

import daemon
import pkinit_ca
import realm as realm_module

SERVICE = 'host/www.example.com'
REALM = realm_module.Options().realm
PASSWORD = 'a first password'


@pytest.fixture(scope='module')
def authority(tmp_path_factory):
    return pkinit_ca.Authority(tmp_path_factory.mktemp('pkinit') / 'clients', REALM)


@pytest.fixture(scope='module')
def live(tmp_path_factory, authority):
    """The KDC believes another authority, too (and kinit, which verifies what it sends): the servers do
    not."""
    foreign = pkinit_ca.Authority(authority.dir.parent / 'foreign', REALM)
    relations = authority.kdc_relations()
    both = authority.dir / 'both.pem'
    both.write_text(authority.anchor.read_text() + foreign.anchor.read_text())
    relations['pkinit_anchors'] = f'FILE:{both}'
    options = realm_module.Options(
        extra_realm=relations, extra_libdefaults={'pkinit_anchors': f'FILE:{both}'},
        extra_server=f'[pkinit]\nanchors = "{authority.dir / "servers.pem"}"\n')
    (authority.dir / 'servers.pem').write_text(authority.anchor.read_text())
    with realm_module.Realm(tmp_path_factory.mktemp('pkinit-realm') / 'realm', options) as made:
        made.foreign = foreign
        made.create()
        made.add_service(SERVICE)
        yield made


def by_certificate(live, authority, name, *flags, ccache=None):
    """kinit that has nothing but the certificate: it is asked for a password in vain."""
    return live.run('kinit', '-X', authority.identity(name), *flags, name, check=False,
                    env=live.with_ccache(ccache))


def by_password(live, name, password=PASSWORD):
    return live.kinit(name, password, check=False)


def audited(live, text, party=0):
    return text in (live.log_dir / f'p{party}-audit.jsonl').read_text()


def expect_refusal(live, result, why):
    """By the servers, which say why, and as no wrong password."""
    assert result.returncode, result.stdout
    assert daemon.wait_until(lambda: all(audited(live, why, party) for party in range(3)), 10), why


@pytest.fixture
def user(live, new_user):
    """A name, enrolled, with gate pkinit."""
    name, _ = new_user(live, PASSWORD)
    live.admin('policy', name, '--gate', 'pkinit')
    return name


def test_the_default_gate_takes_no_certificate(live, authority, new_user):
    name, _ = new_user(live, PASSWORD)
    refused = by_certificate(live, authority, name)
    expect_refusal(live, refused, f'gate of {name}@{REALM} is timestamp')
    assert by_password(live, name).returncode == 0
    assert live.failed_attempts(name) == 0


def test_a_login_by_certificate(live, authority, user):
    accepted = by_certificate(live, authority, user)
    assert accepted.returncode == 0, accepted.stdout
    live.kvno(SERVICE)
    assert f'krbtgt/{REALM}' in live.klist().stdout
    again = by_certificate(live, authority, user)
    assert again.returncode == 0, again.stdout


def test_the_password_is_no_proof_then(live, authority, user):
    refused = by_password(live, user)
    expect_refusal(live, refused, f'gate of {user}@{REALM} is pkinit and the job has no certificate')
    live.admin('policy', user, '--gate', 'timestamp-or-pkinit')
    assert by_password(live, user).returncode == 0
    assert by_certificate(live, authority, user).returncode == 0
    assert 'timestamp-or-pkinit' in live.admin('policy', user).stdout


def test_a_user_without_a_password(live, authority):
    """Keys that the servers drew, which nobody has: they only say who the user is."""
    live.admin('randkey', 'nopassword')
    live.admin('policy', 'nopassword', '--gate', 'pkinit')
    accepted = by_certificate(live, authority, 'nopassword')
    assert accepted.returncode == 0, accepted.stdout
    live.kvno(SERVICE)


def test_a_ticket_for_another_service(live, authority, user):
    accepted = by_certificate(live, authority, user, '-S', 'kadmin/changepw')
    assert accepted.returncode == 0, accepted.stdout
    assert 'kadmin/changepw' in live.klist().stdout


def test_behind_armor(live, authority, user, new_user):
    """The body that is signed is the one inside of the armor."""
    name, password = new_user(live, PASSWORD)
    live.kinit(name, password, ccache='armor')
    accepted = by_certificate(live, authority, user, '-T', f'FILE:{live.dir / "armor"}')
    assert accepted.returncode == 0, accepted.stdout


def test_what_the_kdc_alone_believes(live, user):
    """Its anchors are in kdc.conf, which an intruder can write."""
    refused = by_certificate(live, live.foreign, user)
    expect_refusal(live, refused, 'is not good here')
    assert live.failed_attempts(user) == 0


def test_one_server_that_does_not_believe_is_enough(live, authority, user):
    (live.dir / 'alone.pem').write_text(live.foreign.anchor.read_text())
    anchors = str(authority.dir / 'servers.pem')
    live.change_config(1, anchors, str(live.dir / 'alone.pem'))
    live.restart_server(1)
    live.wait_for_servers()
    try:
        assert by_certificate(live, authority, user).returncode
    finally:
        live.change_config(1, str(live.dir / 'alone.pem'), anchors)
        live.restart_server(1)
        live.wait_for_servers()
    assert daemon.wait_until(
        lambda: by_certificate(live, authority, user).returncode == 0, 20, pause=0.5)


def test_new_anchors_count_from_sighup_on(live, authority, user):
    """As when an authority is no longer to be believed."""
    servers_pem = authority.dir / 'servers.pem'

    def believe(text):
        servers_pem.write_text(text)
        for server in live.servers:
            server.send_signal(signal.SIGHUP)
    try:
        believe(live.foreign.anchor.read_text())
        assert daemon.wait_until(
            lambda: by_certificate(live, authority, user).returncode != 0, 20, pause=0.3)
        believe('damaged')  # what is in force stays
        assert by_certificate(live, live.foreign, user).returncode == 0
    finally:
        believe(authority.anchor.read_text())
    assert daemon.wait_until(
        lambda: by_certificate(live, authority, user).returncode == 0, 20, pause=0.3)


def test_without_anchors_the_servers_say_what_to_set(new_realm, authority, new_user):
    """A realm whose KDC knows PKINIT and whose servers do not."""
    other = new_realm(extra_realm=authority.kdc_relations(),
                      extra_libdefaults=authority.client_relations())
    name, _ = new_user(other, PASSWORD)
    other.admin('policy', name, '--gate', 'pkinit')
    expect_refusal(other, by_certificate(other, authority, name), 'set [pkinit] anchors')
    other.admin('policy', name, '--gate', 'kdc-trusted')
    assert by_certificate(other, authority, name).returncode == 0, 'as it was before'
