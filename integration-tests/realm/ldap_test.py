# SPDX-License-Identifier: Apache-2.0
"""Principals in an LDAP directory: mpc.so around kldap, Debian's slapd, three real servers."""

import base64
import concurrent.futures
import contextlib
import json
import os
import re
import signal

import pytest

import config_files
import daemon
import ldap_relay
import long_tests
import slapd

pytestmark = pytest.mark.skipif(bool(slapd.missing()), reason=slapd.missing() or 'can run')

GRACE = '\n[policy]\ndelete_grace = "1s"\n'  # so that a key that is deleted is gone
UNAVAILABLE = 'not available'
PEOPLE = slapd.PEOPLE


@pytest.fixture(scope='module')
def live(tmp_path_factory):
    folder = tmp_path_factory.mktemp('ldap')
    directory = slapd.Slapd(folder / 'slapd')
    directory.start()
    directory.fill()
    with ldap_relay.LdapRelay(directory.port) as relay, slapd.DirectoryRealm(
            folder / 'realm', directory, uri=relay.uri, extra_server=GRACE,
            extra_realm={'default_principal_flags': '-preauth'}) as live:
        live.relay = relay
        live.create_servers()
        (live.kdc_dir / 'kadm5.acl').write_text(
            f'*/admin@{live.name} *\nhelper@{live.name} aci *\n')
        live.stash_passwords()
        live.made_past_the_module = live.ldap_util('create', '-P', 'master', check=False).stdout
        live.found_then = directory.search('krbPrincipalKey', where='(krbPrincipalKey=*)')
        live.create_database()
        live.ldap_util('modify', '-subtrees', PEOPLE)
        live.start_kdc()
        yield live
    directory.stop()


@pytest.fixture(autouse=True)
def healthy_after(live):
    """Whatever a test did, the directory and the servers agree afterwards."""
    yield
    live.relay.lift()
    if not live.directory.server.is_running():
        live.directory.start()
    live.directory.set_read_only(False)
    live.admin('doctor')


def can_log_in(live, name, password):
    result = live.kinit(name, password, check=False)
    assert result.returncode == 0 or 'Password incorrect' in result.stdout \
        or 'not found in Kerberos database' in result.stdout, result.stdout
    return result.returncode == 0


def keys_in_use(live, name=None):
    """Handles that the servers hold and nobody has deleted, of one principal or of all."""
    keys = json.loads(live.admin('list', '--json').stdout)['keys']
    return {key['handle'] for key in keys if not key['retired']
            and (name is None or key['principal'] == f'{name}@{live.name}')}


def handles(live, name):
    lines = [json.loads(line) for line in
             live.run(config_files.mpc_program('mpc-kdb'), 'list').stdout.splitlines()]
    return {line['handle'] for line in lines
            if line['principal'] == f'{name}@{live.name}' and 'handle' in line
            and not line.get('history')}


# The realm --------------------------------------------------------------------------------------

def test_no_key_of_the_realm_ever_lay_in_the_directory(live):
    """kdb5_ldap_util would put krbtgt's own key there: it is refused and leaves nothing behind."""
    assert 'kdb5_util create' in live.made_past_the_module, live.made_past_the_module
    assert live.found_then == []
    for entry in live.directory.search('krbPrincipalName', 'krbPrincipalKey',
                                       where='(krbPrincipalKey=*)'):
        name = entry['krbPrincipalName'][0].decode().split('@')[0]
        tags = sum(value.count(b'remote-key:') for value in entry['krbPrincipalKey'])
        if name.startswith(('krbtgt/', 'kadmin/')) and name != 'kadmin/history':
            shown = live.kadmin_local(f'getprinc {name}').stdout
            assert tags == int(re.search(r'Number of keys: (\d+)', shown)[1]) == 2, shown
        if name in ('K/M', 'kadmin/history'):
            assert tags == 0
    assert handles(live, f'krbtgt/{live.name}') == keys_in_use(live, f'krbtgt/{live.name}')


def test_a_users_life(live):
    live.kadmin_local('addprinc -pw first ann')
    assert 'krbTicketFlags' not in live.entry('ann', 'krbTicketFlags'), 'the realm gives them'
    assert len(handles(live, 'ann')) == 6
    live.kinit('ann', 'first')
    live.kvno(f'krbtgt/{live.name}')
    stock = {'KRB5_CONFIG': str(config_files.replace(
        live.dir / 'krb5.conf', 'aes256-gcm aes128-gcm DEFAULT', 'aes256-cts aes128-cts',
        into=live.dir / 'krb5-stock.conf'))}
    live.kinit('ann', 'first', env=stock)
    live.run('kpasswd', 'ann', stdin='first\nsecond\nsecond\n')
    assert not can_log_in(live, 'ann', 'first')
    live.kinit('ann', 'second')
    live.kadmin_local('cpw -keepold -pw third ann')
    assert len(handles(live, 'ann')) == 12
    live.kadmin_local('purgekeys ann')
    assert handles(live, 'ann') == keys_in_use(live, 'ann') and len(handles(live, 'ann')) == 6
    live.kinit('ann', 'third')
    live.kadmin_local('delprinc -force ann')
    assert live.entry('ann') is None and keys_in_use(live, 'ann') == set()


def ticket_flags(live, name):
    live.kinit(name, 'password', '-f')
    return re.search(r'Flags: (\w+)', live.run('klist', '-f').stdout)[1]


def test_flags_of_ticket_policies_reach_protected_users(live):
    live.ldap_util('create_policy', '-allow_forwardable', 'homely')
    live.kadmin_local('addprinc -pw password -x tktpolicy=homely abe')
    live.kadmin_local('addprinc -pw password +allow_forwardable -x tktpolicy=homely amy')
    live.kadmin_local('addprinc -pw password ada')
    assert 'F' not in ticket_flags(live, 'abe')
    # Who has flags of its own has these, and requires_preauth with them.
    assert 'F' in ticket_flags(live, 'amy')
    assert live.entry('amy', 'krbTicketFlags')['krbTicketFlags'] == [b'128']
    assert 'F' in ticket_flags(live, 'ada')
    live.kadmin_local('modprinc -x tktpolicy=homely ada')
    assert 'F' not in ticket_flags(live, 'ada')
    # Without the flag a password is asked for all the same.
    assert not can_log_in(live, 'abe', 'guess')


def test_flags_of_the_realm_reach_protected_users(live):
    live.ldap_util('modify', '+requires_preauth')
    live.kadmin_local('addprinc -pw password ali')
    assert 'REQUIRES_PRE_AUTH' in live.kadmin_local('getprinc ali').stdout
    live.kinit('ali', 'password')
    live.ldap_util('modify', '-requires_preauth')
    assert 'REQUIRES_PRE_AUTH' not in live.kadmin_local('getprinc ali').stdout


def test_password_history(live):
    live.kadmin_local('addpol -history 3 three')
    live.kadmin_local('addprinc -policy three -pw "password 1" bea')
    live.kadmin_local('cpw -pw "password 2" bea')
    live.kadmin_local('cpw -pw "password 3" bea')
    assert len(live.entry('bea', 'krbPwdHistory')['krbPwdHistory']) == 2
    for password in ('password 3', 'password 2', 'password 1'):
        said = live.kadmin_local(f'cpw -pw "{password}" bea', check=False)
        assert said.returncode and 'Cannot reuse password' in said.stdout, said.stdout
    live.kadmin_local('cpw -pw "password 4" bea')
    live.kinit('bea', 'password 4')
    live.kadmin_local('delprinc -force bea')
    assert daemon.wait_until(lambda: 'bea@' not in live.admin('list').stdout, 60, pause=1)


def test_policies_of_passwords_and_tickets(live):
    live.kadmin_local('addpol -minlength 10 long')
    live.kadmin_local('addprinc -pw "long enough" -policy long cem')
    said = live.kadmin_local('cpw -pw short cem', check=False)
    assert said.returncode and 'too short' in said.stdout
    assert 'long' in live.kadmin_local('listpols').stdout
    live.kadmin_local('modpol -minlength 5 long')
    live.kadmin_local('cpw -pw short cem')
    live.ldap_util('create_policy', '-maxtktlife', '10min', 'brief')
    live.kadmin_local('modprinc -x tktpolicy=brief cem')
    assert 'Maximum ticket life: 0 days 00:10:00' in live.kadmin_local('getprinc cem').stdout
    live.kadmin_local('cpw -pw another cem')
    live.kinit('cem', 'another')
    assert 'Maximum ticket life: 0 days 00:10:00' in live.kadmin_local('getprinc cem').stdout


def number_of_keys(live, name):
    return int(re.search(r'Number of keys: (\d+)', live.kadmin_local(f'getprinc {name}').stdout)[1])


def test_versions_of_keys(live):
    """As MIT's t_kdb.py: keys by version, principals without any, passwords that are kept."""
    types = '-e aes256-cts:normal,aes128-cts:normal'
    live.kadmin_local(f'addprinc -randkey {types} versions')
    for count in (4, 6):
        live.kadmin_local(f'cpw -randkey -keepold {types} versions')
        assert number_of_keys(live, 'versions') == len(handles(live, 'versions')) == count
    live.kadmin_local('addprinc -nokey keyless')
    assert number_of_keys(live, 'keyless') == 0
    live.kadmin_local(f'cpw -randkey {types} keyless')
    live.kadmin_local(f'cpw -randkey -keepold {types} keyless')
    assert number_of_keys(live, 'keyless') == 4
    live.kadmin_local('purgekeys -all keyless')
    assert number_of_keys(live, 'keyless') == 0 and keys_in_use(live, 'keyless') == set()
    live.kadmin_local('addpol -history 2 pair')
    live.kadmin_local('addprinc -policy pair -pw aaaa keeper')
    for password in ('bbbb', 'cccc', 'aaaa'):
        live.kadmin_local(f'cpw -keepold -pw {password} keeper')
    live.kinit('keeper', 'aaaa')
    live.kadmin_local('modprinc -pwexpire 2040-02-03 keeper')
    assert ' 2040' in live.kadmin_local('getprinc keeper').stdout


def test_dump_and_load(live):
    live.kadmin_local('addprinc -pw first dump')
    dump = live.dump(live.dir / 'ldap-dump')
    said = live.run('kdb5_util', 'load', dump, check=False)
    assert said.returncode and 'requires -update' in said.stdout
    live.directory.tool('ldapdelete', live.entry('dump')['dn'][0].decode())
    assert live.kinit('dump', 'first', check=False).returncode
    live.run('kdb5_util', 'load', '-update', dump)
    live.kinit('dump', 'first')
    assert live.run('kdb5_util', 'destroy', '-f', check=False).returncode
    live.kinit('dump', 'first')


def test_where_an_entry_lies(live):
    """-x dn, containerdn and linkdn; several subtrees; what is refused costs no key."""
    live.directory.add(f'dn: uid=dan,{PEOPLE}\nobjectClass: inetOrgPerson\nuid: dan\ncn: Dan\n'
                       'sn: D\n')
    live.kadmin_local(f'addprinc -pw one -x dn=uid=dan,{PEOPLE} dan')
    live.kadmin_local(f'addprinc -pw two -x containerdn={PEOPLE} dora')
    live.kadmin_local(f'addprinc -pw three -x linkdn=uid=dan,{PEOPLE} dan/admin')
    assert live.entry('dan')['dn'] == [f'uid=dan,{PEOPLE}'.encode()]
    assert live.entry('dora')['dn'] == [f'krbPrincipalName=dora@{live.name},{PEOPLE}'.encode()]
    for name, password in (('dan', 'one'), ('dora', 'two'), ('dan/admin', 'three')):
        live.kinit(name, password)
        live.kadmin_local(f'cpw -pw "{password} more" {name}')
        live.kinit(name, f'{password} more')
    refused = live.kadmin_local(f'addprinc -pw four -x dn=uid=dan,{PEOPLE} eve', check=False)
    assert refused.returncode and 'already kerberized' in refused.stdout
    refused = live.kadmin_local('addprinc -pw four -x dn=cn=elsewhere eve', check=False)
    assert refused.returncode and 'out of the realm subtree' in refused.stdout
    assert keys_in_use(live, 'eve') == set()
    # The person stays when the principal goes.
    live.kadmin_local('delprinc -force dan')
    person = live.directory.search(where='(uid=dan)')[0]
    assert not [name for name in person if name.startswith('krb')] and 'cn' in person
    assert keys_in_use(live, 'dan') == set()


def test_aliases(live):
    """A key is bound to the canonical name, by whichever name its entry was found."""
    live.kadmin_local('addprinc -pw first frank')
    dn = live.entry('frank')['dn'][0].decode()
    live.directory.modify(f'dn: {dn}\nchangetype: modify\nadd: krbPrincipalName\n'
                          f'krbPrincipalName: fritz@{live.name}\n-\nadd: krbCanonicalName\n'
                          f'krbCanonicalName: frank@{live.name}\n')
    live.kinit('fritz', 'first', '-C')
    assert f'Default principal: frank@{live.name}' in live.klist().stdout
    live.kadmin_local('cpw -pw second fritz')
    live.kinit('frank', 'second')
    live.kadmin_local('delprinc -force fritz')
    assert live.entry('frank') is None and keys_in_use(live, 'frank') == set()


def test_one_of_two_names_of_a_person_is_deleted(live):
    """The keys stay in the person's object, under the other name. So they stay on the servers."""
    live.directory.add(f'dn: uid=gil,{PEOPLE}\nobjectClass: inetOrgPerson\nuid: gil\ncn: Gil\n'
                       'sn: G\n')
    live.kadmin_local(f'addprinc -pw first -x dn=uid=gil,{PEOPLE} gil')
    live.directory.modify(f'dn: uid=gil,{PEOPLE}\nchangetype: modify\nadd: krbPrincipalName\n'
                          f'krbPrincipalName: gilbert@{live.name}\n-\nadd: krbCanonicalName\n'
                          f'krbCanonicalName: gil@{live.name}\n')
    before = handles(live, 'gil')
    live.kadmin_local('delprinc -force gilbert')
    assert keys_in_use(live, 'gil') == before == handles(live, 'gil') != set()
    live.kinit('gil', 'first')


def test_services(live):
    live.kadmin_local('addprinc -randkey host/www.example.com')
    keytab = live.dir / 'www.keytab'
    live.kadmin_local(f'ktadd -k {keytab} host/www.example.com')
    live.kadmin_local('addprinc -pw secret hal')
    live.kinit('hal', 'secret')
    live.kvno('host/www.example.com', '-k', keytab)
    live.kadmin_local('renprinc -force host/www.example.com host/web.example.com')
    assert live.entry('host/www.example.com') is None
    live.kadmin_local(f'ktadd -k {keytab} host/web.example.com')
    live.kvno('host/web.example.com', '-k', keytab)
    said = live.kadmin_local('renprinc -force hal hans', check=False)
    assert said.returncode and live.entry('hal') is not None
    live.kinit('hal', 'secret')


def test_kadmin_from_afar(live):
    """A delegate adds users and changes passwords through kadmind, and may not delete."""
    live.kadmin_local('addprinc -pw helping helper')
    assert 'created' in live.kadmin('addprinc -pw first ida', 'helper', 'helping').stdout
    live.kinit('ida', 'first')
    assert 'changed' in live.kadmin('cpw -pw second ida', 'helper', 'helping').stdout
    live.kinit('ida', 'second')
    said = live.kadmin('delprinc -force ida', 'helper', 'helping').stdout
    assert "requires ``delete'' privilege" in said, said
    live.enroll('root/admin', 'of root')
    assert 'deleted' in live.kadmin('delprinc -force ida', 'root/admin', 'of root').stdout
    assert keys_in_use(live, 'ida') == set()


def test_mpc_admin(live):
    live.enroll('joe', 'first')
    live.kinit('joe', 'first')
    live.enroll('joe', 'second', '--replace')
    live.kinit('joe', 'second')
    live.admin('randkey', 'joe')
    assert not can_log_in(live, 'joe', 'second')
    live.admin('delete', 'joe')
    assert live.entry('joe') is None and keys_in_use(live, 'joe') == set()
    live.admin('rotate-krbtgt')
    kvno = re.search(r'vno (\d+)', live.kadmin_local(f'getprinc krbtgt/{live.name}').stdout)[1]
    assert int(kvno) == 2
    live.enroll('jim', 'first')
    live.kinit('jim', 'first')


def test_doctor_sees_a_directory_that_hides_keys(live):
    """kadmind's account may not read them any more: nothing to which they refer is deleted."""
    live.kadmin_local('addprinc -pw first kai')
    before = handles(live, 'kai')
    config = 'olcDatabase={1}mdb,cn=config'
    hidden = (f'to dn.regex="^krbPrincipalName=kai@.*" attrs=krbPrincipalKey by * none')
    admin = {'who': slapd.CONFIG_ADMIN}
    live.directory.modify(f'dn: {config}\nchangetype: modify\nadd: olcAccess\n'
                          f'olcAccess: {{0}}{hidden}\n', **admin)
    try:
        said = live.admin('doctor', '--fix', check=False).stdout
        assert 'kai@' in said and 'krbPrincipalKey' in said, said
        assert keys_in_use(live, 'kai') == before
    finally:
        live.directory.modify(f'dn: {config}\nchangetype: modify\ndelete: olcAccess\n'
                              f'olcAccess: {{0}}\n', **admin)
    live.kinit('kai', 'first')


def test_a_handle_that_is_moved_in_the_directory(live):
    """Who may write there gives one user's handles to another: nobody logs in by them."""
    live.kadmin_local('addprinc -pw "of pat" pat')
    live.kadmin_local('addprinc -pw "of pia" pia')
    own, others = (live.entry(name, 'krbPrincipalKey') for name in ('pat', 'pia'))

    def give(entry, values):
        encoded = '\n'.join(f'krbPrincipalKey:: {base64.b64encode(value).decode()}'
                            for value in values)
        live.directory.modify(f'dn: {entry["dn"][0].decode()}\nchangetype: modify\n'
                              f'replace: krbPrincipalKey\n{encoded}\n')
    give(own, others['krbPrincipalKey'])
    for password in ('of pat', 'of pia'):
        assert live.kinit('pat', password, check=False).returncode
    assert live.admin('doctor', check=False).returncode
    give(own, own['krbPrincipalKey'])
    live.kinit('pat', 'of pat')
    live.kinit('pia', 'of pia')


def test_a_name_that_is_moved_in_the_directory(live):
    """Who may write there gives alice's name to mallory, as an alias: mallory, with a password of
    his own, is alice at every service with a local key."""
    live.kadmin_local('addprinc -pw "of malwina" malwina')
    live.kadmin_local('addprinc -pw "of abel" abel')
    live.add_service('host/alias.example.com')
    victim = live.entry('abel', 'krbPrincipalName')
    own = live.entry('malwina', 'krbPrincipalName', 'krbCanonicalName')
    live.directory.modify(
        f'dn: {victim["dn"][0].decode()}\nchangetype: delete\n\n'
        f'dn: {own["dn"][0].decode()}\nchangetype: modify\n'
        f'replace: krbCanonicalName\nkrbCanonicalName: malwina@{live.name}\n-\n'
        f'add: krbPrincipalName\nkrbPrincipalName: abel@{live.name}\n')
    try:
        login = live.kinit('abel', 'of malwina', ccache='alias', check=False)
        used = live.kvno('host/alias.example.com', ccache='alias', check=False)
        said = live.klist(ccache='alias', check=False).stdout
        assert login.returncode or used.returncode, (login.stdout, used.stdout, said)
    finally:
        live.kadmin_local('delprinc -force malwina', check=False)
        live.admin('doctor', '--fix', check=False)


def test_more_principals_than_a_search_may_return(live):
    """As any account but kadmind's: the list is whole, or an error."""
    for number in range(3):
        live.kadmin_local(f'addprinc -randkey -e aes256-gcm:normal many{number}')
    limits = 'dn: olcDatabase={1}mdb,cn=config\nchangetype: modify\nreplace: olcLimits\n' \
             'olcLimits: dn.exact="%s" size=%s\n'
    live.directory.modify(limits % (slapd.KADMIND, '5'), who=slapd.CONFIG_ADMIN)
    try:
        said = live.run(config_files.mpc_program('mpc-kdb'), 'list', check=False)
        assert said.returncode == 1 and 'Size limit exceeded' in said.stdout, said.stdout
        assert live.admin('doctor', '--fix', check=False).returncode
    finally:
        live.directory.modify(limits % (slapd.KADMIND, 'unlimited'), who=slapd.CONFIG_ADMIN)
    assert len(handles(live, 'many2')) == 1


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
