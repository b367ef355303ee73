# SPDX-License-Identifier: Apache-2.0
"""The quick part of the matrix: Debian's own kinit, kvno and kpasswd with the system's libraries,
every enctype, both transports. `make clients` runs all clients."""

import json
import re
import socket

import pytest

import adapter
import judge
import client_lab as lab_module
import long_tests  # on client_lab's path
import mit
import services

AES256_GCM = -24002
ADMIN = 'a password of its own'
STORED_KEY = re.compile(r'^Key: vno (\d+), (\S+)$', re.M)
LISTED_KEY = re.compile(r'^ +(\d+) \S+ \((\S+)\) *$', re.M)


@pytest.mark.parametrize('transport', lab_module.TRANSPORTS)
@pytest.mark.parametrize('enctype', lab_module.ENCTYPES)
def test_debians_kinit(ours, enctype, transport):
    steps = [step for step in adapter.STEPS if step != 'accepted' or services.gss_server()]
    cells = judge.one_case(mit.Mit(), ours, enctype, transport, ours.add_user(), steps)
    assert [(cell.step, cell.text) for cell in cells if cell.verdict != judge.YES] == []


@long_tests.LONG
@pytest.mark.parametrize('transport', lab_module.TRANSPORTS)
@pytest.mark.parametrize('enctype', lab_module.ENCTYPES)
def test_a_user_of_an_imported_realm(imported, enctype, transport):
    """With the password from before, which no server and nobody here has seen. `make clients
    CLIENTS='--users imported'` asks every client."""
    test_debians_kinit(imported, enctype, transport)


def test_it_is_not_our_kinit(ours):
    """The library that kinit loads is the system's, not the patched one."""
    case = ours.case(ours.dir / 'which', ours.add_user(), 18, 'tcp')
    listing = case.run('/usr/bin/ldd', mit.KINIT).text
    assert 'libkrb5.so.3' in listing and str(lab_module.config_files.BUILD) not in listing


def test_keys_are_where_the_lab_says(ours):
    """Shared keys of every enctype; or none but the login key that stands for a local user."""
    def shared(principal):
        listed = ours.realm.admin('list', principal, '--json', check=False).stdout
        return {key['enctype'] for key in json.loads(listed or '{"keys": []}')['keys']}
    user = ours.add_user()
    if ours.protected:
        assert shared(user) >= set(lab_module.STANDARD)
    else:
        assert not shared(user) & set(lab_module.STANDARD)


def test_the_judge_sees(ours):
    """A right password that is refused, a wrong one that passes, an enctype that was not asked
    for."""
    client = mit.Mit()
    case = ours.case(ours.dir / 'judge', ours.add_user(), 18, 'tcp')
    mark = ours.mark()
    refused = client.wrong_password(case)
    assert judge.judge(client, 'login', case, refused, mark)[0] == judge.NO
    right = client.login(case)
    assert judge.judge(client, 'wrong_password', case, right, mark)[0] == judge.NO
    case.enctype = 17
    assert judge.judge(client, 'login', case, right, mark)[0] == judge.NO
    assert judge.judge(client, 'service_ticket', case, right, ours.mark())[0] == judge.NO
    assert judge.judge(client, 'renew', case, right, ours.mark())[0] == judge.NO


def test_tickets_name_an_enctype_that_clients_know(ours):
    """Those that come back to us carry a label; KDC and kadmind know better."""
    client = mit.Mit()
    ours.realm.kadmin_local('cpw -randkey -e aes256-gcm:normal kadmin/changepw')
    case = ours.case(ours.dir / 'label', ours.add_user(), 18, 'tcp')
    cache = f'FILE:{case.folder}/ccache'
    mark = ours.mark()
    assert client.login(case).ok
    assert [one.ticket for one in ours.issued(mark, case.user)] == [AES256_GCM]
    assert (done := client.kinit(case, '-S', 'kadmin/changepw', password=case.password,
                                 ccache='changepw')).ok, done.text
    for name in ('ccache', 'changepw'):
        listed = case.run('/usr/bin/klist', '-e', f'FILE:{case.folder}/{name}').text
        assert re.search(r'Etype \(skey, tkt\): (\S+), \1 *$', listed, re.M), listed
    assert (done := case.run('/usr/bin/kvno', '--u2u', cache, case.user,
                             env=client.env(case))).ok, done.text
    assert (done := client.change_password(case, 'another')).ok, done.text


def test_debians_kadmin_writes_what_was_stored(ours):
    """A new service has no keys of ours, which its own library could not read; nor has its
    keytab."""
    live, admin, service = ours.realm, 'keeper/admin', 'host/keytab.example.org'
    live.kadmin_local(f'addprinc -randkey {service}')
    live.kadmin_local(f'addprinc -e {ours.keysalts().replace(" ", ",")} -pw "{ADMIN}" {admin}')
    config, keytab = ours.write_krb5_conf('kadmin.conf', 'tcp'), ours.dir / 'fresh.keytab'
    done = lab_module.run_stock(
        ['/usr/bin/kadmin', '-p', f'{admin}@{live.name}', '-w', ADMIN, '-q',
         f'ktadd -k {keytab} {service}'], env={'KRB5_CONFIG': config})
    assert keytab.exists(), done.text
    stored = live.kadmin_local(f'getprinc {service}').stdout
    listed = lab_module.run_stock(['/usr/bin/klist', '-ke', keytab]).text
    assert STORED_KEY.findall(stored) == LISTED_KEY.findall(listed), listed
    assert len(STORED_KEY.findall(stored)) == len(lab_module.STANDARD)


def test_doors_speak_one_transport(ours):
    """So an answer proves the transport."""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(('127.0.0.1', ours.ports['udp']))
    with socket.socket(type=socket.SOCK_DGRAM) as probe:
        probe.connect(('127.0.0.1', ours.ports['tcp']))
        probe.settimeout(5)
        probe.send(b'is anybody there?')
        with pytest.raises(ConnectionRefusedError):
            probe.recv(1)
