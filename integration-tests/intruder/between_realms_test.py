# SPDX-License-Identifier: Apache-2.0
"""Between realms: an ordinary realm that lies about its users, and a KDC of ours that was broken into and
has a ticket of that realm. Whatever they say, the header that our servers write names the key between the
realms, and honest KDCs ask [capaths] whether that realm may vouch.

    STOCK.NET (who lies) --18-- EXAMPLE.COM (ours) --18-- THIRD.NET (whose users he would be)"""

import contextlib
import os
import time

import intruder as intruder_module
import joint_kdc
import keys
import pytest
import realm as realm_module
import ticket
import wire

HOME, STOCK, THIRD = 'EXAMPLE.COM', 'STOCK.NET', 'THIRD.NET'
IN = f'krbtgt/{HOME}@{STOCK}'
SECRET = 'of both realms'
SERVICE = 'host/www.example.com'
# A liar says as well that he has judged the way: else krb5_rd_req() judges it before all else.
FLAGS = (ticket.FORWARDABLE | ticket.RENEWABLE | ticket.PRE_AUTHENT
         | ticket.TRANSIT_POLICY_CHECKED)


class World:
    def __init__(self, kdc, home, stock):
        self.kdc, self.home, self.stock = kdc, home, stock
        self.base = keys.string_to_key(keys.AES256_CTS, SECRET, keys.principal_salt(IN))
        self.intruder = intruder_module.Intruder(home)

    def incoming(self, client, **inside):
        """A ticket for EXAMPLE.COM, made by who has STOCK.NET's key: it says what he likes."""
        contents = ticket.Inside(client, flags=FLAGS, **inside)
        message = keys.cts_seal(self.base, 2, contents.encode(), os.urandom(16))
        return ticket.Tgt(contents, message, b'')

    def ask(self, tgt, wanted, server=IN, enctype=keys.AES256_CTS):
        """At the honest KDC, with stock kvno."""
        cache = self.home.dir / 'forged'
        realm = tgt.inside.client.split('@')[1]
        ticket.write_ccache(cache, tgt, server, enctype, 1, found_as=f'krbtgt/{HOME}@{realm}')
        return self.home.kvno(wanted, ccache='forged', check=False)

    def reissue(self, incoming, inside, **inside_of):
        """In EXAMPLE.COM's KDC: a TGT of the realm, made from it, that says what he likes."""
        us = self.intruder
        answers = us.servers.ask(us.job(
            'REISSUE_TICKET',
            opens=[us.open_part(us.handles[IN, keys.AES256_CTS], 2, incoming.message)],
            seals=[us.seal_part(us.krbtgt, 2, 400)]))
        assert wire.all_ok(answers), [a and a.detail for a in answers]
        contents = ticket.Inside(inside, flags=incoming.inside.flags, **inside_of)
        message, keystream = us.finish(answers, 0, contents.encode())
        return ticket.Tgt(contents, message, keystream)

    def ask_kadmind(self, incoming, client, query, **inside_of):
        """A ticket for kadmin/admin, made from it, at the honest kadmind; what kadmin prints."""
        us = self.intruder
        server = f'kadmin/admin@{HOME}'
        answers = us.servers.ask(us.job(
            'REISSUE_TICKET',
            opens=[us.open_part(us.handles[IN, keys.AES256_CTS], 2, incoming.message)],
            seals=[us.seal_part(us.handles[server, keys.AES256_GCM], 2, 400)]))
        assert wire.all_ok(answers), [a and a.detail for a in answers]
        contents = ticket.Inside(client, **inside_of)
        message, keystream = us.finish(answers, 0, contents.encode())
        ticket.write_ccache(self.home.dir / 'kadmins', ticket.Tgt(contents, message, keystream),
                            server, keys.AES256_GCM, 1)
        return self.home.run('kadmin', '-c', f'FILE:{self.home.dir / "kadmins"}', '-s',
                             f'127.0.0.1:{self.home.ports.kadmind}', '-r', HOME, '-q', query,
                             check=False).stdout

    def ask_with_tgt(self, tgt):
        return self.ask(tgt, f'{SERVICE}@{HOME}', f'krbtgt/{HOME}@{HOME}', keys.AES256_GCM)


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp('between')
    with contextlib.ExitStack() as stack:
        home, stock = (stack.enter_context(kind(folder / name, realm_module.Options(realm=name)))
                       for name, kind in ((HOME, realm_module.Realm),
                                          (STOCK, realm_module.StockRealm)))
        kdc = stack.enter_context(joint_kdc.JointKdc(folder, [home, stock]))
        kdc.prepare()
        for realm in (home, stock):
            realm.kadmin_local(f"addprinc -pw '{SECRET}' -e aes256-cts:normal {IN}")
        home.kadmin_local("addprinc -pw 'a password' alice")
        home.add_service(SERVICE)
        (home.kdc_dir / 'kadm5.acl').write_text(f'*/admin@{THIRD} *\n')
        home.kadmind.stop()
        home.kadmind.start()
        kdc.start()
        made = World(kdc, home, stock)
        yield made
        made.intruder.close()


def test_a_realm_that_lies(world):
    """It vouches for its own users, whatever it says about them, and for nobody else."""
    wanted = f'{SERVICE}@{HOME}'
    honest = world.ask(world.incoming(f'bob@{STOCK}'), wanted)
    assert honest.returncode == 0, honest.stdout
    for client, reason in ((f'alice@{HOME}', 'LINEAGE'), (f'admin/admin@{HOME}', 'LINEAGE'),
                           (f'victim@{THIRD}', 'BAD_TRANSIT')):
        for transited in ('', STOCK, f'{STOCK},{THIRD}', ','):
            refused = world.ask(world.incoming(client, transited=transited), wanted)
            assert refused.returncode, (client, transited)
        assert reason in world.kdc.log_text()


def test_a_realm_that_lies_about_times(world):
    """A login of a month ago is that realm's word. What we make of it ends by our own clocks."""
    wanted = f'krbtgt/{HOME}@{HOME}'
    month = 30 * 24 * 3600
    old = world.incoming(f'bob@{STOCK}', auth=int(time.time()) - month, life=2 * month,
                         renewable=20 * month)
    assert world.ask(old, wanted).returncode == 0
    made = world.home.run('klist', '-f', env=world.home.with_ccache('forged')).stdout
    assert wanted in made
    ended = world.incoming(f'bob@{STOCK}', auth=int(time.time()) - month, life=month // 2)
    assert world.ask(ended, wanted).returncode


def test_a_neighbor_cannot_be_left_out(world):
    """He is in EXAMPLE.COM's KDC, where a ticket of STOCK.NET's bob came by. What he makes of it names
    STOCK.NET's key, and honest KDCs see whom that may be."""
    incoming = world.incoming(f'bob@{STOCK}')
    control = world.ask_with_tgt(world.reissue(incoming, f'bob@{STOCK}'))
    assert control.returncode == 0, control.stdout
    header = world.reissue(incoming, f'bob@{STOCK}').header
    assert header[1:17] == intruder_module.hashlib.sha256(
        b'mpc-kdc principal v1\0' + IN.encode()).digest()[:16]
    left_out = 'does not agree with its header: another principal has authenticated'
    for client, transited in ((f'alice@{HOME}', ''), (f'alice@{HOME}', STOCK),
                              (f'victim@{THIRD}', ''), (f'victim@{THIRD}', 'FOURTH.NET'),
                              (f'victim@{THIRD}', f'{STOCK},'), (f'victim@{THIRD}', ',')):
        seen = world.kdc.log_text().count(left_out)
        refused = world.ask_with_tgt(world.reissue(incoming, client, transited=transited))
        assert refused.returncode, (client, transited)
        assert world.kdc.log_text().count(left_out) > seen, (client, transited)
    # Named, it is for [capaths] to say.
    refused = world.ask_with_tgt(world.reissue(incoming, f'victim@{THIRD}', transited=STOCK))
    assert refused.returncode
    assert 'BAD_TRANSIT' in world.kdc.log_text()


def test_he_seals_nothing_in_the_other_realms_name(world):
    us = world.intruder
    handle = us.handles[IN, keys.AES256_CTS]
    incoming = world.incoming(f'bob@{STOCK}')
    job = us.job('REISSUE_TICKET', opens=[us.open_part(handle, 2, incoming.message)],
                 seals=[us.seal_part(handle, 2, 200)])
    answers = us.servers.ask(job)
    assert {wire.verdict(a) for a in answers} <= {'REFUSED', 'MALFORMED'}
    answers = us.servers.ask(us.job('MAKE_CHECKSUM', make_macs=[us.mac_part(handle, 17, b'pac')]))
    assert {wire.verdict(a) for a in answers} == {'REFUSED'}


def test_a_flag_makes_nobody_an_administrator_of_a_third_realm(world):
    """THIRD.NET's administrators administer EXAMPLE.COM (kadm5.acl), and STOCK.NET may vouch for
    nobody but its own: [capaths] knows no way through it. The KDC says in the ticket that it asked [capaths]."""
    incoming = world.incoming(f'bob@{STOCK}')
    honest = ticket.FORWARDABLE | ticket.PRE_AUTHENT
    said = world.ask_kadmind(incoming, f'root/admin@{THIRD}', 'getprinc alice', transited=STOCK,
                             flags=honest)
    assert f'Principal: alice@{HOME}' not in said, said  # kadmind asks [capaths] itself
    assert 'llegal cross-realm' in said or 'Authentication error' in said or 'GSS' in said, said
    said = world.ask_kadmind(incoming, f'root/admin@{THIRD}', 'cpw -pw "of the intruder" alice',
                             transited=STOCK, flags=honest | ticket.TRANSIT_POLICY_CHECKED)
    assert 'changed' not in said, said
    assert world.home.kinit('alice', 'of the intruder', check=False).returncode, \
        'alice has the password that the intruder gave her'
