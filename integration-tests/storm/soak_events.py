# SPDX-License-Identifier: Apache-2.0
"""What `make soak` does to a realm beside its logins: what its administrators do, and what happens to
them. Each ends when the realm is as good as before, and has checked that itself.

An event that takes a party away from the realm is an outage: logins fail from its beginning until
World.wait_until_well() returned last. Everything else may cost no login. Where each party has one
machine, that is all that ends a server; where it has two, only the loss of all its shares."""

import functools
import json
import shutil
import subprocess
import time

import config_files
import daemon
import triples

EVENTS = {}  # by name: (function, which realms it is an outage to, whether no process ends in it)
NOBODY, ONE_TRIPLE, EVERYBODY = range(3)
ANNA = ('anna', 'a password that stays')
BERT = 'bert'
WRONG = 'Password incorrect'
LONG = 4 * 3600  # seconds; of what goes through all keys


class EventError(Exception):
    """What was promised did not happen."""


def event(name, outage=NOBODY, calm=True):
    def register(function):
        EVENTS[name] = (function, outage, calm)
        return function
    return register


def check(good, *what):
    if not good:
        raise EventError(' '.join(map(str, what)))


class World:
    """The realm, and what the events remember of it. `pairs`: each party's databases, or ()."""

    def __init__(self, live, random, pairs=()):
        self.live, self.random, self.pairs = live, random, pairs
        self.triples = live.options.triples
        self.password = 'the first of many'  # BERT's
        self.changes = 0
        self.enrolled = []
        self.well_at = 0.0  # seconds since 1970; of wait_until_well()

    def prepare(self):
        self.live.enroll(*ANNA)
        self.live.enroll(BERT, self.password)

    def party(self):
        return self.random.randrange(3)

    def has_outage(self, kind):
        return kind == EVERYBODY or (kind == ONE_TRIPLE and self.triples == 1)

    def logs_in(self, name, password):
        return self.live.kinit(name, password, ccache='soak', check=False).returncode == 0

    def check_logins(self):
        """Right passwords are, wrong ones are not."""
        for user in (ANNA, (BERT, self.password), *self.enrolled[-1:]):
            done = self.live.kinit(*user, ccache='soak', check=False)
            check(not done.returncode, f'{user[0]} does not get in:', done.stdout)
        done = self.live.kinit(ANNA[0], 'not hers', ccache='soak', check=False)
        check(WRONG in done.stdout, 'a wrong password is not called wrong:', done.stdout)

    def wait_until_well(self, seconds=60):
        """All are connected, and somebody gets in."""
        self.live.wait_for_servers()
        if self.triples > 1:
            triples.wait_until_healthy(self.live)
        check(daemon.wait_until(lambda: self.logs_in(*ANNA), seconds, 0.1),
              f'nobody gets in {seconds} s after all are back')
        self.well_at = time.time()

    def settle(self):
        """Nothing is being rewritten or received."""
        check(daemon.wait_until(lambda: not any(
            status.get('refreshing', True) or status.get('receiving', True)
            for status in self.live.server_status()), LONG, 0.5), 'the servers do not settle')

    def kill(self, process):
        """kill -9, and wait until nothing of it is left: a lock on a folder, a port."""
        process.kill()
        process.exit_status()

    def heal(self):
        """After an event that failed: whatever does not run is started, so that the next one may do."""
        for process in (*self.live.servers, self.live.kdc, self.live.kadmind):
            if not process.is_running():
                process.start()

    def change_password(self):
        self.changes += 1
        self.password = f'number {self.changes} of many'
        self.live.kadmin_local(f'cpw -pw "{self.password}" {BERT}')


# ---- What costs nothing ----

@event('refresh')
def refresh(world):
    world.settle()
    begun = time.monotonic()
    world.live.admin('refresh', timeout=LONG)
    return f'{time.monotonic() - begun:.1f} s until the old keys are erased'


@event('rotate-krbtgt')
def rotate(world):
    """Draws a key, or ends the old one: one after the other."""
    status = json.loads(world.live.admin('rotate-krbtgt', '--status', '--json').stdout)
    if len(status['principals'][0]['versions']) > 1:
        world.live.admin('rotate-krbtgt', '--finish', '--force')
        return 'finished'
    world.live.admin('rotate-krbtgt')
    return 'a new key'


@event('password')
def password(world):
    old = world.password
    world.change_password()
    done = world.live.kinit(BERT, old, ccache='soak', check=False)
    check(WRONG in done.stdout, 'the old password is not called wrong:', done.stdout)


@event('old dump')
def old_dump(world):
    """The database of before a password change, and back: no password is lost to anybody."""
    live, old = world.live, world.password
    before = live.dump(live.dir / 'soak-before')
    world.change_password()
    today = live.dump(live.dir / 'soak-today')
    live.run('kdb5_util', 'load', before, timeout=LONG)
    check(world.logs_in(BERT, old), 'after the load of an older dump its password is refused')
    live.run('kdb5_util', 'load', today, timeout=LONG)
    check(world.logs_in(BERT, world.password), 'after the load of the newer dump too')


@event('enroll')
def enroll(world):
    user = (f'newcomer{len(world.enrolled)}', f'of {len(world.enrolled)}')
    world.live.enroll(*user)
    world.enrolled.append(user)
    check(world.logs_in(*user), 'who was enrolled does not get in')


@event('gc')
def collect(world):
    return world.live.admin('gc', '--now', '--yes', timeout=LONG).stdout.strip().splitlines()[-1]


@event('kill krb5kdc', calm=False)
def kill_kdc(world):
    """Clients ask again after a second, so nobody may notice."""
    world.kill(world.live.kdc)
    world.live.kdc.start()
    world.live._wait_for_port(world.live.kdc, world.live.ports.kdc)


# ---- What takes a server away ----

@event('kill server', outage=ONE_TRIPLE, calm=False)
def kill_server(world):
    server = world.random.choice(world.live.servers)
    world.kill(server)
    server.start()
    world.wait_until_well()
    return server.name


@event('kill triple', calm=False)
def kill_triple(world):
    """All machines of one, of which there are two."""
    triple = world.random.randrange(world.triples)
    victims = world.live.servers[triples.machine(triple, 0):triples.machine(triple, 3)]
    for server in victims:
        world.kill(server)
    for server in victims:
        server.start()
    world.wait_until_well()
    return ', '.join(server.name for server in victims)


@event('replace party', outage=EVERYBODY, calm=False)
def replace(world):
    """All of its shares are lost, with the store key of each of its machines (epochs.md)."""
    world.settle()
    party = world.party()
    live = world.live
    machines = live.servers[party::3]
    for server in machines:
        server.stop()
    empty_store(world, party)
    machines[0].start()
    live._wait_for_port(machines[0], live.ports.clients[party])
    live.admin('replace-party', party, timeout=LONG)
    config_files.share_store_keys(live, party)
    for server in machines[1:]:
        server.start()
    world.wait_until_well()
    return f'p{party}, {live.server_status()[party]["keys"]} keys'


def empty_store(world, party):
    world.live.empty_store(party)
    if world.pairs:
        pair = world.pairs[party]
        pair.sql(f'DROP DATABASE p{party} WITH (FORCE)')
        pair.sql(f'CREATE DATABASE p{party} OWNER mpcowner')
        pair.wait_until_replayed()
        migrate(world.live, pair, party)


def migrate(live, pair, party):
    subprocess.run(
        [config_files.mpc_program('mpc-server'), f'--config={live.dir}/p{party}/mpc-server.toml',
         '--migrate', f'--migrate-as={pair.conninfo(f"p{party}", "mpcowner")}'],
        check=True, stdout=subprocess.DEVNULL)


@event('backup, restore', outage=ONE_TRIPLE, calm=False)
def restore(world):
    """A copy of this epoch comes back after somebody was enrolled: catch-up brings that."""
    world.settle()
    party, live = world.party(), world.live
    folder, copy = live.dir / f'p{party}', live.dir / 'soak-copy'
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir(mode=0o700)
    subprocess.run([config_files.mpc_program('mpc-server'), f'--config={folder}/mpc-server.toml',
                    f'--backup={copy}'], check=True, capture_output=True)
    enroll(world)
    live.servers[party].stop()
    for file in (folder / 'data').glob('shares.mdb*'):
        file.unlink()
    for file in copy.iterdir():
        shutil.move(file, folder / 'data' / file.name)
    live.servers[party].start()
    live.wait_for_servers()
    live.admin('catch-up', party, timeout=LONG)
    world.settle()
    world.wait_until_well()
    return f'p{party}'


@event('fail over', outage=ONE_TRIPLE, calm=False)
def fail_over(world):
    """A party's primary dies and its synchronous standby takes its place."""
    party = world.party()
    begun = time.monotonic()
    world.pairs[party].fail_over()
    promoted = time.monotonic() - begun
    world.wait_until_well()
    again = time.monotonic() - begun
    world.pairs[party].make_standby()
    return f'p{party}: promoted after {promoted:.1f} s, logins after {again:.1f} s'


# ---- Not announced: whoever judges must see it ----

def break_something(seconds, world):
    world.live.servers[1].stop()
    time.sleep(seconds)
    world.live.servers[1].start()
    world.wait_until_well()


BREAK = functools.partial(break_something, 20)


def usable(postgresql, triples_of_it):
    """The events that such a realm can have: PostgreSQL's copies are its own tools' affair."""
    left_out = {'backup, restore'} if postgresql else {'fail over'}
    if triples_of_it == 1:
        left_out.add('kill triple')
    return [name for name in EVENTS if name not in left_out]


def schedule(random, names):
    """(name, ...) without an end: rounds of all in a drawn order, with a refresh after every third."""
    names = [name for name in names if name != 'refresh']
    while True:
        for number, name in enumerate(random.sample(names, len(names))):
            yield name
            if number % 3 == 2:
                yield 'refresh'
