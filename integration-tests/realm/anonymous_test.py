# SPDX-License-Identifier: Apache-2.0
"""Anonymous tickets (RFC 8062): who has no key and no ticket gets one that says nobody, by which an
AS-REQ is armored (FAST), so that a password cannot be guessed from it."""

import hashlib

import pytest

import pkinit_ca
import radius
import realm as realm_module

NOBODY = 'WELLKNOWN/ANONYMOUS@WELLKNOWN:ANONYMOUS'
ENTRY = 'WELLKNOWN/ANONYMOUS'
SERVICE = 'host/www.example.com'
VAULT = 'host/vault.example.com'  # protected
CODE = '123456'
UNAVAILABLE = 'A service is not available'


class Pkinit:
    """A realm whose KDC has a certificate, and knows one-time passwords."""

    def __init__(self, folder, **options):
        authority = pkinit_ca.Authority(folder / 'pkinit', 'EXAMPLE.COM')
        extra = options.pop('extra_realm', {})
        self.live = realm_module.Realm(folder / 'realm', realm_module.Options(
            extra_realm={**authority.kdc_relations(), **extra},
            extra_libdefaults=authority.client_relations(),
            extra_database={'mpc_protect': VAULT}, **options))
        self.radius = radius.Server(self.live.dir / 'radius', accepted=CODE)

    def __enter__(self):
        self.live.create(self._offer_otp)
        self.live.add_service(SERVICE)
        return self.live

    def _offer_otp(self):
        with open(self.live.kdc_dir / 'kdc.conf', 'a') as conf:
            conf.write(f'[otp]\n    DEFAULT = {{\n        server = {self.live.dir / "radius"}\n'
                       '        strip_realm = true\n    }\n')
        self.radius.start()

    def __exit__(self, *_):
        self.live.stop()
        self.radius.stop()


@pytest.fixture(scope='module', params=['without PACs', 'with PACs'])
def live(request, tmp_path_factory):
    with Pkinit(tmp_path_factory.mktemp('anonymous'),
                disable_pac=request.param == 'without PACs') as made:
        made.add_service(ENTRY)
        yield made


def be_nobody(live, *flags, ccache='nobody', check=True):
    return live.run('kinit', '-n', *flags, f'@{live.name}', check=check,
                    env=live.with_ccache(ccache))


def armored(live, name, password, *flags, check=True):
    return live.kinit(name, password, '-T', f'FILE:{live.dir / "nobody"}', *flags, ccache='armored',
                      check=check)


def test_nobody_gets_a_ticket_that_says_so(live):
    be_nobody(live)
    listing = live.klist('-f', ccache='nobody').stdout
    assert f'Default principal: {NOBODY}' in listing
    assert f'krbtgt/{live.name}@{live.name}' in listing


def test_a_user_logs_in_behind_it(live, new_user):
    be_nobody(live)
    name, password = new_user(live)
    armored(live, name, password)
    live.kvno(SERVICE, ccache='armored')
    assert f'Default principal: {name}@' in live.klist(ccache='armored').stdout
    wrong = armored(live, name, 'wrong', check=False)
    assert wrong.returncode and 'Password incorrect' in wrong.stdout
    assert live.failed_attempts(name) == 1


def test_a_one_time_password_behind_it(live, new_user):
    be_nobody(live)
    name, _ = new_user(live)
    live.kadmin_local(f'setstr {name} otp []')
    live.admin('policy', name, '--gate', 'kdc-trusted')
    assert armored(live, name, '654321', check=False).returncode
    armored(live, name, CODE)
    live.kvno(SERVICE, ccache='armored')


def test_a_password_is_changed_behind_it(live, new_user):
    """kinit does it at once when the old one has expired."""
    be_nobody(live)
    name, password = new_user(live)
    live.kadmin_local(f'modprinc +needchange {name}')
    armored(live, name, f'{password}\nthe next one\nthe next one')
    live.kinit(name, 'the next one')


def test_nobody_gets_tickets_for_services(live):
    """Of one whose key is local, and of one whose key is on the servers, who seal its ticket out of
    nobody's."""
    be_nobody(live)
    live.kadmin_local(f'delprinc -force {VAULT}', check=False)
    live.kadmin_local(f'addprinc -randkey -e aes256-gcm:normal {VAULT}')
    live.kadmin_local(f'setstr {VAULT} session_enctypes aes256-cts')
    for service in (SERVICE, VAULT):
        live.kvno(service, ccache='nobody')
    log = (live.log_dir / 'p0-audit.jsonl').read_text()
    assert '"op":"REISSUE_TICKET"' in log


def test_nobody_is_no_administrator(live):
    live.kadmin_local('addprinc -pw "the administrator" root/admin')
    said = live.run('kadmin', '-n', '-q', 'getprinc root/admin', check=False).stdout
    assert 'Operation requires' in said and 'Principal: root' not in said


def test_a_user_with_a_key_is_not_anonymous(live, new_user):
    """The flag alone makes nobody of nobody."""
    name, password = new_user(live)
    said = live.kinit(name, password, '-n', ccache='flagged', check=False)
    assert said.returncode, said.stdout


def test_the_servers_know_whom_they_sealed_for(live):
    be_nobody(live)
    name = f'{ENTRY}@{live.name}'
    nobody = hashlib.sha256(b'mpc-kdc principal v1\0' + name.encode()).hexdigest()[:32]
    for party in range(3):
        log = (live.log_dir / f'p{party}-audit.jsonl').read_text()
        assert f'"op":"LOGIN","principal":"{nobody}"' in log


def test_not_without_the_entry(live):
    live.kadmin_local(f'delprinc -force {ENTRY}')
    assert 'not found in Kerberos database' in be_nobody(live, check=False).stdout
    live.add_service(ENTRY)
    be_nobody(live)


def test_as_armor_alone(tmp_path_factory, new_user):
    """restrict_anonymous_to_tgt: nobody's ticket is good as armor, and for nothing else. And what a
    stranger takes as nobody is his own source's share: users are not hindered."""
    quota = {'anonymous_logins': '1/min burst 4', 'principal_logins': 'unlimited',
             'principal_failures': 'unlimited', 'principal_reissues': 'unlimited'}
    with Pkinit(tmp_path_factory.mktemp('restricted'), quota=quota,
                extra_realm={'restrict_anonymous_to_tgt': True}) as live:
        live.add_service(ENTRY)
        be_nobody(live)
        refused = live.kvno(SERVICE, ccache='nobody', check=False)
        assert refused.returncode and 'policy rejects' in refused.stdout
        name, password = new_user(live)
        armored(live, name, password)
        replies = [be_nobody(live, ccache='more', check=False) for _ in range(8)]
        assert replies[0].returncode == 0
        assert replies[-1].returncode and UNAVAILABLE in replies[-1].stdout
        assert 'anonymous_logins' in (live.log_dir / 'kdc.log').read_text()
        armored(live, name, password)
        live.kinit(name, password)
