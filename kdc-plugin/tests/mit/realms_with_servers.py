# SPDX-License-Identifier: Apache-2.0
"""What k5test's realms do differently, so that MIT's scripts run on three real servers as they are.

  kdc.conf             the module is mpc, wrapped around the one that the script names, and the realm
                       has three mpc-servers of its own (real_servers.py)
  kdb5_util create     is asked for keys of the gcm types, which krbtgt must have; principals that the
                       script makes later get what the script says
  kdb5_ldap_util       `create` is `kdb5_util create` and `kdb5_ldap_util modify`, as deploy/ldap.md says
  krbtgt's new keys    are of the gcm type that is as long as the one the script asks for
  kadmin/HOST          gets keys of the gcm types, where a script makes it
  keytabs of users     are made from their passwords; ktadd gives none
  krb5kdc -T           the servers' clocks are changed by as much
"""

import copy
import os
import re

import config_files
from real_servers import RealServers, counts_of_all  # noqa: F401 (k5test.py asks here)

WRAPPED = ('db2', 'klmdb', 'kldap')
GCM_KEYSALTS = ' '.join(f'{name}:normal' for name in config_files.GCM_ENCTYPES)
# krbtgt has keys of the gcm types alone: what scripts ask for, and what it gets.
KRBTGT_TYPES = (('aes256-', 'aes256-gcm:normal'), ('aes128-', 'aes128-gcm:normal'))


# kdc.conf -----------------------------------------------------------------------------------------

def with_servers(profile, krb5_conf, servers, script):
    """kdc.conf, as k5test writes it, with our module around those that we can wrap."""
    profile = in_all_realms(profile, lambda realm: realm.update(script.relations))
    local = {'mpc_local': script.local} if script.local else {}
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
    """Whether the realm's database is one that we can wrap."""
    names = {section.get('database_module') for section in profile.get('realms', {}).values()
             if isinstance(section, dict)}
    return any(isinstance(section, dict) and section.get('db_library') in WRAPPED
               for name, section in profile.get('dbmodules', {}).items() if name in names)


# Commands -----------------------------------------------------------------------------------------

def with_gcm_keys(args, krbtgt):
    """kadmin.local's new random keys of krbtgt, of the gcm type that is as long as the one asked for,
    and those of a service of kadmind that the script makes."""
    args = list(args)
    if 'addprinc' in args and '-e' not in args and args[-1].startswith('kadmin/'):
        return [*args[:-1], '-e', GCM_KEYSALTS, args[-1]]
    if 'cpw' not in args or args[-1].split('@')[0] != krbtgt:
        return args
    if '-e' not in args:
        return [*args[:-1], '-e', GCM_KEYSALTS, args[-1]]
    value = args.index('-e') + 1
    args[value] = next((gcm for prefix, gcm in KRBTGT_TYPES if args[value].startswith(prefix)),
                       args[value])
    return args


def ldap_creation(args):
    """(arguments of `kdb5_util create`, of `kdb5_ldap_util modify`) for `kdb5_ldap_util create`."""
    at = args.index('create')
    options, made = list(args[at + 1:]), []
    for option, values in (('-s', 0), ('-P', 1)):
        first = options.index(option)
        made += options[first:first + 1 + values]
        del options[first:first + 1 + values]
    return ['create', *made], [*args[1:at], 'modify', *options] if options else None


def keytab_from_password(mit, realm, princ, password, keytab):
    """As a person makes one: ktadd gives no key of a user, but who knows the password has it anyway."""
    keys = re.findall(r'^Key: vno (\d+), ([^:\s]+)', realm.run([mit.kadminl, 'getprinc', princ]), re.M)
    realm.run([mit.ktutil], input=''.join(
        f'addent -password -p {princ} -k {kvno} -e {enctype}\n{password}\n'
        for kvno, enctype in keys) + f'wkt {keytab}\n')


def clock_of(args):
    """The seconds that krb5kdc is to be ahead by."""
    return int(args[args.index('-T') + 1]) if '-T' in args else 0


def for_creation(env):
    """The gcm types as supported_enctypes, also if the script has others in its krb5.conf."""
    kdc_conf, krb5_conf = (env[name] + '.create' for name in ('KRB5_KDC_PROFILE', 'KRB5_CONFIG'))
    if not os.path.exists(kdc_conf):
        return env
    with open(env['KRB5_CONFIG']) as script, open(krb5_conf, 'w') as ours:
        ours.writelines(line for line in script if 'supported_enctypes =' not in line)
    return {**env, 'KRB5_KDC_PROFILE': kdc_conf, 'KRB5_CONFIG': krb5_conf}


def change(mit, script):
    """Gives all realms of k5test their servers. `script`: expected.Script."""
    cls = mit.K5Realm
    old = {name: getattr(cls, name) for name in (
        '__init__', '_create_conf', 'run', 'stop', 'addprinc', 'extract_keytab', 'start_kdc',
        'start_kadmind')}
    cls.mpc_servers, cls.without_servers = None, 0

    def init(self, *args, **keywords):
        self.mpc_passwords = {}
        old['__init__'](self, *args, **keywords)
        if not self.mpc_servers:
            cls.without_servers += 1

    def create_conf(self, profile, filename):
        if not uses_our_module(profile):
            return old['_create_conf'](self, profile, filename)
        if not self.mpc_servers:
            self.mpc_servers = RealServers(self.realm)
        ours = with_servers(profile, self._krb5_conf, self.mpc_servers, script)
        old['_create_conf'](self, ours, filename)
        old['_create_conf'](self, in_all_realms(ours, gcm_types_alone), filename + '.create')

    def run(self, args, env=None, **keywords):
        env = env or self.env
        if self.mpc_servers:
            if args[0] in (mit.kdb5_util, mit.kadminl, mit.kdb5_ldap_util, './kdbtest'):
                self.mpc_servers.start()
            if args[0] == mit.kadminl:
                args = with_gcm_keys(args, 'krbtgt/' + self.realm)
            if args[0] == mit.kdb5_util and 'create' in args:
                env = for_creation(env)
            if args[0] == mit.kdb5_ldap_util and 'create' in args:
                return create_in_directory(self, args, env, **keywords)
        return old['run'](self, args, env=env, **keywords)

    def create_in_directory(self, args, env, **keywords):
        create, modify = ldap_creation(args)
        out = old['run'](self, [mit.kdb5_util, *create], env=for_creation(env), **keywords)
        return old['run'](self, [args[0], *modify], env=env, **keywords) if modify else out

    def start_kdc(self, args=[], env=None):
        if self.mpc_servers:
            self.mpc_servers.set_clock(clock_of(args))
            self.mpc_servers.start()
        return old['start_kdc'](self, args, env)

    def start_kadmind(self, env=None):
        if self.mpc_servers:
            self.mpc_servers.start()
        return old['start_kadmind'](self, env)

    def addprinc(self, princname, password=None):
        self.mpc_passwords[princname] = password
        return old['addprinc'](self, princname, password)

    def extract_keytab(self, princname, keytab):
        password = self.mpc_passwords.get(princname)
        if password and self.mpc_servers and not princname.startswith('krbtgt/'):
            return keytab_from_password(mit, self, princname, password, keytab)
        return old['extract_keytab'](self, princname, keytab)

    def stop(self):
        old['stop'](self)
        if self.mpc_servers:
            self.mpc_servers.stop()

    for changed in (create_conf, run, start_kdc, start_kadmind, addprinc, extract_keytab, stop):
        setattr(cls, {'create_conf': '_create_conf'}.get(changed.__name__, changed.__name__), changed)
    cls.__init__ = init
