# SPDX-License-Identifier: Apache-2.0
"""The two realms of `make storm`: MIT's own krb5kdc without us, and ours. Both have many users with
keys from a keytab, klmdb, no last_success writes, no lockout, no PAC, and one service.

A realm's folder holds `storm.json`, what it was made for: the next run with the same users, enctype
and format takes it up again.

    <work>/stock-100000-aes128-cts/   a kdb5_util load of one principal's line under many names
    <work>/ours-100000-aes128-gcm/    mpc-admin enroll --all
"""

import json
import os
import pathlib
import shutil
import time

import config_files
import daemon
import kdbfile
import many_users
import realm as realm_module

SERVICE = 'host/www.example.com'
FORMAT = 3           # raise it when a realm that an earlier version made does not fit any more
MANY = 4 * 3600      # seconds that making a million users may take
BYTES_PER_USER = 3 * 2200 + 2500  # three stores, three audit lines, the database, keytab, list


class StormError(Exception):
    """The bench cannot go on; the text says why."""


def stock_build():
    """The unpatched krb5 of krb5-patches/build.sh --stock, or None when it was not built."""
    found = sorted(path for path in (config_files.BUILD / 'krb5').glob('stock-*/install')
                   if (path.parent / 'complete').exists() and (path / 'sbin/krb5kdc').exists())
    return found[-1] if found else None


def check_space(work, users):
    """Users of both realms: ours takes nearly all of it."""
    needed = users * BYTES_PER_USER + (1 << 30)
    free = shutil.disk_usage(work).free
    if free < needed:
        raise StormError(f'{work}: {free >> 20} MiB are free, {users} users need about '
                         f'{needed >> 20} MiB; free some, or give fewer --users')


class StockRealm(realm_module.StockRealm):
    """krb5kdc as MIT ships it, from `install`; without one the patched one, with no remote key."""

    def __init__(self, folder, options, install):
        self.install = install
        if install:
            options.kdc_program = str(install / 'sbin/krb5kdc')
        super().__init__(folder, options)

    def _environment(self):
        env = super()._environment()
        if self.install:
            env['LD_LIBRARY_PATH'] = str(self.install / 'lib')
        return env

    def write_files(self):
        super().write_files()
        if not self.install:
            return
        ours = f'db_module_dir = {config_files.KDB_MODULE_DIRS[0]}\n'
        for file in (self.dir / 'krb5.conf', self.kdc_dir / 'kdc.conf'):
            text = file.read_text().replace(str(config_files.KRB5), str(self.install))
            file.write_text(text.replace(ours, ''))

    def run(self, *command, **options):
        if self.install and (self.install / 'sbin' / str(command[0])).exists():
            command = (str(self.install / 'sbin' / str(command[0])), *command[1:])
        return super().run(*command, **options)

    def start_kdc(self):
        self.kdc.start()
        self._wait_for_port(self.kdc, self.ports.kdc)


def is_gcm(enctype):
    return enctype.endswith('-gcm')


def stock_enctype(enctype):
    """What stock is measured with beside ours: the same, or for GCM what costs it least."""
    return 'aes128-cts' if is_gcm(enctype) else enctype


def options_for(enctype, ours=False, **more):
    """`enctype` is the users'. krbtgt's is the same, but in our realm always one of GCM: a TGT is
    read by nobody else."""
    types = f'{enctype}:normal'
    if ours and not is_gcm(enctype):
        types = f'aes128-gcm:normal {types}'
    return realm_module.Options(
        wrapped='klmdb', extra_realm={'supported_enctypes': types},
        extra_database={'disable_last_success': True, 'disable_lockout': True, 'mapsize': 8192,
                        'nosync': True}, map_size_gib=16, **more)


class Lab:
    """One realm with its users, and what the measurements need of it."""

    def __init__(self, name, live, users, enctype):
        self.name, self.live, self.users, self.enctype = name, live, users, enctype
        self.keytab = live.dir / 'users.keytab'

    def pids(self):
        """(name, pid) of all that serves logins; a KDC's workers have one name."""
        kdc = self.live.kdc.pid()
        found = [('kdc', pid) for pid in [kdc, *_children(kdc)]]
        return found + [(server.name, server.pid()) for server in self.live.servers]

    def start(self):
        if self.live.servers:
            self.live.start_servers()
        self.live.start_kdc()

    def restart(self, **options):
        """All of it, with other options; returns what they were."""
        before = {name: getattr(self.live.options, name) for name in options}
        self.live.stop()
        for name, value in options.items():
            setattr(self.live.options, name, value)
        self.live.kdc.argv = self.live.place('kdc').argv(self.live._kdc_command())
        self.live.write_files()
        self.start()
        return before

    def stop(self):
        self.live.stop()

    def take_up(self, purpose, fill, say):
        """Started: as an earlier run left it, if that had the same purpose, or made by fill()."""
        purpose = {'format': FORMAT, 'users': self.users, 'enctype': self.enctype, **purpose}
        marker = self.live.dir / 'storm.json'
        started = time.monotonic()
        try:
            if marker.exists() and json.loads(marker.read_text()) == purpose:
                say(f'{self.name}: {self.users:,} users of an earlier run in {self.live.dir}')
                self.live.write_files()  # with ports that are free now
                self.start()
                return self
            shutil.rmtree(self.live.dir, ignore_errors=True)
            say(f'{self.name}: making {self.users:,} users in {self.live.dir}')
            fill(self)
            marker.write_text(json.dumps(purpose))
            say(f'{self.name}: made in {time.monotonic() - started:.1f} s')
            return self
        except BaseException:
            self.stop()
            raise


def _children(pid):
    try:
        text = pathlib.Path(f'/proc/{pid}/task/{pid}/children').read_text()
    except OSError:
        return []
    return [int(child) for child in text.split()]


def make_stock(work, users, say, enctype='aes128-cts'):
    """The realm, started."""
    live = StockRealm(work / f'stock-{users}-{enctype}', options_for(enctype), stock_build())
    return Lab('stock', live, users, enctype).take_up({'install': str(live.install)}, _fill_stock,
                                                      say)


def make_ours(work, users, say, enctype='aes128-gcm', security=''):
    options = options_for(enctype, ours=True, metrics=tuple(daemon.free_ports(3)),
                          security=security)
    live = realm_module.Realm(work / f'ours-{users}-{enctype}', options)
    return Lab('ours', live, users, enctype).take_up({'install': 'None'}, fill_ours, say)


def _fill_stock(lab):
    live = lab.live
    live.create()
    first = many_users.user_name(0)
    live.kadmin_local(f'addprinc -randkey -e {lab.enctype}:normal {first}')
    live.add_service(SERVICE)
    one = live.dir / 'one.keytab'
    live.kadmin_local(f'ktadd -norandkey -k {one} {first}')
    many_users.write_keytab(lab.keytab, live.name, lab.users,
                            enctype=many_users.KEYTAB_NUMBERS[lab.enctype],
                            key=kdbfile.read_keytab(one)[0][3])
    dump = live.dump(live.dir / 'dump')
    _repeat_line(dump, live.dir / 'dump-many', f'{first}@{live.name}', lab.users)
    live.run('kdb5_util', 'load', live.dir / 'dump-many', timeout=MANY)
    for file in (dump, live.dir / 'dump-many', one):
        pathlib.Path(file).unlink()
    live.start_kdc()


def _repeat_line(dump, into, principal, users):
    """The dump with `principal`'s line again under each other user's name, which is as long."""
    user, at = principal.split('@', 1)
    with open(dump, encoding='utf-8') as source, open(into, 'w', encoding='utf-8') as out:
        os.fchmod(out.fileno(), 0o600)
        for line in source:
            out.write(line)
            if f'\t{principal}\t' not in line:
                continue
            for number in range(1, users):
                other = f'{many_users.user_name(number)}@{at}'
                assert len(other) == len(principal)
                out.write(line.replace(f'\t{principal}\t', f'\t{other}\t', 1))


def fill_ours(lab):
    live = lab.live
    live.create()
    many_users.write_keytab(lab.keytab, live.name, lab.users,
                            enctype=many_users.KEYTAB_NUMBERS[lab.enctype])
    started = time.monotonic()
    live.admin('enroll', '--all', '--keytab', lab.keytab, '--enctype', lab.enctype, timeout=MANY)
    seconds = time.monotonic() - started
    # Before anybody logs in: accepted time stamps are kept in the same file for a while.
    stores = [(live.dir / f'p{party}/data/shares.mdb').stat().st_blocks * 512 for party in range(3)]
    (live.dir / 'enrolled.json').write_text(json.dumps(
        {'seconds': seconds, 'bytes_per_key': max(stores) / lab.users}))
    live.add_service(SERVICE)
    (live.dir / 'handles.json').write_text(live.admin('list', '--json', timeout=MANY).stdout)
