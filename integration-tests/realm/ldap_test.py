# SPDX-License-Identifier: Apache-2.0
"""Principals in an LDAP directory: mpc.so around kldap, Debian's slapd, three real servers."""

import base64
import re

import pytest

import config_files
import daemon
import ldap_realm
import slapd
from ldap_realm import PEOPLE, can_log_in, handles, keys_in_use

pytestmark = pytest.mark.skipif(bool(slapd.missing()), reason=slapd.missing() or 'can run')


@pytest.fixture(scope='module')
def live(tmp_path_factory):
    with ldap_realm.running(tmp_path_factory.mktemp('ldap')) as live:
        yield live


@pytest.fixture(autouse=True)
def healthy_after(live):
    yield
    ldap_realm.agree_again(live)


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


def test_a_realm_of_many_labels_is_not_looked_for(live):
    """krb5kdc waits for the answer to each search, and everybody for krb5kdc."""
    live.kadmin_local('addprinc -pw first una')
    live.kinit('una', 'first')

    def searches(labels):
        before = live.relay.requests
        done = live.kvno('krbtgt/' + '.'.join(['A'] * labels), check=False)
        assert 'not found in Kerberos database' in done.stdout
        return live.relay.requests - before

    assert searches(20) > searches(1) + 15, 'the harness sees'
    assert searches(500) < 100


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


def test_two_entries_of_one_name(live):
    """Who copies an entry by hand: the KDC takes one of the two, and new keys are refused with what is wrong."""
    live.kadmin_local('addprinc -pw first twin')
    entry = live.entry('twin')
    values = '\n'.join(f'{name}:: {base64.b64encode(value).decode()}'
                       for name in ('krbPrincipalName', 'krbPrincipalKey') for value in entry[name])
    second = f'cn=twin,{PEOPLE}'
    live.directory.add(f'dn: {second}\nobjectClass: organizationalRole\nobjectClass: krbPrincipalAux\n'
                       f'cn: twin\n{values}\n')
    try:
        live.kadmin_local('cpw -pw second twin')
        assert can_log_in(live, 'twin', 'second') and not can_log_in(live, 'twin', 'first')
        said = live.admin('enroll', 'twin', '--replace', '--password-stdin', stdin='third\n', check=False)
        assert said.returncode == 4 and 'two entries of this name' in said.stderr, said.stderr
        assert 'twin' in live.admin('doctor', check=False).stdout
        assert can_log_in(live, 'twin', 'second')
    finally:
        live.directory.modify(f'dn: {second}\nchangetype: delete\n')
    live.admin('enroll', 'twin', '--replace', '--password-stdin', stdin='third\n')
    live.kinit('twin', 'third')
    live.admin('doctor', '--fix', check=False)


def test_an_entry_that_cannot_be_read(live):
    """Its user hears of an error and no wrong password, all others log in; the list says where it ended."""
    for name in ('zoe', 'zacharias'):
        live.kadmin_local(f'addprinc -pw "of {name}" {name}')
    entry = live.entry('zoe', 'krbPrincipalKey')

    def put(value):
        live.directory.modify(f'dn: {entry["dn"][0].decode()}\nchangetype: modify\nreplace: krbPrincipalKey\n'
                              f'krbPrincipalKey:: {base64.b64encode(value).decode()}\n')
    put(b'by hand')
    try:
        said = live.kinit('zoe', 'of zoe', check=False).stdout
        assert 'Generic error' in said and 'incorrect' not in said, said
        live.kinit('zacharias', 'of zacharias')
        said = live.run(config_files.mpc_program('mpc-kdb'), 'list', check=False)
        assert said.returncode == 1 and re.search('after the entry of .*@', said.stdout), said.stdout
        assert 'unable to decode' in live.kadmin_local('getprinc zoe', check=False).stdout
        assert live.kadmin_local('listprincs', check=False).returncode
        before = keys_in_use(live)
        assert live.admin('doctor', '--fix', check=False).returncode
        assert keys_in_use(live) == before
    finally:
        put(entry['krbPrincipalKey'][0])
    live.kinit('zoe', 'of zoe')
    assert live.failed_attempts('zoe') == 0
    put(b'by hand')
    live.directory.modify(f'dn: {entry["dn"][0].decode()}\nchangetype: modify\ndelete: krbPrincipalKey\n')
    live.kadmin_local('cpw -pw second zoe')
    live.kinit('zoe', 'second')
    live.admin('delete', '--old', 'zoe')


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
