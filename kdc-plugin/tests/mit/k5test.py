# SPDX-License-Identifier: Apache-2.0
"""What MIT's scripts import as k5test where their realms are to have three real servers.

krb5-check.sh puts this file in place of util/k5test.py in a copy of the built tree, where MIT's own
is then k5test_mit.py. The scripts are as MIT wrote them. What is different in their realms is in
realms_with_servers.py. What is different in their checks is here:

  fail()               looks for the failure among those that expected.toml says must be
  at the end           all of these must have been seen, and the servers must have been asked
"""

import atexit
import os
import sys

sys.path.insert(1, os.path.join(os.environ['MPCKDC_REPOSITORY'], 'integration-tests/realm'))
sys.path.insert(1, os.path.join(os.environ['MPCKDC_REPOSITORY'], 'kdc-plugin/tests/mit'))

import counts  # noqa: E402
import expected  # noqa: E402
import realms_with_servers  # noqa: E402


def _judge_the_end():
    """A script that has succeeded has done so with what the list says, and with the servers."""
    if not mit._success:
        return
    asked = realms_with_servers.counts_of_all()
    for one in asked:
        print(f'*** Servers: {one}')
    if not any(one.jobs or one.made for one in asked):
        print('*** Servers: none asked')
    if mit.K5Realm.without_servers:
        print(f'*** Servers: {mit.K5Realm.without_servers} realms of the script have none: {_STOCK}')
    wrong = [f'expected.toml has a difference that did not occur: {one}' for one in _listed.not_seen()]
    wrong += counts.problems(_listed, asked)
    for text in wrong:
        print(f'*** Failure: {text}')
    sys.stdout.flush()
    if wrong:
        os._exit(1)


_STOCK = "MIT's test module makes up entries and their keys by itself, or there is no database"
# Registered before MIT's k5test registers anything, so it runs when all else is over.
atexit.register(_judge_the_end)

import k5test_mit as mit  # noqa: E402

_listed = expected.script(os.path.relpath(os.path.abspath(sys.argv[0]), mit.srctop))
_mit = {name: getattr(mit, name) for name in ('fail', 'multipass_realms')}


def fail(msg):
    """Goes on after a difference that is on the list, as the script would have after none."""
    seen = _listed.find(mark=mit._last_mark, command=mit._last_cmd, output=mit._last_cmd_output,
                        message=msg)
    if seen is None:
        _mit['fail'](msg)
    print(f'*** Difference: {mit._last_mark or "(beginning)"}: {mit._last_cmd}\n***   {seen.reason}')
    if seen.ends:
        mit.success('up to a difference')
        sys.exit(0)


def multipass_realms(**keywords):
    """MIT's passes, but for those whose keys the servers cannot hold; those are shown to be refused."""
    every, refused = mit._passes, expected.refused_passes()
    for one in every:
        mit._passes = [one]
        if one[0] not in refused:
            yield from _mit['multipass_realms'](**keywords)
        elif not mit.testpass or mit.testpass == one[0]:
            _show_refusal(one, refused[one[0]])
    mit._passes = every


_shown = set()


def _show_refusal(one, reason):
    """Once in a script. (A name that no list has as local.)"""
    name, krbtgt_keysalt, krb5_conf, kdc_conf = one
    if name in _shown:
        return
    _shown.add(name)
    realm = mit.K5Realm(krb5_conf=krb5_conf, kdc_conf=kdc_conf, create_user=False, create_host=False,
                        start_kdc=False)
    if krbtgt_keysalt:
        refused = [mit.kadminl, 'cpw', '-randkey', '-e', krbtgt_keysalt, realm.krbtgt_princ]
    else:
        refused = [mit.kadminl, 'addprinc', '-pw', 'any password', 'somebody.protected']
    realm.run(refused, expected_code=1, expected_msg='supported_enctypes = aes256-gcm:normal')
    print(f'*** Difference: pass {name}: {reason}')
    realm.stop()


for name, changed in (('fail', fail), ('multipass_realms', multipass_realms)):
    setattr(mit, name, changed)
realms_with_servers.change(mit, _listed)


def _uncaught(kind, error, trace):
    """A script that looks for what is not there ends with Python's own error."""
    sys.__excepthook__(kind, error, trace)
    fail(f'{kind.__name__}: {error}')


sys.excepthook = _uncaught

globals().update({name: value for name, value in vars(mit).items() if not name.startswith('__')})
__all__ = [name for name in vars(mit) if not name.startswith('_')]
