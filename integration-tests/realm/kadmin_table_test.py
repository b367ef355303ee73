# SPDX-License-Identifier: Apache-2.0
"""What delegates, users and hosts may say to kadmind: a table of commands, said to a realm of three
servers and to MIT's own, which answer alike. Where they do not, the table says why."""

import re

import pytest

import config_files
import realm as realm_module

PASSWORD = 'first'
HOST = 'host/www.example.com'
ENCTYPES = ' '.join(f'{name}:normal' for name in
                    config_files.GCM_ENCTYPES + config_files.STOCK_ENCTYPES)
STOCK_TYPES = ' '.join(f'{name}:normal' for name in config_files.STOCK_ENCTYPES)
ACL = '''
*/admin@EXAMPLE.COM   *
opal@EXAMPLE.COM      acdmisp   */team@EXAMPLE.COM
ruby@EXAMPLE.COM      ci        *
jade@EXAMPLE.COM      a         *            -policy strict +requires_preauth -maxlife 9h
agate@EXAMPLE.COM     aC        *
onyx@EXAMPLE.COM      e         */team@EXAMPLE.COM
*/clerk@EXAMPLE.COM   cim       *1@EXAMPLE.COM
host/*@EXAMPLE.COM    i         *
'''
PEOPLE = ('opal', 'ruby', 'jade', 'agate', 'onyx', 'amber', 'amber/clerk', 'root/admin',
          'beryl/admin', 'topaz')

# Differences that are meant.
HELD = 'the servers hold the key, and no keytab may'
# (who, what he says, why the answers differ)
TABLE = [
    # A delegate with targets.
    ('opal', 'addprinc -pw one a/team', None),
    ('opal', 'addprinc -pw one outsider', None),
    ('opal', 'addprinc -pw one a/team', None),
    ('opal', 'cpw -pw two a/team', None),
    ('opal', 'cpw -keepold -pw three a/team', None),
    ('opal', 'getprinc a/team', None),
    ('opal', 'purgekeys a/team', None),
    ('opal', 'purgekeys -keepkvno 2 a/team', None),
    ('opal', 'purgekeys -all a/team', None),
    ('opal', 'getprinc a/team', None),
    ('opal', 'cpw -pw four a/team', None),
    ('opal', 'cpw -e aes256-cts:normal -pw five a/team', None),
    ('opal', 'cpw -pw stolen root/admin', None),
    ('opal', 'getprinc topaz', None),
    ('opal', 'addprinc -nokey empty/team', None),
    ('opal', 'cpw -pw filled empty/team', None),
    ('opal', 'addprinc -randkey random/team', None),
    ('opal', 'cpw -randkey random/team', HELD),
    ('opal', 'modprinc -policy strict a/team', None),
    ('opal', 'cpw -pw abc a/team', None),
    ('opal', 'cpw -pw abcdefgh1 a/team', None),
    ('opal', 'cpw -pw abcdefgh1 a/team', None),
    ('opal', 'modprinc -clearpolicy a/team', None),
    ('opal', 'cpw -pw abc a/team', None),
    ('opal', 'modprinc -expire "2035-01-01 00:00:00 UTC" -maxlife 3h a/team', None),
    ('opal', 'modprinc -allow_tix a/team', None),
    ('opal', 'modprinc +allow_tix +needchange a/team', None),
    ('opal', 'modprinc -needchange a/team', None),
    ('opal', 'setstr a/team note hello', None),
    ('opal', 'getstrs a/team', None),
    ('opal', 'delstr a/team note', None),
    ('opal', 'getstrs a/team', None),
    ('opal', 'setstr topaz note hello', None),
    ('opal', 'renprinc -force a/team b/team', None),
    ('opal', 'renprinc -force b/team b/outside', None),
    ('opal', 'renprinc -force topaz t/team', None),
    ('opal', 'renprinc -force b/team empty/team', None),
    ('opal', 'renprinc -force nobody/team c/team', None),
    ('opal', 'getprinc b/team', None),
    ('opal', 'delprinc -force random/team', None),
    ('opal', 'delprinc -force random/team', None),
    ('opal', 'delprinc -force topaz', None),
    ('opal', 'listprincs */team', None),
    ('opal', 'addpol mine', None),
    # Passwords of others, administrators' too.
    ('ruby', 'cpw -pw second beryl/admin', None),
    ('ruby', 'getprinc beryl/admin', None),
    ('ruby', 'modprinc -maxlife 1h beryl/admin', None),
    ('ruby', 'cpw -pw x nobody', None),
    # Restrictions.
    ('jade', 'addprinc -pw weak made', None),
    ('jade', 'addprinc -pw "stronger 1" made', None),
    ('jade', 'addprinc -pw "stronger 1" -maxlife 20h made2', None),
    ('jade', 'addprinc -pw x -clearpolicy made3', None),
    ('root/admin', 'getprinc made', None),
    ('root/admin', 'getprinc made2', None),
    # A privilege taken away.
    ('agate', 'addprinc -pw one thing', None),
    ('agate', 'cpw -pw two thing', None),
    # By name: amber/clerk is amber's.
    ('amber/clerk', 'cpw -pw clerked amber', None),
    ('amber/clerk', 'modprinc -maxlife 5h amber', None),
    ('amber/clerk', 'cpw -pw clerked topaz', None),
    # Oneself.
    ('topaz', 'getprinc topaz', None),
    ('topaz', 'getstrs topaz', None),
    ('topaz', 'getpol strict', None),
    ('topaz', 'listprincs', None),
    ('topaz', 'getprinc amber', None),
    ('topaz', 'cpw -pw second topaz', None),
    ('topaz', 'modprinc -maxlife 1h topaz', None),
    ('topaz', 'purgekeys topaz', None),
    ('topaz', 'delprinc -force topaz', None),
    # Keys that leave.
    ('opal', 'addprinc -pw one kt/team', None),
    ('onyx', 'ktadd -norandkey -k {keytab} kt/team', HELD),
    ('root/admin', 'ktadd -k {keytab} kt/team', HELD),
    ('root/admin', f'ktadd -k {{keytab}} {HOST}', None),
    ('onyx', f'ktadd -norandkey -k {{keytab}} {HOST}', None),
    # Locked down.
    ('root/admin', 'modprinc +lockdown_keys empty/team', None),
    ('root/admin', 'cpw -pw other empty/team', None),
    ('root/admin', 'modprinc +lockdown_keys kt/team', None),
    ('root/admin', 'cpw -randkey kt/team', HELD),
    ('root/admin', 'modprinc -lockdown_keys empty/team', None),
    ('root/admin', 'delprinc -force empty/team', None),
    ('root/admin', 'renprinc -force empty/team full/team', None),
    ('root/admin', 'cpw -pw other kadmin/admin', None),
    ('root/admin', 'cpw -randkey krbtgt/EXAMPLE.COM', HELD),
    # An administrator, and policies.
    ('root/admin', 'cpw -pw second beryl/admin', None),
    ('root/admin', 'addpol -history 2 -minlength 4 remembers', None),
    ('root/admin', 'addprinc -policy remembers -pw "word 1" opaque', None),
    ('root/admin', 'cpw -pw "word 2" opaque', None),
    ('root/admin', 'cpw -pw "word 1" opaque', None),
    ('root/admin', 'renprinc -force opaque clear', None),
    ('root/admin', 'cpw -pw "word 1" clear', None),
    ('root/admin', 'cpw -pw "word 2" clear', None),
    ('root/admin', 'delpol remembers', None),
    ('root/admin', 'modpol -minlength 6 remembers', None),
    ('root/admin', 'getpol remembers', None),
    ('root/admin', 'cpw -pw four clear', None),
    ('root/admin', 'getprivs', None),
    ('opal', 'getprivs', None),
]
PASSWORDS = {  # what may open a name when all has been said
    'b/team': ('four', 'five', 'abcdefgh1', 'abc'), 'empty/team': ('filled', 'other'),
    'full/team': ('filled', 'other'), 'beryl/admin': ('first', 'second'), 'made': ('stronger 1',),
    'amber': ('first', 'clerked'), 'topaz': ('first', 'second', 'clerked'),
    'thing': ('one', 'two'), 'clear': ('word 1', 'word 2', 'four'), 'opaque': ('word 1', 'word 2')}


@pytest.fixture(scope='module')
def realms(tmp_path_factory):
    """Ours and MIT's."""
    flags = {'default_principal_flags': '+preauth'}
    ours = realm_module.Realm(
        tmp_path_factory.mktemp('ours') / 'realm', realm_module.Options(
            extra_realm={'supported_enctypes': ENCTYPES, **flags},
            extra_database={'mpc_service_logins': True}))
    stock = realm_module.StockRealm(
        tmp_path_factory.mktemp('stock') / 'realm',
        realm_module.Options(extra_realm={'supported_enctypes': STOCK_TYPES, **flags}))
    with ours, stock:
        ours.create_servers()
        stock.write_files()
        for live in (ours, stock):
            live.create_database()
            (live.kdc_dir / 'kadm5.acl').write_text(ACL.lstrip())
            live.kadmin_local('addpol -minlength 8 -minclasses 2 -history 2 strict')
            for name in PEOPLE:
                live.kadmin_local(f'addprinc -pw {PASSWORD} {name}')
            live.kadmin_local(f'addprinc -randkey -e aes256-cts:normal {HOST}')
            live.start_kdc()
        yield ours, stock


# Of getprinc: the keys, which are of other types and have other salts' lengths; dates of today.
KEYS = re.compile(r'^(Key: vno \d+), .*$', re.MULTILINE)
DATES = re.compile(r'\w{3} \w{3} \d\d \d\d:\d\d:\d\d UTC 20[23][0-46-9]')


def plain(live, text):
    text = text.replace(str(live.dir), 'DIR')
    versions = sorted(set(KEYS.findall(text)))
    text = KEYS.sub('', text)
    text = re.sub(r'^Number of keys: .*$', f'Keys: {versions}', text, flags=re.MULTILINE)
    text = DATES.sub('DATE', text)
    text = re.sub(r'^Entry for principal .* (added to keytab .*)$', r'\1', text,
                  flags=re.MULTILINE)
    lines = [line for line in text.splitlines() if line and not line.startswith('Authenticating as')]
    return sorted(set(lines)) if 'added to keytab' in text else lines


def test_both_answer_alike(realms):
    different = []
    passwords = dict.fromkeys(PEOPLE, PASSWORD)
    for number, (who, query, why) in enumerate(TABLE):
        answers = []
        for live in realms:
            keytab = live.dir / f'keytab{number}'
            said = live.kadmin(query.format(keytab=keytab), who, passwords[who]).stdout
            answers.append(plain(live, said))
        if who == 'topaz' and query.startswith('cpw'):
            passwords[who] = 'second'
        if (answers[0] == answers[1]) != (why is None):
            different.append((who, query, why, *answers))
        elif why is not None:
            assert 'Principal keys are remote' in ' '.join(answers[0]), answers[0]
    assert not different, '\n'.join(map(str, different))

    # And the same passwords open the same names.
    for name, tried in PASSWORDS.items():
        opens = [[word for word in tried if live.kinit(name, word, check=False).returncode == 0]
                 for live in realms]
        assert opens[0] == opens[1], (name, opens)


def test_a_host_by_its_keytab(realms):
    """kadmin -k: it may look, and change nothing."""
    for live in realms:
        live.kadmin_local(f'ktadd -norandkey -k {live.dir / "now.keytab"} {HOST}')
    for query in ('getprinc topaz', 'cpw -pw x topaz', 'getprinc ' + HOST):
        answers = [plain(live, live.run('kadmin', '-k', '-t', live.dir / 'now.keytab', '-p', HOST,
                                        '-q', query, check=False).stdout) for live in realms]
        assert answers[0] == answers[1], (query, answers)
        assert ('Principal: ' in answers[0][0]) == query.startswith('getprinc'), answers[0]


def test_ones_own_password_by_kpasswd(realms):
    """kadmin/changepw, and what policies say to it."""
    for live in realms:
        live.kadmin_local('addprinc -policy strict -pw "a password 1" zoe')
    for old, new in (('a password 1', 'short1'), ('a password 1', 'a password 1'),
                     ('a password 1', 'a password 2'), ('a password 2', 'a password 1'),
                     ('wrong', 'a password 3')):
        answers = [live.run('kpasswd', 'zoe', stdin=f'{old}\n{new}\n{new}\n', check=False)
                   for live in realms]
        assert answers[0].stdout == answers[1].stdout
        assert answers[0].returncode == answers[1].returncode
