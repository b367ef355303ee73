# SPDX-License-Identifier: Apache-2.0
"""What must hold beside what commands print: who logs in, what thieves and intruders have left of it."""

import shutil
import subprocess


import config_files
import daemon
import keys
import storefile

from world import PASSWORDS, answers

REALM = 'EXAMPLE.COM'
DATA, KEY = 'mpc-kdc', 'mpc-kdc-key'


# Users ---------------------------------------------------------------------------------------------

def password(name):
    return PASSWORDS[f'Password for {name}@{REALM}:']


def logs_in(world, name, secret=None):
    """Whether a user does, who waits for servers that have just come back."""
    def attempt():
        nonlocal said
        said = world.run('client', f'kinit -c FILE:/srv/ops/try {name}', False,
                         [(f'Password for {name}@{REALM}:', secret or password(name))], check=False)
        return 'not available' not in said.text and 'Cannot contact' not in said.text
    said = None
    daemon.wait_until(attempt, 45, 0.5)
    return said.status == 0


def users_log_in(world):
    for name in ('alice', 'bob'):
        if exists(world, name):
            assert logs_in(world, name), f'{name} does not log in'
    assert not logs_in(world, 'alice', 'a wrong password')


def is_well(world):
    return world.run('admin', 'mpc-admin doctor', check=False).status == 0 and logs_in(world, 'alice')


def exists(world, name):
    return world.run('kdc', f'kadmin.local getprinc {name}', check=False).status == 0


def enroll(world, name, secret, options=''):
    prompt = f'Password for {name}@{REALM}:'
    world.run('admin', f'mpc-admin enroll {name} {options}', typed=answers([(prompt, secret)]))


def ensure_user(world, name):
    if not exists(world, name):
        enroll(world, name, password(name))
    assert logs_in(world, name)


def ensure_service(world, name):
    if not exists(world, name):
        world.run('kdc', f'kadmin.local addprinc -randkey {name}')


def make_keytab(world, name, secret):
    """At the administrator's, with a user's keys, as another realm's ktutil would."""
    key = keys.string_to_key(18, secret, keys.principal_salt(f'{name}@{REALM}'))
    script = f'addent -key -p {name}@{REALM} -k 1 -e aes256-cts\n{key.hex()}\nwkt users.keytab\nquit\n'
    world.file('admin', '/srv/root/script').write_text(script)
    world.run('admin', 'ktutil < script')


# Shares -----------------------------------------------------------------------------------------------

def shares_on(disk, party):
    """What a thief of a machine's disk reads in its store."""
    return storefile.read_store(disk / 'var-lib' / DATA / 'shares.mdb', disk / 'var-lib' / KEY / 'store.key', REALM,
                                party, config_files.CLUSTER)


def shares(world, name):
    return shares_on(world[name].folder, int(name[1]))


def joined(own, of_next, user):
    """What the stores of a party and of the next one come to."""
    return {storefile.join(record.base, of_next[handle].base) for handle, record in own.items()
            if record.principal == f'{user}@{REALM}' and handle in of_next}


def real_keys(store, user):
    principal = f'{user}@{REALM}'
    return {keys.string_to_key(record.enctype, password(user), keys.principal_salt(principal))
            for record in store.values() if record.principal == principal}


def old_share_is_worthless(world, name, before, stolen, user):
    """`before`: the store of the party before the thief's. With that he had the keys; with its store of now he
    has none."""
    real = real_keys(stolen, user)
    assert real and joined(before, stolen, user) == real, 'the control: of one epoch two disks are every key'
    assert not joined(shares(world, name), stolen, user) & real


def switch_off(world, name):
    world[name].off()


def lose_disk(world, name):
    world.run(name, 'systemctl stop mpc-server')
    for folder in (DATA, KEY):
        for path in (world[name].folder / 'var-lib' / folder).iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    world.run(name, 'systemctl start mpc-server')


def wait_for_journal(world, name, text):
    journal = world[name].processes['mpc-server'].journal
    assert daemon.wait_until(lambda: text in journal.read_text(errors='replace'), 30, 0.3), \
        journal.read_text(errors='replace')[-2000:]


# Tickets ----------------------------------------------------------------------------------------------

class Tickets:
    """Of alice, in a cache of their own; and whether they are still good for anything."""

    def __init__(self, world, name, service='kadmin/changepw'):
        self.world, self.cache, self.service = world, f'FILE:/srv/ops/{name}', service
        world.run('client', f'kinit -c {self.cache} alice', False,
                  [(f'Password for alice@{REALM}:', password('alice'))])
        self.count = 0

    def ask(self):
        """For a ticket that the cache does not have yet."""
        self.count += 1
        service = f'probe{self.count}/www.example.com'
        self.world.run('kdc', f'kadmin.local addprinc -randkey {service}', check=False)
        return self.world.run('client', f'KRB5CCNAME={self.cache} kvno {service}', False, check=False)

    def must_work(self):
        output = self.ask()
        assert output.status == 0, output.text

    def must_be_dead(self):
        output = self.ask()
        assert output.status == 1, output.text
        assert 'not found' not in output.text, 'the service is there: it is the ticket that is refused'


# Certificates --------------------------------------------------------------------------------------

def serial(world, name):
    """Of the certificate that a server shows."""
    machine = world[name]
    return world.run('client', f'openssl s_client -connect {machine.fqdn}:7750 < /dev/null 2>/dev/null | '
                               'openssl x509 -noout -serial', False).text


def certificate_of_the_new_authority_is_believed(world):
    world.run('ca', 'mpc-ca issue new-certs --realm EXAMPLE.COM --role admin --name paul')
    for name in ('admin-paul.pem', 'admin-paul.key'):
        world.run('admin', f'scp ca.example.com:new-certs/{name} /etc/mpc-kdc/{name}')
    world.run('admin', 'chmod 600 /etc/mpc-kdc/admin-paul.key')
    world.run('admin', 'sed "s/admin.pem/admin-paul.pem/; s/admin.key/admin-paul.key/" /etc/mpc-kdc/admin.toml '
                       '> /etc/mpc-kdc/paul.toml')
    # The servers take the new authority within seconds, each by itself.
    status = 'mpc-admin --config /etc/mpc-kdc/paul.toml status'
    assert daemon.wait_until(lambda: world.run('admin', status, check=False).status == 0, 30, 1), \
        world.run('admin', status, check=False).text


def servers_say_that_they_are_older(world):
    """They run a copy of the program that has another PATCH in its version's text, and nothing else."""
    program = config_files.mpc_program('mpc-server')
    said = subprocess.run([program, '--version'], stdout=subprocess.PIPE, check=True, encoding='utf-8')
    text = said.stdout.split()[1]
    older = text.rsplit('.', 1)[0] + '.9'
    data = open(program, 'rb').read().replace(text.encode(), older.encode())
    for name in ('p0', 'p1', 'p2'):
        link = world[name].folder / 'bin/mpc-server'
        link.unlink()
        link.write_bytes(data)
        link.chmod(0o755)
        world.run(name, 'systemctl restart mpc-server')
        assert older in world.run(name, 'mpc-server --version').text


# Intruders -------------------------------------------------------------------------------------------

class Liar:
    """A server whose program is another one, that lies when it is told to."""

    def __init__(self, world, name):
        self.world, self.machine = world, world[name]
        self._control = self.machine.folder / 'var-log/control'

    def _run(self, program):
        link = self.machine.folder / 'bin/mpc-server'
        link.unlink()
        link.symlink_to(f'/srv/programs/cmd/{program}')
        self.world.run(self.machine.name, 'systemctl restart mpc-server')

    def lie(self):
        self._control.write_text('')
        self.machine.exported['MPCKDC_CONTROL_FILE'] = '/var/log/control'
        self._run('mpc-server-control')
        assert logs_in(self.world, 'alice')
        self._control.write_text('TrueMessages\n')
        said = self.world.run('client', 'kinit alice', False, answers(()), check=False)
        assert said.status == 1 and 'not available' in said.text, said.text
        self._control.write_text('')

    def is_replaced(self):
        del self.machine.exported['MPCKDC_CONTROL_FILE']
        self._run('mpc-server')


class KdcIntruder:
    """He copied the KDC's machine, and tries what he has after each step of the runbook."""

    def __init__(self, world, service):
        self.world, self.service = world, service
        administrator_has_a_ticket(world)
        world.follow('backup-restore.md', only={'Back up the KDC'})
        self.backups = take_backups(world)
        self.tickets = Tickets(world, 'before')
        world.run('client', f'KRB5CCNAME={self.tickets.cache} kvno {service}', False)
        world.run('kdc', f'kadmin.local ktadd -norandkey -k stolen.keytab {service}')

    def takes_everything(self):
        thief = self.world.steal('kdc', 'thief')
        (thief.folder / 'etc/mpc-kdc/thief.toml').write_text(
            'realm = "EXAMPLE.COM"\ncluster = 1\n'
            'servers = ["mpc0.example.com:7750", "mpc1.example.org:7750", "mpc2.example.net:7750"]\n'
            'kdb_command = "mpc-kdb"\n[identity]\ncertificate = "kadmind.pem"\nkey = "kadmind.key"\n'
            'ca = "ca.pem"\n')
        thief.install('mpc-admin')

    def _tries(self):
        """(his krb5kdc logs alice in, he reads keys as kadmind)"""
        started = self.world.run('thief', 'systemctl restart krb5-kdc', check=False)
        assert started.status == 0, 'the stolen KDC itself starts'
        said = self.world.run('client', 'kinit -c FILE:/srv/ops/thief alice', False, answers(()), check=False)
        listed = self.world.run('thief', 'mpc-admin --config /etc/mpc-kdc/thief.toml list alice', check=False)
        self.world.run('thief', 'systemctl stop krb5-kdc')
        return said.status == 0, listed.status == 0, said.text + listed.text

    def is_served(self):
        login, listing, text = self._tries()
        assert login and listing, 'the control: until then what he stole is good\n' + text

    def is_refused(self):
        login, listing, text = self._tries()
        assert not login and not listing, text
        assert 'not available' in text, text

    def meets_a_new_host(self):
        world = self.world
        world.replace_machine('kdc')
        world.follow('install.md', only={'The KDC'}, until='kdb5_util create')
        put_backups(world, self.backups)

    def has_old_tickets(self):
        self.tickets.must_work()

    def has_no_old_ticket(self):
        self.tickets.must_be_dead()
        assert self.administers('good until the next step')

    def administers(self, why):
        said = self.world.run('client', 'kadmin -c FILE:/srv/ops/kadmin-before -q "getprinc alice"', False, check=False)
        return 'Principal: alice' in said.text, why

    def has_no_kadmin_ticket(self):
        assert not self.administers('over')[0]

    def has_no_service_key(self):
        """A ticket under the key that was stolen; the service's new keytab opens it no more."""
        world = self.world
        for keytab, good in (('stolen.keytab', True), ('www.keytab', False)):
            source = world['thief' if good else 'kdc'].folder / 'root' / keytab
            target = world['client'].folder / 'ops' / keytab
            shutil.copyfile(source, target)
            target.chmod(0o644)
            command = f'KRB5CCNAME={self.tickets.cache} kvno -k {keytab} {self.service}'
            said = world.run('client', command, False, check=False)
            assert (said.status == 0) == good, f'{keytab}: {said.text}'
        world['thief'].off()


def take_backups(world):
    """What the page about backups has made at the KDC, to another place."""
    return {name: world.file('kdc', f'/var/backups/{name}').read_bytes() for name in ('krb5kdc.dump', 'krb5kdc.stash')}


def put_backups(world, backups):
    for name, data in backups.items():
        world.file('kdc', f'/var/backups/{name}').write_bytes(data)


def administrator_has_a_ticket(world):
    """ops/admin has a ticket for kadmin in a cache."""
    ensure_user(world, 'ops/admin')
    world.run('client', 'kinit -c FILE:/srv/ops/kadmin-before -S kadmin/admin ops/admin', False, answers(()))


# A realm of MIT's ----------------------------------------------------------------------------------

_OLD_KDC_CONF = '''[kdcdefaults]
    kdc_listen = 192.0.2.20:88
    kdc_tcp_listen = 192.0.2.20:88
[realms]
    EXAMPLE.COM = {
        database_module = old
        supported_enctypes = aes256-cts:normal aes128-cts:normal
        key_stash_file = /etc/krb5kdc/stash
        acl_file = /etc/krb5kdc/kadm5.acl
        kadmind_listen = 192.0.2.20:749
        kpasswd_listen = 192.0.2.20:464
    }
[dbmodules]
    old = {
        db_library = db2
        database_name = /var/lib/krb5kdc/principal
    }
'''


def mit_realm(world, service):
    """It serves users; our servers and certificates are there, and nobody uses them."""
    world.follow('install.md', only={
        'The authority', 'The three servers', 'Configuration of a server', 'The administrator'})
    world.follow('install.md', only={'The KDC'}, until='cat > /etc/krb5kdc/kdc.conf')
    world.file('kdc', '/etc/krb5kdc/kdc.conf').write_text(_OLD_KDC_CONF)
    world.run('kdc', "echo '*/admin@EXAMPLE.COM *' > /etc/krb5kdc/kadm5.acl")
    world.run('kdc', 'kdb5_util create -s -P "the old master password"')
    for name in ('alice', 'bob', 'ops/admin'):
        world.run('kdc', f'kadmin.local addprinc -pw "{password(name)}" {name}')
    world.run('kdc', f'kadmin.local addprinc -randkey {service}')
    world.run('kdc', 'systemctl start krb5-kdc krb5-admin-server')
    world['client'].install('krb5-user')
    world.run('client', 'scp kdc1.example.com:/etc/krb5.conf /etc/krb5.conf')
    assert logs_in(world, 'alice')
