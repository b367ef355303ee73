# SPDX-License-Identifier: Apache-2.0
"""A realm whose principals lie in a directory: mpc.so around kldap, Debian's slapd behind a relay, three servers."""

import contextlib
import json

import config_files
import ldap_relay
import slapd

GRACE = '\n[policy]\ndelete_grace = "1s"\n'  # so that a key that is deleted is gone
UNAVAILABLE = 'not available'
PEOPLE = slapd.PEOPLE


@contextlib.contextmanager
def running(folder):
    """The realm with its KDC."""
    directory = slapd.Slapd(folder / 'slapd')
    directory.start()
    directory.fill()
    with ldap_relay.LdapRelay(directory.port) as relay, slapd.DirectoryRealm(
            folder / 'realm', directory, uri=relay.uri, extra_server=GRACE,
            extra_realm={'default_principal_flags': '-preauth'}) as live:
        live.relay = relay
        live.create_servers()
        (live.kdc_dir / 'kadm5.acl').write_text(
            f'*/admin@{live.name} *\nhelper@{live.name} aci *\n')
        live.stash_passwords()
        live.made_past_the_module = live.ldap_util('create', '-P', 'master', check=False).stdout
        live.found_then = directory.search('krbPrincipalKey', where='(krbPrincipalKey=*)')
        live.create_database()
        live.ldap_util('modify', '-subtrees', PEOPLE)
        live.start_kdc()
        yield live
    directory.stop()


def agree_again(live):
    """Whatever a test did, the directory and the servers agree afterwards."""
    live.relay.lift()
    if not live.directory.server.is_running():
        live.directory.start()
    live.directory.set_read_only(False)
    live.admin('doctor')


def can_log_in(live, name, password):
    result = live.kinit(name, password, check=False)
    assert result.returncode == 0 or 'Password incorrect' in result.stdout \
        or 'not found in Kerberos database' in result.stdout, result.stdout
    return result.returncode == 0


def keys_in_use(live, name=None):
    """Handles that the servers hold and nobody has deleted, of one principal or of all."""
    keys = json.loads(live.admin('list', '--json').stdout)['keys']
    return {key['handle'] for key in keys if not key['retired']
            and (name is None or key['principal'] == f'{name}@{live.name}')}


def handles(live, name):
    lines = [json.loads(line) for line in
             live.run(config_files.mpc_program('mpc-kdb'), 'list').stdout.splitlines()]
    return {line['handle'] for line in lines
            if line['principal'] == f'{name}@{live.name}' and 'handle' in line
            and not line.get('history')}
