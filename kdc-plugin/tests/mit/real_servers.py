# SPDX-License-Identifier: Apache-2.0
"""Three mpc-servers for each realm of MIT's scripts, and what its kdc.conf says about them."""

import atexit
import copy
import os
import pathlib
import re
import shutil
import tempfile

import config_files
import realm as realms

WRAPPED = ('db2', 'klmdb')
GCM_KEYSALTS = ' '.join(f'{name}:normal' for name in config_files.GCM_ENCTYPES)
# krbtgt has keys of the gcm types alone: what scripts ask for, and what it gets.
KRBTGT_TYPES = (('aes256-', 'aes256-gcm:normal'), ('aes128-', 'aes128-gcm:normal'))


class RealServers:
    """Of one realm; they start when its database is made, or is used again after a stop."""

    def __init__(self, name):
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix='mit-realm-'))
        self._realm = realms.Realm(self._folder / 'r', realms.Options(realm=name))
        self._initialised = self._running = False
        _use_kept_certificates(self._realm)
        self._realm.write_files()
        _keep_certificates(self._realm)
        for party in range(3):  # scripts change passwords more often than people do
            self._realm.change_config(
                party, '[quota]', '[quota]\ncompared_per_hour = 1000\ncompared_per_day = 1000')
        atexit.register(self.remove)

    def relations(self):
        found = config_files.kdc_conf(self._realm, stock=False)['dbmodules']['principals']
        return {name: value if isinstance(value, list) else str(value)
                for name, value in found.items() if name.startswith('mpc_') and name != 'mpc_wrapped'}

    def start(self):
        if self._running:
            return
        self._realm.start_servers()
        if not self._initialised:
            self._realm.admin('init-realm')
        self._initialised = self._running = True

    def stop(self):
        self._realm.stop()
        self._running = False

    def remove(self):
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


# A realm's name is in its certificates, and most scripts have the same few realms.

def _kept(realm):
    kept = os.environ.get('MPCKDC_KEPT_CERTIFICATES')
    return pathlib.Path(kept) / realm.name if kept else None


def _use_kept_certificates(realm):
    kept = _kept(realm)
    if kept and kept.exists():
        shutil.copytree(kept, realm.dir / 'ca')


def _keep_certificates(realm):
    kept = _kept(realm)
    if kept and not kept.exists():
        making = kept.with_name(f'{kept.name}.{os.getpid()}')
        shutil.copytree(realm.dir / 'ca', making)
        making.rename(kept)


# k5test's realms --------------------------------------------------------------------------------

def with_servers(profile, krb5_conf, servers, local):
    """kdc.conf, as k5test writes it, with our module around those that we can wrap. `local`: names of
    services that do not look like services."""
    profile = copy.deepcopy(profile)
    for name, section in profile.get('dbmodules', {}).items():
        if isinstance(section, dict) and section.get('db_library') in WRAPPED:
            profile['dbmodules'][name] = {
                'mpc_service_logins': 'true', **local, **servers.relations(), **section,
                'db_library': 'mpc', 'mpc_wrapped': section['db_library']}
    permitted = krb5_conf.get('libdefaults', {}).get('permitted_enctypes', 'DEFAULT')
    defaults = profile.setdefault('libdefaults', {})
    permitted = defaults.get('permitted_enctypes', permitted)
    defaults['permitted_enctypes'] = ' '.join(config_files.GCM_ENCTYPES) + ' ' + permitted
    return profile


def in_all_realms(profile, change):
    profile = copy.deepcopy(profile)
    for section in profile.get('realms', {}).values():
        if isinstance(section, dict):
            change(section)
    return profile


def gcm_types_alone(realm):
    realm['supported_enctypes'] = GCM_KEYSALTS


def uses_our_module(profile):
    return any(isinstance(section, dict) and section.get('db_library') in WRAPPED
               for section in profile.get('dbmodules', {}).values())


def with_gcm_keys(args):
    """kadmin.local's new random keys of krbtgt, of the gcm type that is as long as the one asked for,
    and those of a service of kadmind that the script makes."""
    if 'addprinc' in args and '-e' not in args and args[-1].startswith('kadmin/'):
        return [*args[:-1], '-e', GCM_KEYSALTS, args[-1]]
    if 'cpw' not in args or '-e' not in args or not args[-1].startswith('krbtgt/'):
        return args
    args = list(args)
    value = args.index('-e') + 1
    args[value] = next((gcm for prefix, gcm in KRBTGT_TYPES if args[value].startswith(prefix)),
                       args[value])
    return args


def keytab_from_password(mit, realm, princ, password, keytab):
    """As a person makes one: ktadd gives no key of a user, but who knows the password has it anyway."""
    keys = re.findall(r'^Key: vno (\d+), ([^:\s]+)', realm.run([mit.kadminl, 'getprinc', princ]), re.M)
    realm.run([mit.ktutil], input=''.join(
        f'addent -password -p {princ} -k {kvno} -e {enctype}\n{password}\n'
        for kvno, enctype in keys) + f'wkt {keytab}\n')


def change(mit, local_services):
    """Gives all realms of k5test their servers."""
    cls = mit.K5Realm
    create_conf, run, stop = cls._create_conf, cls.run, cls.stop
    addprinc, extract_keytab = cls.addprinc, cls.extract_keytab
    local = {'mpc_local': local_services} if local_services else {}

    def new_create_conf(self, profile, filename):
        if not uses_our_module(profile):
            return create_conf(self, profile, filename)
        if not hasattr(self, 'mpc_servers'):
            self.mpc_servers = RealServers(self.realm)
        ours = with_servers(profile, self._krb5_conf, self.mpc_servers, local)
        create_conf(self, ours, filename)
        create_conf(self, in_all_realms(ours, gcm_types_alone), filename + '.create')

    def new_run(self, args, env=None, **keywords):
        env = env or self.env
        if hasattr(self, 'mpc_servers') and args[0] in (mit.kdb5_util, mit.kadminl):
            self.mpc_servers.start()
        if hasattr(self, 'mpc_servers') and args[0] == mit.kadminl:
            args = with_gcm_keys(args)
        if args[0] == mit.kdb5_util and 'create' in args:
            env = for_creation(env)
        return run(self, args, env=env, **keywords)

    def for_creation(env):
        path = env['KRB5_KDC_PROFILE'] + '.create'
        return {**env, 'KRB5_KDC_PROFILE': path} if os.path.exists(path) else env

    def starting(method):
        def start_servers_first(self, *args, **keywords):
            if hasattr(self, 'mpc_servers'):
                self.mpc_servers.start()
            return method(self, *args, **keywords)
        return start_servers_first

    def new_addprinc(self, princname, password=None):
        self.__dict__.setdefault('mpc_passwords', {})[princname] = password
        return addprinc(self, princname, password)

    def new_extract_keytab(self, princname, keytab):
        password = self.__dict__.get('mpc_passwords', {}).get(princname)
        if password and hasattr(self, 'mpc_servers'):
            return keytab_from_password(mit, self, princname, password, keytab)
        return extract_keytab(self, princname, keytab)

    def new_stop(self):
        stop(self)
        if hasattr(self, 'mpc_servers'):
            self.mpc_servers.stop()

    cls._create_conf, cls.run, cls.stop = new_create_conf, new_run, new_stop
    cls.addprinc, cls.extract_keytab = new_addprinc, new_extract_keytab
    cls.start_kdc, cls.start_kadmind = starting(cls.start_kdc), starting(cls.start_kadmind)
