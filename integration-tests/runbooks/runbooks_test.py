# SPDX-License-Identifier: Apache-2.0
"""Every runbook is followed, word by word, on machines on which install.md made a realm. Each leaves the realm
with users who log in, and the next one goes on from there; one that is chosen alone works as well."""

import re

import pytest

import console
import daemon
import proofs
from long_tests import LONG
from world import RUNBOOKS

SERVICE = 'host/www.example.com'


@pytest.fixture(scope='module')
def installed(bare):
    """The realm, as long as it is well and as install.md makes it; else a new one."""
    worlds, changed = [], []

    def make():
        if not worlds or worlds[-1] in changed or not proofs.is_well(worlds[-1]):
            worlds.append(bare())
            worlds[-1].follow('install.md')
        return worlds[-1]
    make.changed = changed
    return make


@pytest.fixture
def world(installed):
    made = installed()
    proofs.ensure_user(made, 'bob')
    proofs.ensure_service(made, SERVICE)
    yield made
    proofs.users_log_in(made)


def test_install_and_enrol(installed):
    made = installed()
    proofs.users_log_in(made)
    made.follow('enrol.md', before={'Many at once': lambda: proofs.make_keytab(made, 'robot', 'a third password')})
    made.run('client', 'kinit robot', False,
             [('Password for robot@EXAMPLE.COM:', 'a third password')])
    proofs.users_log_in(made)


def test_a_command_that_prints_something_else_fails(installed, monkeypatch):
    """The harness sees."""
    import world as world_module
    made = installed()
    monkeypatch.setattr(world_module, 'PATIENCE', 0)
    monkeypatch.setattr(world_module, 'RECORDING', None)
    for old, new in (('... 0 bad, 0 warnings', '... 1 bad, 0 warnings'), ('mpc-admin doctor', 'mpc-admin doctor --json')):
        page = made.folder / 'page.md'
        text = (world_module.RUNBOOKS / 'install.md').read_text()
        assert old in text
        page.write_text(text.replace(old, new))
        with pytest.raises(world_module.Unlike):
            made.follow(page, only={'Did it work'})
    made.follow('install.md', only={'Did it work'})


@LONG
def test_logins_fail(world):
    world.follow('logins-fail.md', before={'Look': lambda: world.run('p1', 'systemctl stop mpc-server')})


@LONG
def test_a_server_is_lost(world):
    before = proofs.shares(world, 'p0')
    world.follow('server-lost.md', before={
        'See that it is so': lambda: proofs.switch_off(world, 'p1'),
        'A machine in its place': lambda: setattr(world, 'lost', world.replace_machine('p1'))})
    proofs.old_share_is_worthless(world, 'p0', before, proofs.shares_on(world.lost, 1), 'alice')


@LONG
def test_a_server_was_broken_into(world):
    proofs.ensure_user(world, 'ops/admin')
    state = {}

    def the_thief_takes_it():
        state['p0'] = proofs.shares(world, 'p0')
        world.steal('p1', 'thief')

    def the_thief_comes_back():
        """With the old disk, at the old address."""
        assert world.run('thief', 'systemctl start mpc-server').status == 0
        status = world.run('admin', 'mpc-admin status', check=False)
        assert status.status == 1 and 'ready' not in status.text, status.text
        proofs.wait_for_journal(world, 'p0', "is on this server's deny list")
        state['disk'] = world['thief'].folder
        world['thief'].off()
        world.replace_machine('p1')
        world.follow('server-lost.md', only={'A machine in its place'})

    tickets = proofs.Tickets(world, 'before')
    world.follow('server-compromised.md', before={
        '1. Cut it off': the_thief_takes_it,
        '3. A machine in its place': the_thief_comes_back,
        'It was two': lambda: tickets.must_work()})
    tickets.must_be_dead()
    proofs.old_share_is_worthless(world, 'p0', state['p0'], proofs.shares_on(state['disk'], 1), 'bob')


@LONG
def test_a_server_deviated(world):
    liar = proofs.Liar(world, 'p1')
    world.follow('a-server-deviated.md', before={
        '1. Who': liar.lie, '5. Readmit': liar.is_replaced})


@LONG
def test_certificates(world, installed):
    pid = world['p1'].processes['mpc-server'].child.pid
    before = proofs.serial(world, 'p1')

    def renewed():
        assert daemon.wait_until(lambda: proofs.serial(world, "p1") != before, 60, 1), 'it shows the new certificate'
        assert world['p1'].processes['mpc-server'].child.pid == pid, 'and was not restarted'

    world.follow('certificates.md', before={"The KDC's and kadmind's": renewed})
    proofs.certificate_of_the_new_authority_is_believed(world)
    installed.changed.append(world)  # p1's certificate is the new authority's: install.md's machines have the old one


@LONG
def test_backup_and_restore(world):
    world.run('admin', 'mpc-admin delete bob --now')

    def meanwhile():
        proofs.enroll(world, 'bob', 'another password')
        proofs.enroll(world, 'alice', 'a second password', '--replace --delete-old')
        assert proofs.logs_in(world, 'alice', 'a second password')

    def enrolled_since():
        proofs.enroll(world, 'carol', 'a third password')

    world.follow('backup-restore.md', before={
        "The KDC's database from a dump": meanwhile, "A server's store, of this epoch": enrolled_since})
    assert proofs.logs_in(world, 'carol', 'a third password')
    assert not proofs.logs_in(world, 'alice', 'a second password')
    proofs.enroll(world, 'bob', 'another password')


@LONG
def test_share_epochs(world):
    def two_disks_are_lost():
        world.run('p1', 'rm -rf /var/backups/mpc-kdc')
        world.follow('backup-restore.md', only={'Back up a server'})
        for name in ('p1', 'p2'):
            proofs.lose_disk(world, name)

    world.follow('epochs.md', before={'Two servers lost their disks': two_disks_are_lost})


@LONG
def test_rotate_krbtgt(world):
    proofs.logs_in(world, 'alice')
    world.run('kdc', 'kadmin.local addprinc -pw SECRET1 -e aes256-gcm:normal krbtgt/OTHER.ORG')
    tickets = proofs.Tickets(world, 'before')
    world.follow('rotate-krbtgt.md', before={'After a break-in': tickets.must_work})
    tickets.must_be_dead()


@LONG
def test_upgrade(world):
    proofs.servers_say_that_they_are_older(world)
    for headings in ({'Before', 'One after the other (only PATCH differs)'}, {'All at once (MINOR differs)'}, {'Back'}):
        world.follow('upgrade.md', only=headings)
    for party in ('p0', 'p1', 'p2'):
        world.run(party, 'rm -r /var/backups/mpc-kdc-before /var/backups/mpc-kdc-key-before')
    world.follow('upgrade.md', only={'All at once (MINOR differs)', 'Did it work'})


@LONG
def test_capacity(world):
    world.follow('capacity.md')


@LONG
def test_the_kdc_was_broken_into(world):
    intruder = proofs.KdcIntruder(world, SERVICE)
    world.follow('kdc-compromised.md', typed={'Password for bob@EXAMPLE.COM:': 'a new password'}.items(), before={
        '1. Off': intruder.takes_everything,
        '2. Refuse its certificates': intruder.is_served,
        '3. What did he do': intruder.is_refused,
        '4. A new host': intruder.meets_a_new_host,
        '5. krbtgt': intruder.has_old_tickets,
        '6. kadmin': intruder.has_no_old_ticket,
        '7. Services': intruder.has_no_kadmin_ticket,
        '8. Users': intruder.has_no_service_key})
    assert not proofs.logs_in(world, 'bob', 'another password')
    proofs.enroll(world, 'bob', 'another password', '--replace --delete-old')


@LONG
def test_the_kdc_is_lost(world):
    world.follow('backup-restore.md', only={'Back up the KDC'})
    backups = proofs.take_backups(world)
    proofs.enroll(world, 'alice', 'a second password', '--replace --delete-old')
    proofs.switch_off(world, 'kdc')

    def a_host_in_its_place():
        world.replace_machine('kdc')
        world.follow('install.md', only={'The KDC'}, until='kdb5_util create')
        proofs.put_backups(world, backups)

    newer = 'krbtgt was rotated since the dump'
    others = {step.heading for step in console.read(RUNBOOKS / 'kdc-lost.md')} - {newer}
    world.follow('kdc-lost.md', before={'A host in its place': a_host_in_its_place}, only=others)

    for command in ('rotate-krbtgt --force', 'rotate-krbtgt --finish --force', 'gc --now --yes'):
        world.run('admin', f'mpc-admin {command}')
    world.run('kdc', 'kdb5_util load /var/backups/krb5kdc.dump')
    proofs.enroll(world, 'alice', proofs.password('alice'), '--replace --delete-old')
    world.follow('kdc-lost.md', only={newer})


@LONG
def test_a_party_moves(world):
    before = proofs.shares(world, 'p1')
    world.follow('move-party.md')
    proofs.old_share_is_worthless(world, 'p1', before, proofs.shares(world, 'p2'), 'alice')
    world.machines['p2'], world.machines['new'] = world['new'], world['p2']


@LONG
def test_an_mit_realm_comes_here(bare):
    made = bare()
    proofs.mit_realm(made, SERVICE)
    made.follow('migrate.md')
    assert re.search('0 bad', made.run('admin', 'mpc-admin doctor').text)
    for name in ('alice', 'bob'):
        assert proofs.logs_in(made, name)
    proofs.users_log_in(made)
