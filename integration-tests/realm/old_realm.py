# SPDX-License-Identifier: Apache-2.0
"""A stock MIT realm with all sorts of principals, which the import's tests move to the servers."""

import dataclasses
import re

import config_files
import daemon

OLD_TYPES = 'aes256-cts:normal,aes128-cts:normal'
HOST = 'host/old.example.com'
OTHER_HOST = 'host/later.example.com'
LAST_HOST = 'host/last.example.com'
POLICY = 'careful'
LEFT = {'rick': 'arcfour-hmac', 'nils': 'no keys'}  # who cannot come, and a word of the reason


@dataclasses.dataclass
class User:
    name: str
    password: str
    options: str = ''
    former: tuple = ()  # passwords, oldest first


USERS = [
    User('alice', 'alice in the old realm'),
    User('bob', 'bob has a salt of his own', '-e aes256-cts:special,aes128-cts:special'),
    User('carol', 'carol is short of bits', '-e aes128-cts:normal'),
    User('dora', 'dora has RC4 as well', '-e aes256-cts:normal,arcfour-hmac:normal'),
    User('erin', 'erin third', f'-policy {POLICY} -maxlife 3hours -expire 2036-01-02',
         former=('erin first', 'erin second')),
    User('sven', 'sven is of the new types', '-e aes256-sha2:normal,aes128-sha2:normal'),
    User('ops/admin', 'an administrator', '+requires_preauth'),
]


class OldRealm:
    """Its database, configured by a kdc.conf of its own beside that of `live`, a realm.Realm.

    `name`: the database's; that of `live` itself, or another."""

    def __init__(self, live, name='principal', wrapped='db2', master='the old master'):
        self.live, self.master = live, master
        self.folder = live.kdc_dir
        self.database = self.folder / name
        self.stash = live.stash if name == 'principal' else self.folder / f'{name}.stash'
        self.profile = self.folder / f'{name}-old-kdc.conf'
        text = config_files.profile(config_files.kdc_conf(live, stock=True))
        for old, new in ((self.folder / 'principal', self.database), (live.stash, self.stash),
                         ('db_library = db2', f'db_library = {wrapped}')):
            text = re.sub(rf'{re.escape(str(old))}(?=\n)', str(new), text)
        self.profile.write_text(text)
        self.env = {**live.env, 'KRB5_KDC_PROFILE': str(self.profile)}
        self.kdc = daemon.Daemon(f'krb5kdc-{name}', [config_files.krb5_program('krb5kdc'), '-n'],
                                 self.env, live.run_dir, live.log_dir)

    def run(self, *command, **more):
        return self.live.run(*command, env={'KRB5_KDC_PROFILE': str(self.profile)}, **more)

    def local(self, query):
        return self.run('kadmin.local', '-q', query).stdout

    def create(self):
        self.run('kdb5_util', 'create', '-s', '-P', self.master)
        self.local(f'addpol -history 4 -maxfailure 6 -minlength 3 {POLICY}')
        for user in USERS:
            first, *later = [*user.former, user.password]
            self.local(f'addprinc -e {OLD_TYPES} {user.options} -pw "{first}" {user.name}')
            for password in later:
                self.local(f'cpw -pw "{password}" {user.name}')
        self.local('setstr erin colour "blue and green"')
        self.local('addprinc -e arcfour-hmac:normal -pw "rick is weak" rick')
        self.local('addprinc -nokey nils')
        self.local(f'cpw -keepold -e {OLD_TYPES} -pw "{USERS[0].password}" alice')
        for service in (HOST, OTHER_HOST, LAST_HOST):
            self.local(f'addprinc -randkey -e {OLD_TYPES} {service}')
            self.local(f'ktadd -norandkey -k {self.folder}/services.keytab {service}')
        return self

    def serve(self):
        self.kdc.start()
        assert daemon.wait_until(lambda: self.kdc.listens_on(self.live.ports.kdc), 30), \
            self.kdc.log_tail()
        return self

    def stop(self):
        self.kdc.stop()

    def ciphertexts(self, name):
        """The encrypted keys of a principal, as they are in the database's files."""
        dump = self.folder / 'ciphertexts.dump'
        self.run('kdb5_util', 'dump', dump, f'{name}@{self.live.name}')
        fields = next(line for line in dump.read_text().splitlines()
                      if line.startswith('princ\t')).split('\t')
        dump.unlink()
        return [bytes.fromhex(field)[2:] for field in fields
                if re.fullmatch(r'[0-9a-f]{90,}', field)]


def facts(text):
    """What getprinc says of an entry, but for its keys."""
    return [line for line in text.splitlines()
            if ':' in line and not re.match(r'Key: |Number of keys|MKey|Authenticating', line)]
