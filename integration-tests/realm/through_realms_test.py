# SPDX-License-Identifier: Apache-2.0
"""Four realms in a row of trust, in one krb5kdc: users who come through several of them, and referrals.

    STOCK.NET  --18--  EXAMPLE.COM  --gcm--  OTHER.ORG  --18--  THIRD.NET
    (no servers)       (servers)             (servers)          (no servers)

The keys between EXAMPLE.COM and OTHER.ORG are on both realms' servers; those with the two ordinary
realms are of enctype 18, on our servers and in the ordinary realm's database."""

import contextlib
import itertools
import json

import pytest

import config_files
import joint_kdc
import realm as realm_module
from long_tests import some

STOCK, HOME, AWAY, THIRD = ROW = 'STOCK.NET', 'EXAMPLE.COM', 'OTHER.ORG', 'THIRD.NET'
PASSWORD = 'a password'
GCM, ORDINARY = 'aes256-gcm:normal,aes128-gcm:normal', 'aes256-cts:normal'
LINKS = [(STOCK, HOME, ORDINARY), (HOME, AWAY, GCM), (AWAY, THIRD, ORDINARY)]


def ways(row):
    """[capaths] for users who walk along the row, either way."""
    paths = {}
    for line in (row, row[::-1]):
        for (i, start), (j, end) in itertools.combinations(enumerate(line), 2):
            paths.setdefault(start, {})[end] = list(line[i + 1:j]) or ['.']
    return {'capaths': paths}


def service(name):
    return f'host/www.{name.lower()}'


def vault(name):
    """Of a realm with servers: a service whose key is there."""
    return f'host/vault.{name.lower()}'


class World:
    def __init__(self, kdc, realms):
        self.kdc, self.realms = kdc, realms

    def __getitem__(self, name):
        return self.realms[name]


@pytest.fixture(scope='module', params=some(['without PACs', 'with PACs'], short=['with PACs']))
def world(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp('row')
    domains = {'domain_realm': {f'.{name.lower()}': name for name in ROW}}
    with contextlib.ExitStack() as stack:
        realms = {name: stack.enter_context(
            (realm_module.Realm if name in (HOME, AWAY) else realm_module.StockRealm)(
                folder / name, realm_module.Options(
                    realm=name, disable_pac=request.param == 'without PACs',
                    extra_database={'mpc_protect': 'host/vault*'})))
            for name in ROW}
        kdc = stack.enter_context(joint_kdc.JointKdc(
            folder, list(realms.values()), extra_krb5={**ways(ROW), **domains}))
        kdc.prepare()
        for one, other, enctypes in LINKS:
            for owner, issuer in ((one, other), (other, one)):
                for place in (one, other):
                    share_key(realms[place], f'krbtgt/{owner}@{issuer}', enctypes)
        for name, realm in realms.items():
            realm.kadmin_local(f"addprinc -pw '{PASSWORD}' alice")
            realm.add_service(service(name))
            if realm.servers:
                realm.kadmin_local(f'addprinc -randkey -e {GCM} {vault(name)}')
                realm.kadmin_local(f'setstr {vault(name)} session_enctypes aes256-cts')
        kdc.start()
        yield World(kdc, realms)


def share_key(realm, principal, enctypes):
    realm.kadmin_local(f"addprinc -pw 'of {principal}' -e {enctypes} {principal}")
    realm.kadmin_local(f'setstr {principal} session_enctypes aes256-cts')


def handles(realm, principal):
    lines = realm.run(config_files.mpc_program('mpc-kdb'), 'list').stdout.splitlines()
    return [line for line in lines if json.loads(line)['principal'] == principal]


def visit(realm, wanted, check=True, **options):
    """alice of this realm, freshly logged in, asks for that ticket."""
    realm.run('kdestroy')
    realm.kinit('alice', PASSWORD)
    return realm.kvno(wanted, check=check, **options)


def test_keys_between_realms_are_on_the_servers(world):
    for principal, counts in ((f'krbtgt/{STOCK}@{HOME}', (1,)), (f'krbtgt/{HOME}@{STOCK}', (1,)),
                              (f'krbtgt/{AWAY}@{HOME}', (2, 2))):
        holders = [realm for realm in (world[HOME], world[AWAY])
                   if handles(realm, principal)]
        assert tuple(len(handles(realm, principal)) for realm in holders) == counts
    dump = world[HOME].dump(world[HOME].dir / 'everything.dump').read_text()
    entry = next(line for line in dump.splitlines() if f'krbtgt/{STOCK}@{HOME}' in line)
    assert b'remote-key:'.hex() in entry, 'and not in the database'


@pytest.mark.parametrize('start,end', itertools.permutations(ROW, 2))
def test_every_way_along_the_row(world, start, end):
    """One, two and three hops; through realms with servers and without, of either kind of key."""
    visit(world[start], f'{service(end)}@{end}')
    assert f'{service(end)}@{end}' in world[start].klist().stdout


@pytest.mark.parametrize('end', [HOME, AWAY])
@pytest.mark.parametrize('start', ROW)
def test_tickets_that_the_servers_seal_for_who_came_from_afar(world, start, end):
    """The realm's own TGT, and a ticket for a protected service: their headers name the key by which he
    came in, and the realm's KDC believes them."""
    realm = world[start]
    visit(realm, f'krbtgt/{end}@{end}')
    realm.kvno(f'{vault(end)}@{end}')
    realm.kvno(f'{service(end)}@{end}')
    listing = realm.klist().stdout
    assert f'krbtgt/{end}@{end}' in listing and f'{vault(end)}@{end}' in listing
    assert 'NEW_TICKET_HEADER' not in world.kdc.log_text()


def test_a_way_that_is_not_allowed(world):
    """The client thinks that OTHER.ORG may vouch for users of STOCK.NET by another way than the KDC's
    configuration has: each KDC judges the transited field, as MIT's does."""
    row = (STOCK, HOME, AWAY, THIRD)
    text = (world.kdc.dir / 'krb5.conf').read_text()
    allowed = config_files.profile(ways(row))
    assert allowed in text
    narrow = config_files.profile({'capaths': {THIRD: {AWAY: ['.']}, AWAY: {THIRD: ['.']}}})
    try:
        (world.kdc.dir / 'krb5.conf').write_text(text.replace(allowed, narrow))
        world.kdc.restart()
        refused = visit(world[STOCK], f'krbtgt/{AWAY}@{AWAY}', check=False)
        assert refused.returncode
        assert 'BAD_TRANSIT' in world.kdc.log_text()
        visit(world[STOCK], f'{service(HOME)}@{HOME}')  # a neighbor needs nobody's leave
    finally:
        (world.kdc.dir / 'krb5.conf').write_text(text)
        world.kdc.restart()
    visit(world[STOCK], f'krbtgt/{AWAY}@{AWAY}')


def test_a_new_key_between_realms(world):
    """As deploy/runbooks/rotate-krbtgt.md says, of enctype 18: where tickets come in first."""
    principal = f'krbtgt/{HOME}@{STOCK}'
    world[STOCK].run('kdestroy')
    world[STOCK].kinit('alice', PASSWORD, ccache='before')
    world[STOCK].kvno(principal, ccache='before')
    for name in (HOME, STOCK):
        world[name].kadmin_local(f"cpw -keepold -pw 'another' -e {ORDINARY} {principal}")
        visit(world[STOCK], f'{service(HOME)}@{HOME}')
    assert len(handles(world[HOME], principal)) == 2
    world[STOCK].kvno(f'{service(HOME)}@{HOME}', ccache='before')
    for name in (STOCK, HOME):
        world[name].kadmin_local(f'purgekeys {principal}')
    assert len(handles(world[HOME], principal)) == 1
    world[HOME].add_service('host/new.example.com')
    refused = world[STOCK].kvno(f'host/new.example.com@{HOME}', ccache='before', check=False)
    assert refused.returncode
    visit(world[STOCK], f'host/new.example.com@{HOME}')


# Referrals ----------------------------------------------------------------------------------------

def ask_for_host(realm, host, check=True):
    """alice, freshly logged in, whose client knows nothing of domains. What its library did."""
    plain, trace = realm.dir / 'no-domains.conf', realm.dir / 'trace'
    plain.write_text((realm.dir / 'krb5.conf').read_text().split('[domain_realm]')[0])
    trace.unlink(missing_ok=True)
    realm.run('kdestroy')
    realm.kinit('alice', PASSWORD)
    realm.kvno(host, '-S', 'host', check=check,
               env={'KRB5_CONFIG': str(plain), 'KRB5_TRACE': str(trace)})
    return trace.read_text()


def test_a_host_of_another_realm_by_referral(world):
    """The client asks its own KDC, which knows by [domain_realm] whose host that is."""
    realm = world[HOME]
    seen = ask_for_host(realm, 'www.other.org')
    assert f'Following referral TGT krbtgt/{AWAY}@{HOME}' in seen
    assert f'host/www.other.org@{AWAY}' in realm.klist().stdout
    # On to the ordinary realm behind it, by two referrals.
    seen = ask_for_host(realm, 'www.third.net')
    assert f'Following referral TGT krbtgt/{AWAY}@{HOME}' in seen
    assert f'Following referral TGT krbtgt/{THIRD}@{AWAY}' in seen
    assert f'host/www.third.net@{THIRD}' in realm.klist().stdout
    # And from one to us.
    seen = ask_for_host(world[STOCK], 'www.example.com')
    assert f'Following referral TGT krbtgt/{HOME}@{STOCK}' in seen
    assert 'Following referral' not in ask_for_host(realm, 'www.nowhere.test', check=False)


def test_no_referral_where_the_realm_says_so(world):
    """no_host_referral = * of one realm; the others refer on."""
    path = world.kdc.dir / 'kdc.conf'
    text = path.read_text()
    marker = f'    {HOME} = {{\n'
    assert marker in text
    try:
        path.write_text(text.replace(marker, marker + '        no_host_referral = *\n', 1))
        world.kdc.restart()
        assert 'Following referral' not in ask_for_host(world[HOME], 'www.other.org', check=False)
        assert 'Following referral' in ask_for_host(world[STOCK], 'www.example.com')
    finally:
        path.write_text(text)
        world.kdc.restart()


def test_clients_are_not_referred(world):
    """db2 has no entries of other realms: an enterprise name of another realm is unknown, as with MIT's
    KDC."""
    for name in (HOME, STOCK):
        unknown = world[name].run('kinit', '-E', f'alice@{AWAY}', stdin=PASSWORD + '\n',
                                  check=False, env=world[name].with_ccache('enterprise'))
        assert 'not found in Kerberos database' in unknown.stdout
