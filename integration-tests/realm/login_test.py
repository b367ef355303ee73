# SPDX-License-Identifier: Apache-2.0
"""What users do: log in, get tickets, renew them, change passwords; and what they are refused."""

import subprocess

import pytest

import config_files

SERVICE = 'host/www.example.com'
REVOKED = 'credentials have been revoked'
WRONG = 'Password incorrect'


@pytest.fixture(scope='module')
def live(shared_realm):
    shared_realm.add_service(SERVICE)
    return shared_realm


def test_login_and_service_ticket(live, user):
    live.kinit(*user)
    assert f'{SERVICE}@{live.name}: kvno = 1' in live.kvno(SERVICE).stdout
    listing = live.klist('-e').stdout
    tgt, service = listing.split('krbtgt/')[1].split(SERVICE)
    assert 'aes256-cts' in tgt.split('(skey, tkt):')[1].split(',')[0], 'session key is standard'
    assert 'gcm' not in tgt + service, 'an enctype that stock clients do not know'
    log = (live.log_dir / 'kdc.log').read_text()
    issued = [line for line in log.splitlines() if 'ISSUE' in line and f'{user[0]}@' in line]
    assert ['tkt=aes256-gcm(-24002)' in line for line in issued] == [True, False], issued


def test_login_with_the_128_bit_type(live, user):
    live.kadmin_local(f'cpw -e aes128-gcm:normal -pw other {user[0]}')
    live.kinit(user[0], 'other')
    live.kvno(SERVICE)


def test_wrong_password_is_refused_and_counted(live, user):
    name, password = user
    refused = live.kinit(name, password + 'x', check=False)
    assert refused.returncode and WRONG in refused.stdout
    assert live.failed_attempts(name) == 1
    live.kinit(name, password)
    assert live.failed_attempts(name) == 0


def test_lockout(live, user):
    name, password = user
    live.kadmin_local('addpol -maxfailure 2 -failurecountinterval 1h -lockoutduration 1h lockout')
    live.kadmin_local(f'modprinc -policy lockout {name}')
    for _ in range(2):
        assert WRONG in live.kinit(name, 'no', check=False).stdout
    assert REVOKED in live.kinit(name, password, check=False).stdout
    live.kadmin_local(f'modprinc -unlock {name}')
    live.kinit(name, password)


def test_renewal(live, user):
    live.kinit(*user, '-r', '2d')
    live.run('kinit', '-R')
    live.run('kinit', '-R')
    assert 'renew until' in live.klist().stdout
    live.kvno(SERVICE)


def test_flags(live, user):
    live.kinit(*user, '-f', '-p')
    flags = live.klist('-f').stdout.split('Flags: ')[1].split()[0]
    assert 'F' in flags and 'P' in flags and 'A' in flags, flags
    live.kvno(SERVICE)


def test_forwarded_tgt(live, user):
    """A TGT made from a TGT: MIT's test program fetches one and stores it."""
    tests = config_files.KRB5_TREE / 'tests'
    subprocess.run(['make', '-s', '-C', tests, 'forward'], check=True, stdout=subprocess.DEVNULL,
                   env={key: value for key, value in live.env.items() if 'LIBRARY' not in key})
    live.kinit(*user, '-f')
    live.run(str(tests / 'forward'))
    flags = live.klist('-f').stdout.split('Flags: ')[1].split()[0]
    assert 'f' in flags, flags
    live.kvno(SERVICE)


def test_user_to_user(live, user, new_user):
    other = new_user(live)
    live.kinit(*other, ccache='other')
    live.kinit(*user)
    assert other[0] in live.kvno(other[0], '--u2u', f'FILE:{live.dir / "other"}').stdout


def kpasswd(live, name, *answers, ccache='none', check=True):
    """kpasswd armors its request with the ticket in its ccache, if there is one."""
    return live.run('kpasswd', name, stdin='\n'.join(answers) + '\n', check=check,
                    env=live.with_ccache(ccache))


def test_changed_password(live, user):
    name, password = user
    kpasswd(live, name, password, 'a second password', 'a second password')
    assert WRONG in live.kinit(name, password, check=False).stdout
    live.kinit(name, 'a second password')


def test_changed_password_with_a_ticket_in_hand(live, user):
    name, password = user
    live.kinit(name, password, ccache='in-hand')
    kpasswd(live, name, password, 'a second password', 'a second password', ccache='in-hand')
    live.kinit(name, 'a second password')


def test_kpasswd_with_a_wrong_password(live, user):
    name, password = user
    refused = kpasswd(live, name, 'no', 'new', 'new', check=False)
    assert refused.returncode and 'Preauthentication failed' in refused.stdout
    live.kinit(name, password)


def test_expired_password(live, user):
    name, password = user
    live.kadmin_local(f'modprinc -pwexpire yesterday {name}')
    live.run('kinit', name, stdin=f'{password}\nfresh one\nfresh one\n')
    live.kinit(name, 'fresh one')


def test_locked_principal(live, user):
    live.kadmin_local(f'modprinc -allow_tix {user[0]}')
    assert REVOKED in live.kinit(*user, check=False).stdout
    live.kadmin_local(f'modprinc +allow_tix {user[0]}')
    live.kinit(*user)


def test_expired_principal(live, user):
    live.kadmin_local(f'modprinc -expire yesterday {user[0]}')
    assert 'expired' in live.kinit(*user, check=False).stdout


def asked_for_preauth(live, name, password):
    return 'Encrypted timestamp' in trace(
        live, lambda more: live.kinit(name, password, env=more))


def test_without_the_preauth_flag_the_servers_still_ask(live, user):
    """The KDB's flag alone opens nothing: the gate is the servers', and krb5kdc asks for them."""
    name, password = user
    live.kadmin_local(f'modprinc -requires_preauth {name}')
    assert asked_for_preauth(live, name, password)
    assert 'Password incorrect' in live.kinit(name, 'wrong', check=False).stdout
    assert live.failed_attempts(name) == 1
    assert asked_for_preauth(live, name, password)
    assert live.failed_attempts(name) == 0, 'a success was not counted'


def test_a_gate_that_does_not_ask(live, user):
    name, password = user
    live.kadmin_local(f'modprinc -requires_preauth {name}')
    live.admin('policy', name, '--gate', 'none')
    assert not asked_for_preauth(live, name, password)
    live.admin('policy', name, '--gate', 'timestamp')
    assert asked_for_preauth(live, name, password)


def trace(live, command):
    path = live.dir / 'trace'
    path.unlink(missing_ok=True)
    command({'KRB5_TRACE': str(path)})
    return path.read_text()


def test_over_tcp(live, user):
    text = (live.dir / 'krb5.conf').read_text()
    tcp = live.dir / 'krb5-tcp.conf'
    tcp.write_text(text.replace('[libdefaults]\n', '[libdefaults]\n    udp_preference_limit = 1\n'))
    env = {'KRB5_CONFIG': str(tcp)}
    seen = trace(live, lambda more: live.kinit(*user, env={**env, **more}))
    assert 'TCP request to stream' in seen and 'UDP request' not in seen
    live.kvno(SERVICE, env=env)


def test_over_udp(live, user):
    seen = trace(live, lambda more: live.kinit(*user, env=more))
    assert 'Sending initial UDP request' in seen and 'TCP request' not in seen


def test_fast_armor(live, user, new_user):
    """The armor's TGT is under krbtgt too; inside, the password works as always."""
    live.kinit(*new_user(live), ccache='armor')
    armor = ('-T', f'FILE:{live.dir / "armor"}')
    seen = trace(live, lambda more: live.kinit(*user, *armor, env=more))
    assert 'FAST armor key' in seen and 'Decoding FAST response' in seen
    live.kvno(SERVICE)
    refused = live.kinit(user[0], 'no', *armor, check=False)
    assert refused.returncode
    assert live.failed_attempts(user[0]) >= 1


def test_service_with_a_local_key_does_not_log_in(live, tmp_path):
    """The servers seal a TGT only for whom they have verified, and a local key they cannot."""
    keytab = tmp_path / 'keytab'
    live.add_service('host/alone.example.com')
    live.kadmin_local(f'ktadd -k {keytab} host/alone.example.com')
    refused = live.run('kinit', '-k', '-t', keytab, 'host/alone.example.com', check=False)
    assert 'KDC policy rejects request' in refused.stdout


def test_unknown_user(live):
    assert 'not found in Kerberos database' in live.kinit('nobody', 'x', check=False).stdout
