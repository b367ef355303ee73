# SPDX-License-Identifier: Apache-2.0
"""Authentication indicators (RFC 8129): a ticket says how its user logged in, and a service may ask
for it. The servers make the checksums that protect what it says (RFC 7751's verifiers)."""

import subprocess

import pytest

import config_files
import daemon
import radius
import realm as realm_module

CODE, STRONG = '123456', 'strong'
PLAIN = 'host/plain.example.com'
STRICT = 'host/strict.example.com'  # wants the indicator
OTHER = 'host/other.example.com'    # wants another
RENEWABLE = ('-l', '1h', '-r', '5h')
REFUSED = 'KDC policy rejects request'


@pytest.fixture(scope='module', params=['without PACs', 'with PACs'])
def live(request, tmp_path_factory):
    made = realm_module.Realm(
        tmp_path_factory.mktemp('authind') / 'realm',
        realm_module.Options(disable_pac=request.param == 'without PACs'))
    server = radius.Server(made.dir / 'radius', accepted=CODE)

    def offer_otp():
        with open(made.kdc_dir / 'kdc.conf', 'a') as conf:
            conf.write(f'[otp]\n    DEFAULT = {{\n        server = {made.dir / "radius"}\n'
                       f'        strip_realm = true\n        indicator = {STRONG}\n    }}\n')
        server.start()
    try:
        made.create(offer_otp)
        for service, wanted in ((PLAIN, None), (STRICT, f'weak {STRONG}'), (OTHER, 'another')):
            made.add_service(service)
            if wanted:
                made.kadmin_local(f"setstr {service} require_auth '{wanted}'")
        made.enroll('armor', 'its password')
        made.kinit('armor', 'its password', ccache='armor')
        enroll_for_otp(made, 'alice')
        made.enroll('bob', 'a password')
        yield made
    finally:
        made.stop()
        server.stop()


def enroll_for_otp(live, name):
    live.enroll(name, 'a password that she never types')
    live.kadmin_local(f'setstr {name} otp []')
    live.admin('policy', name, '--gate', 'kdc-trusted')


def otp_login(live, *flags, name='alice', ccache='alice'):
    return live.kinit(name, CODE, '-T', f'FILE:{live.dir / "armor"}', *flags, ccache=ccache)


def expect_the_indicator(live, ccache='alice'):
    live.kvno(STRICT, ccache=ccache)
    refused = live.kvno(OTHER, ccache=ccache, check=False)
    assert refused.returncode and REFUSED in refused.stdout


def test_a_service_gets_what_it_asks_for(live):
    otp_login(live)
    live.kvno(PLAIN, ccache='alice')
    expect_the_indicator(live)


def test_a_password_is_no_indicator(live):
    live.kinit('bob', 'a password', ccache='bob')
    live.kvno(PLAIN, ccache='bob')
    refused = live.kvno(STRICT, ccache='bob', check=False)
    assert refused.returncode and REFUSED in refused.stdout
    assert 'HIGHER_AUTHENTICATION_REQUIRED' in (live.log_dir / 'kdc.log').read_text()


def test_tickets_made_from_it_keep_it(live):
    """Renewed and forwarded TGTs: each time the servers verify one checksum and make two."""
    otp_login(live, '-f', *RENEWABLE)
    for _ in range(2):
        live.run('kinit', '-R', env=live.with_ccache('alice'))
    expect_the_indicator(live)
    lines = [(live.log_dir / f'p{party}-audit.jsonl').read_text() for party in range(3)]
    assert all('"VERIFY_CHECKSUM"' in text and '"usage":64' in text.replace(' ', '')
               for text in lines)


def test_the_service_is_told(live):
    """gss-server, with its keytab and no KDC, checks the verifier under its own key."""
    keytab = live.dir / 'plain.keytab'
    live.kadmin_local(f'ktadd -norandkey -k {keytab} {PLAIN}')
    otp_login(live)
    live.kinit('bob', 'a password', ccache='bob')
    assert 'auth-indicators' not in seen_by_service(live, keytab, 'bob')
    said = seen_by_service(live, keytab, 'alice')
    assert 'auth-indicators' in said and STRONG.encode().hex() in said, said


def seen_by_service(live, keytab, ccache):
    port = daemon.free_ports(1)[0]
    service, host = PLAIN.split('/')
    server = subprocess.Popen(
        ['/usr/bin/gss-server', '-port', str(port), '-once', '-verbose', f'{service}@{host}'],
        env={**live.env, 'KRB5_KTNAME': f'FILE:{keytab}', 'KRB5RCACHENAME': 'none:'},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8', errors='replace')
    try:
        assert daemon.wait_until(lambda: port in daemon._listening_ports(server.pid), 10)
        live.run('/usr/bin/gss-client', '-port', port, '127.0.0.1', f'{service}@{host}', 'hello',
                 env=live.with_ccache(ccache))
        return server.communicate(timeout=20)[0]
    finally:
        server.kill()
        server.wait()


def test_kadmind_accepts_it(live):
    """Its key is on the servers too, and so is the verifier under it."""
    otp_login(live, '-S', 'kadmin/admin', ccache='for-kadmind')
    said = live.run('kadmin', '-c', f'FILE:{live.dir / "for-kadmind"}', '-q', 'getprinc alice')
    assert f'Principal: alice@{live.name}' in said.stdout


def test_another_realm_does_not_take_it(live, tmp_path):
    """Its servers verify the verifier under the key between the realms, which ours hold too, and
    its KDC believes no indicator but its own, as MIT's."""
    between, secret = f'krbtgt/OTHER.ORG@{live.name}', 'a secret of both realms'
    with realm_module.Realm(tmp_path / 'away', realm_module.Options(
            realm='OTHER.ORG', disable_pac=live.options.disable_pac)) as away:
        away.create()
        for one, other in ((live, away), (away, live)):
            with open(one.dir / 'krb5.conf', 'a') as file:
                file.write(config_files.profile({'realms': {other.name: {
                    'kdc': f'127.0.0.1:{other.ports.kdc}'}}}))
            one.kadmin_local(f"addprinc -pw '{secret}' -e aes256-gcm:normal {between}")
            one.kadmin_local(f'setstr {between} session_enctypes aes256-cts')
        for name in ('plain', 'strict'):
            away.add_service(f'host/{name}.other.org')
        away.kadmin_local(f'setstr host/strict.other.org require_auth {STRONG}')
        otp_login(live, ccache='traveller')
        live.kvno('host/plain.other.org@OTHER.ORG', ccache='traveller')
        refused = live.kvno('host/strict.other.org@OTHER.ORG', ccache='traveller', check=False)
        assert refused.returncode and REFUSED in refused.stdout


def test_krbtgts_next_key(live):
    """What was signed under the old key is good as long as that is, and goes on under the new."""
    otp_login(live, *RENEWABLE)
    live.admin('rotate-krbtgt')
    expect_the_indicator(live)
    live.run('kinit', '-R', env=live.with_ccache('alice'))
    expect_the_indicator(live)
    otp_login(live)
    expect_the_indicator(live)
