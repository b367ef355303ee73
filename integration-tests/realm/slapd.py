# SPDX-License-Identifier: Apache-2.0
"""An OpenLDAP server of a test's own on the loopback interface, and realms that live in it."""

import base64
import os
import pathlib
import shutil
import subprocess

import config_files
import daemon
import realm as realm_module

SUFFIX = 'dc=example,dc=com'
ADMIN, ADMIN_PASSWORD = f'cn=admin,{SUFFIX}', 'of the directory'
CONFIG_ADMIN = 'cn=admin,cn=config'
CONTAINER = f'cn=kerberos,{SUFFIX}'
PEOPLE = f'ou=people,{SUFFIX}'
SERVICES = f'ou=services,{SUFFIX}'
KDC, KADMIND = f'cn=krb5kdc,{SERVICES}', f'cn=kadmind,{SERVICES}'
PASSWORDS = {KDC: 'of krb5kdc', KADMIND: 'of kadmind'}
SCHEMA = config_files.KRB5_TREE / 'plugins/kdb/ldap/libkdb_ldap/kerberos.schema'
SIZE_LIMIT = 100  # below what a realm may have, as any server's is; kadmind has none

# The sample that administrators are given, before what a directory has anyway.
ACCESS = f'''
access to attrs=userPassword
  by anonymous auth
  by * none
include {config_files.REPOSITORY / 'deploy/config/slapd-access.conf'}
access to *
  by * read
'''


def missing():
    """What keeps this machine from having an LDAP server, or ''."""
    if not pathlib.Path('/usr/sbin/slapd').exists() or not shutil.which('ldapmodify'):
        return 'slapd and ldap-utils are not installed: deploy/packages-test.txt'
    return '' if SCHEMA.exists() else f'no {SCHEMA}: make krb5 builds it'


class Slapd:
    """`copied`: another one, of which this is a consumer: it has what that has, and takes no writes."""

    def __init__(self, folder, copied=None):
        self.dir = pathlib.Path(folder)
        self._copied = copied
        self.port = daemon.free_ports(1)[0]
        self.uri = f'ldap://127.0.0.1:{self.port}'
        (self.dir / 'data').mkdir(parents=True)
        (self.dir / 'slapd.conf').write_text(self._configuration())
        self.server = daemon.Daemon(
            'slapd', ['/usr/sbin/slapd', '-d', '0', '-h', self.uri, '-f', self.dir / 'slapd.conf'],
            dict(os.environ), self.dir, self.dir)

    def _configuration(self):
        schemas = [f'/etc/ldap/schema/{name}.schema' for name in ('core', 'cosine', 'inetorgperson')]
        includes = '\n'.join(f'include {path}' for path in [*schemas, SCHEMA])
        return f'''{includes}
pidfile {self.dir / 'pid'}
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload syncprov
sizelimit {SIZE_LIMIT}
database config
rootdn {CONFIG_ADMIN}
rootpw "{ADMIN_PASSWORD}"
database mdb
suffix {SUFFIX}
rootdn {ADMIN}
rootpw "{ADMIN_PASSWORD}"
directory {self.dir / 'data'}
maxsize 67108864
index objectClass,entryUUID,entryCSN eq
{ACCESS}{self._replication()}'''

    def _replication(self):
        if not self._copied:
            return 'overlay syncprov\n'
        return f'''syncrepl rid=1 provider={self._copied.uri} type=refreshAndPersist retry="1 +"
  searchbase="{SUFFIX}" bindmethod=simple binddn="{ADMIN}" credentials="{ADMIN_PASSWORD}"
updateref {self._copied.uri}
'''

    def start(self):
        self.server.start()
        if not daemon.wait_until(lambda: self.server.listens_on(self.port), 30):
            raise realm_module.RealmError('slapd does not start:\n' + self.server.log_tail())

    def kill(self):
        self.server.kill()

    def stop(self):
        self.server.stop()

    def tool(self, program, *arguments, stdin='', who=ADMIN, password=ADMIN_PASSWORD, check=True):
        result = subprocess.run(
            [program, '-x', '-H', self.uri, '-D', who, '-w', password, *arguments], input=stdin,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8')
        assert not check or result.returncode == 0, result.stdout
        return result.stdout

    def add(self, ldif):
        self.tool('ldapadd', stdin=ldif)

    def modify(self, ldif, **options):
        self.tool('ldapmodify', stdin=ldif, **options)

    def set_read_only(self, value):
        self.modify(f'dn: olcDatabase={{1}}mdb,cn=config\nchangetype: modify\n'
                    f'replace: olcReadOnly\nolcReadOnly: {str(value).upper()}\n', who=CONFIG_ADMIN)

    def search(self, *attributes, where='(objectClass=*)', base=SUFFIX):
        """[{attribute: [values as bytes]}], with 'dn'."""
        text = self.tool('ldapsearch', '-LLL', '-o', 'ldif-wrap=no', '-b', base, where, *attributes,
                         check=False)
        if 'No such object' in text:
            return []
        assert not text.startswith('ldap'), text
        return [_entry(block) for block in text.split('\n\n') if block.strip()]

    def fill(self):
        """What stands there before a realm does."""
        users = '\n'.join(f'dn: {dn}\nobjectClass: organizationalRole\n'
                          f'objectClass: simpleSecurityObject\ncn: {dn.split(",")[0][3:]}\n'
                          f'userPassword: {password}\n' for dn, password in PASSWORDS.items())
        self.add(f'dn: {SUFFIX}\nobjectClass: dcObject\nobjectClass: organization\ndc: example\n'
                 f'o: Example\n\ndn: {PEOPLE}\nobjectClass: organizationalUnit\nou: people\n\n'
                 f'dn: {SERVICES}\nobjectClass: organizationalUnit\nou: services\n\n'
                 f'dn: {CONTAINER}\nobjectClass: krbContainer\ncn: kerberos\n\n{users}')


def _entry(block):
    entry = {}
    for line in block.strip().splitlines():
        name, _, value = line.partition(':')
        encoded = value.startswith(':')
        value = value[1:].strip() if encoded else value.strip()
        entry.setdefault(name, []).append(base64.b64decode(value) if encoded else value.encode())
    return entry


def relations(uri, password_file):
    """What a [dbmodules] section has for kldap."""
    return {
        'ldap_kerberos_container_dn': CONTAINER,
        'ldap_kdc_dn': KDC,
        'ldap_kadmind_dn': KADMIND,
        'ldap_service_password_file': password_file,
        'ldap_servers': uri,
    }


def stash_passwords(realm, password_file, passwords=PASSWORDS):
    for dn, password in passwords.items():
        realm.run('kdb5_ldap_util', 'stashsrvpw', '-f', password_file, dn,
                  stdin=f'{password}\n{password}\n')


class DirectoryRealm(realm_module.Realm):
    """A realm whose principals lie in a directory, which is reached at `uri`."""

    def __init__(self, folder, directory, uri=None, **options):
        self.directory = directory
        self.password_file = pathlib.Path(folder) / 'kdc/ldap-passwords'
        database = {**relations(uri or directory.uri, self.password_file),
                    **options.pop('extra_database', {})}
        super().__init__(folder, realm_module.Options(wrapped='kldap', extra_database=database,
                                                      **options))

    def create_database(self):
        self.stash_passwords()
        super().create_database()

    def stash_passwords(self, passwords=PASSWORDS):
        stash_passwords(self, self.password_file, passwords)

    def ldap_util(self, *arguments, stdin='', check=True):
        return self.run('kdb5_ldap_util', '-D', ADMIN, '-w', ADMIN_PASSWORD, '-H',
                        self.directory.uri, *arguments, stdin=stdin, check=check)

    def entry(self, name, *attributes):
        """What the directory has of a principal, or None."""
        found = self.directory.search(*attributes,
                                      where=f'(krbPrincipalName={name}@{self.name})')
        return found[0] if found else None
