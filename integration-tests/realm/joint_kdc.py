# SPDX-License-Identifier: Apache-2.0
"""One krb5kdc that serves several realms (krb5kdc -r A -r B), each with servers of its own or none.

Each realm keeps its folder, its database, its kadmind and its clients' environment; only krb5kdc is
common, with one kdc.conf in which each realm has its own section of [dbmodules]."""

import config_files
import daemon
import realm as realm_module


class JointKdc:
    """Takes realms that have files but no krb5kdc of their own: see prepare()."""

    def __init__(self, folder, realms, workers=0, extra_krb5=None):
        self.dir = folder
        self.realms = realms
        self.log = folder / 'kdc.log'
        self._extra_krb5 = extra_krb5 or {}
        for name in ('run', 'log'):
            (folder / name).mkdir(parents=True, exist_ok=True)
        env = {**realms[0].env, 'KRB5_CONFIG': str(folder / 'krb5.conf'),
               'KRB5_KDC_PROFILE': str(folder / 'kdc.conf')}
        argv = [config_files.krb5_program('krb5kdc'), '-n']
        for realm in realms:
            argv += ['-r', realm.name]
        argv += ['-w', workers] if workers else []
        self.process = daemon.Daemon('krb5kdc', argv, env, folder / 'run', folder / 'log')

    def prepare(self):
        """Makes the realms; nothing but their servers and kadminds runs then."""
        for realm in self.realms:
            if isinstance(realm, realm_module.StockRealm):
                realm.create()
            else:
                realm.create_servers()
                realm.create_database()
            realm.kadmind.start()
            self._tell_of_all(realm)
        self._write_files()
        return self

    def start(self):
        self.process.start()
        ports = [realm.ports.kdc for realm in self.realms]
        up = daemon.wait_until(
            lambda: all(self.process.listens_on(port) for port in ports)
            or not self.process.is_running(), realm_module.START_PATIENCE)
        if not up or not self.process.is_running():
            raise realm_module.RealmError('krb5kdc did not start:\n' + self.process.log_tail())
        return self

    def restart(self):
        self.process.stop()
        self.start()

    def stop(self):
        self.process.stop()
        for realm in self.realms:
            realm.stop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def log_text(self):
        return self.log.read_text(errors='replace')

    def _tell_of_all(self, realm):
        """The clients of a realm find all realms' KDC, each at that realm's own port."""
        others = {other.name: {'kdc': f'127.0.0.1:{other.ports.kdc}'}
                  for other in self.realms if other is not realm}
        with open(realm.dir / 'krb5.conf', 'a') as file:
            file.write(config_files.profile({'realms': others, **self._extra_krb5}))

    def _write_files(self):
        merged = {'kdcdefaults': {}, 'realms': {}, 'dbmodules': {},
                  'logging': {'kdc': f'FILE:{self.log}'}}
        for realm in self.realms:
            stock = isinstance(realm, realm_module.StockRealm)
            conf = config_files.kdc_conf(realm, stock)
            section = f'principals-{realm.name}'
            merged['realms'][realm.name] = {**conf['realms'][realm.name],
                                            'database_module': section}
            merged['dbmodules']['db_module_dir'] = conf['dbmodules']['db_module_dir']
            merged['dbmodules'][section] = conf['dbmodules']['principals']
        (self.dir / 'kdc.conf').write_text(config_files.profile(merged))
        (self.dir / 'krb5.conf').write_text(
            (self.realms[0].dir / 'krb5.conf').read_text())
