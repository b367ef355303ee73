# SPDX-License-Identifier: Apache-2.0
"""The configuration files of a test realm, and where the built programs are."""

import functools
import json
import os
import pathlib
import shutil
import subprocess

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get('MPCKDC_BUILD', REPOSITORY / 'build'))
KRB5 = pathlib.Path(os.environ.get('MPCKDC_KRB5', BUILD / 'krb5/install'))
KRB5_TREE = pathlib.Path(os.environ.get('MPCKDC_KRB5_TREE', BUILD / 'krb5/source/src'))
CMAKE = pathlib.Path(os.environ.get('MPCKDC_CMAKE', BUILD / 'cmake'))
KRB5_PROGRAM_DIRS = [KRB5 / 'bin', KRB5 / 'sbin']
KRB5_PLUGINS = KRB5 / 'lib/krb5/plugins'
MPC_PROGRAM_DIRS = [CMAKE / 'mpc-server/cmd', CMAKE / 'kdc-plugin/kdb-tool']
KDB_MODULE_DIRS = [CMAKE / 'kdc-plugin/kdb-module', KRB5_PLUGINS / 'kdb']
CLUSTER = 1
GCM_ENCTYPES = ['aes256-gcm', 'aes128-gcm']
STOCK_ENCTYPES = ['aes256-cts-hmac-sha1-96', 'aes128-cts-hmac-sha1-96',
                  'aes256-cts-hmac-sha384-192', 'aes128-cts-hmac-sha256-128']


def commit():
    """What was built, as git names it."""
    found = subprocess.run(['git', 'describe', '--always', '--dirty'], cwd=REPOSITORY,
                           capture_output=True, encoding='utf-8')
    return found.stdout.strip() or 'unknown'


# Programs ---------------------------------------------------------------------------------------

def program_dirs():
    return [str(folder) for folder in KRB5_PROGRAM_DIRS + MPC_PROGRAM_DIRS]


@functools.lru_cache(maxsize=None)
def krb5_program(name):
    return _find(name, KRB5_PROGRAM_DIRS, 'make krb5')


@functools.lru_cache(maxsize=None)
def mpc_program(name):
    return _find(name, MPC_PROGRAM_DIRS, 'make build')


def _find(name, folders, target):
    for folder in folders:
        path = folder / name
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    raise FileNotFoundError(f'{name} is not built; `{target}` builds it')


def krb5_library_path():
    return str(KRB5 / 'lib')


# krb5.conf and kdc.conf -------------------------------------------------------------------------

def profile(sections):
    """krb5's profile syntax from nested dicts; a list gives a relation several values."""
    lines = []
    for section, relations in sections.items():
        lines.append(f'[{section}]')
        lines += _relations(relations, '    ')
    return '\n'.join(lines) + '\n'


def _relations(relations, indent):
    lines = []
    for name, value in relations.items():
        if isinstance(value, dict):
            lines.append(f'{indent}{name} = {{')
            lines += _relations(value, indent + '    ')
            lines.append(f'{indent}}}')
            continue
        for one in value if isinstance(value, list) else [value]:
            text = str(one).lower() if isinstance(one, bool) else one
            lines.append(f'{indent}{name} = {text}')
    return lines


def write_krb5(realm, stock=False):
    (realm.dir / 'krb5.conf').write_text(profile(krb5_conf(realm)))
    (realm.kdc_dir / 'kdc.conf').write_text(profile(kdc_conf(realm, stock)))
    (realm.kdc_dir / 'kadm5.acl').write_text(f'*/admin@{realm.name} *\n')
    (realm.dir / 'env.sh').write_text(shell_environment(realm))


def krb5_conf(realm):
    ports, kdc = realm.ports, realm.place('kdc')
    return {
        'libdefaults': {
            'default_realm': realm.name,
            'dns_lookup_kdc': False,
            'dns_lookup_realm': False,
            'dns_canonicalize_hostname': False,
            'rdns': False,
            'plugin_base_dir': KRB5_PLUGINS,
            'permitted_enctypes': 'aes256-gcm aes128-gcm DEFAULT',
            **realm.options.extra_libdefaults,
        },
        'realms': {realm.name: {
            'kdc': kdc.endpoint(ports.kdc),
            'admin_server': kdc.endpoint(ports.kadmind),
            'kpasswd_server': kdc.endpoint(ports.kpasswd),
        }},
    }


def kdc_conf(realm, stock):
    ports, kdc, place = realm.ports, realm.kdc_dir, realm.place('kdc')
    # Users get these types; the realm's krbtgt the first two. A protected key cannot have another.
    enctypes = STOCK_ENCTYPES[:2] if stock else GCM_ENCTYPES + STOCK_ENCTYPES
    keysalts = ' '.join(f'{name}:normal' for name in enctypes)
    return {
        'realms': {realm.name: {
            'database_module': 'principals',
            'database_name': kdc / 'principal',  # what kdb5_util says it uses
            'kdc_listen': place.endpoint(ports.kdc),
            'kdc_tcp_listen': place.endpoint(ports.kdc),
            'kadmind_listen': place.endpoint(ports.kadmind),
            'kpasswd_listen': place.endpoint(ports.kpasswd),
            'acl_file': kdc / 'kadm5.acl',
            'key_stash_file': realm.stash,
            'master_key_type': 'aes256-cts',
            'supported_enctypes': keysalts,
            'default_principal_flags': '+preauth',
            'max_life': '10h',
            'max_renewable_life': '7d',
            'disable_pac': realm.options.disable_pac,
            **realm.options.extra_realm,
        }},
        'dbmodules': {
            'db_module_dir': KDB_MODULE_DIRS,
            'principals': _database(realm, stock),
        },
        'logging': {
            'kdc': f'FILE:{realm.log_dir / "kdc.log"}',
            'admin_server': f'FILE:{realm.log_dir / "kadmind-requests.log"}',
        },
    }


def _database(realm, stock):
    wrapped = realm.options.wrapped
    database = {'database_name': realm.kdc_dir / 'principal'}
    if wrapped == 'klmdb':
        database['mapsize'] = 16
    if stock:
        return {'db_library': wrapped, **database, **realm.options.extra_database}
    certificates = realm.dir / 'ca'
    return {
        'db_library': 'mpc',
        'mpc_wrapped': wrapped,
        'mpc_servers': [' '.join(three) for three in in_threes(client_endpoints(realm))],
        'mpc_cluster': CLUSTER,
        'mpc_ca': certificates / 'ca.pem',
        'mpc_certificate': certificates / 'kdc-kdc.pem',
        'mpc_key': certificates / 'kdc-kdc.key',
        'mpc_admin_certificate': certificates / 'admin-kadmin.pem',
        'mpc_admin_key': certificates / 'admin-kadmin.key',
        **database,
        **realm.options.extra_database,
    }


def shell_environment(realm):
    """For `source`: realm.run()'s environment, for a person."""
    dirs = os.pathsep.join(program_dirs())
    return '\n'.join([
        '# Source this to use the realm from a shell: kinit, klist, kvno, kpasswd, kadmin,',
        '# kadmin.local and mpc-admin are then the ones of this build.',
        f'export KRB5_CONFIG={realm.dir / "krb5.conf"}',
        f'export KRB5_KDC_PROFILE={realm.kdc_dir / "kdc.conf"}',
        f'export KRB5CCNAME=FILE:{realm.dir / "ccache-shell"}',
        f'export LD_LIBRARY_PATH={krb5_library_path()}',
        f'export MPC_ADMIN_CONFIG={realm.dir / "admin/admin.toml"}',
        f'export PATH={dirs}:$PATH',
        '',
    ])


def replace(path, old, new, into=None):
    """Changes a file, or writes what is changed `into` another; returns that."""
    text = path.read_text()
    assert old in text, f'{path} has no {old!r}'
    into = into or path
    into.write_text(text.replace(old, new))
    return into


# The servers ------------------------------------------------------------------------------------

def write_servers(realm):
    if not (realm.dir / 'ca').exists():
        make_certificates(realm)
    for machine, name in enumerate(realm.machines()):
        folder = realm.dir / name
        for private in (folder, folder / 'data'):
            private.mkdir(mode=0o700, exist_ok=True)
        (folder / 'denied').touch()
        (folder / 'mpc-server.toml').write_text(server_toml(realm, machine))
    (realm.dir / 'admin').mkdir(exist_ok=True)
    (realm.dir / 'admin/admin.toml').write_text(admin_toml(realm))


def client_endpoints(realm):
    """Where the servers listen for the KDC and for administrators."""
    return [realm.place(name).endpoint(port)
            for name, port in zip(realm.machines(), realm.ports.clients)]


def peer_endpoints(realm):
    return [realm.place(name).endpoint(port)
            for name, port in zip(realm.machines(), realm.ports.peers)]


def in_threes(machines):
    """By triple."""
    return [machines[first:first + 3] for first in range(0, len(machines), 3)]


def share_store_keys(realm, party=None):
    """All machines of a party, or of each, have the store key that its first one made."""
    for name in realm.machines()[3:] if party is None else realm.machines()[party + 3::3]:
        key = realm.dir / name / 'store.key'
        shutil.copy2(realm.dir / name.split('-')[0] / 'store.key', key)


def extra_toml(realm):
    """Servers have the options' security; without one MPCKDC_TESTED_SECURITY's, else active."""
    extra = realm.options.extra_server
    engine = {'security': realm.options.security or os.environ.get('MPCKDC_TESTED_SECURITY'),
              'protocol': realm.options.protocol}
    lines = ''.join(f'{name} = "{value}"\n' for name, value in engine.items() if value)
    if not lines:
        return extra
    if '[engine]' not in extra:
        extra += '\n[engine]\n'
    return extra.replace('[engine]\n', f'[engine]\n{lines}')


def server_toml(realm, machine):
    triple, party = divmod(machine, 3)
    names = in_threes(realm.machines())[triple]
    name = names[party]
    folder, certificates = realm.dir / name, realm.dir / 'ca'
    endpoints = in_threes(peer_endpoints(realm))[triple]
    peers = '\n'.join(f'p{other} = "{endpoints[other]}"' for other in range(3))
    if triple:
        peers += f'\nnames = {json.dumps(names)}'
    quota = '\n'.join(f'{name} = "{rate}"' for name, rate in realm.options.quota.items())
    of_triple = f'triple = {triple}' if realm.options.triples > 1 else ''
    return f'''# P{party} of the test realm. A commented sample is deploy/config/mpc-server.toml.
realm = "{realm.name}"
party = {party}
cluster = {CLUSTER}
{of_triple}
data_dir = "{folder / 'data'}"

[identity]
certificate = "{certificates}/peer-{name}.pem"
key = "{certificates}/peer-{name}.key"
ca = "{certificates}/ca.pem"
deny_list = "{folder / 'denied'}"

[listen]
clients = "{client_endpoints(realm)[machine]}"
peers = "{endpoints[party]}"

[peers]
{peers}

[store]
key_file = "{folder / 'store.key'}"
create_key = true
{store_toml(realm.options, party)}

[batch]
window_ms = {realm.options.batch_window_ms}
{f'mode = "{realm.options.batch_mode}"' if realm.options.batch_mode else ''}

[quota]
{quota}

[metrics]
{f'listen = "127.0.0.1:{realm.options.metrics[machine]}"' if realm.options.metrics else ''}

[log]
level = "info"

[audit]
file = "{realm.log_dir}/{name}-audit.jsonl"

{extra_toml(realm)}'''


def store_toml(options, party):
    if not options.databases:
        return f'map_size_gib = {options.map_size_gib}'
    return f'backend = "postgresql"\npostgresql = "{options.databases[party]}"'


def admin_toml(realm):
    certificates = realm.dir / 'ca'
    triples = in_threes(client_endpoints(realm))
    servers = json.dumps(triples if len(triples) > 1 else triples[0])
    return f'''# mpc-admin's configuration for the test realm.
realm = "{realm.name}"
cluster = {CLUSTER}
servers = {servers}
kdb_command = "{mpc_program('mpc-kdb')}"

[identity]
certificate = "{certificates}/admin-administrator.pem"
key = "{certificates}/admin-administrator.key"
ca = "{certificates}/ca.pem"
'''


def make_certificates(realm):
    folder, days = realm.dir / 'ca', realm.options.certificate_days
    days = ('--days', str(days)) if days else ()
    mpc_ca('init', folder, *days)
    for name in realm.machines():
        mpc_ca('issue', folder, '--realm', realm.name, '--role', 'peer', '--name', name,
               '--dns', 'localhost', '--ip', realm.place(name).address, *days)
    for role, name in (('kdc', 'kdc'), ('admin', 'kadmin'), ('admin', 'administrator')):
        mpc_ca('issue', folder, '--realm', realm.name, '--role', role, '--name', name, *days)


def mpc_ca(*arguments):
    subprocess.run([REPOSITORY / 'deploy/ca/mpc-ca', *arguments], check=True,
                   stdout=subprocess.DEVNULL)
