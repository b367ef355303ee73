# SPDX-License-Identifier: Apache-2.0
"""What MIT's scripts import as k5test where their realms are to have three real servers.

krb5-check.sh puts this file in place of util/k5test.py in a copy of the built tree, where MIT's own
is then k5test_mit.py. The scripts are as MIT wrote them. What is different in their realms:

  kdc.conf             the module is mpc, wrapped around the one that the script names, and the realm
                       has three mpc-servers of its own (real_servers.py)
  kdb5_util create     is asked for keys of the gcm types, which krbtgt must have; principals that the
                       script makes later get what the script says
  krbtgt's new keys    are of the gcm type that is as long as the one the script asks for
  kadmin/HOST          gets keys of the gcm types, where a script makes it
  keytabs of users     are made from their passwords; ktadd gives none
  fail()               looks for the failure among those that expected.toml says must be
"""

import atexit
import os
import sys

sys.path.insert(1, os.path.join(os.environ['MPCKDC_REPOSITORY'], 'integration-tests/realm'))
sys.path.insert(1, os.path.join(os.environ['MPCKDC_REPOSITORY'], 'kdc-plugin/tests/mit'))

import expected  # noqa: E402
import k5test_mit as mit  # noqa: E402
import real_servers  # noqa: E402

_script = os.path.relpath(os.path.abspath(sys.argv[0]), mit.srctop)
_list = expected.Expected.of_script(_script)
_mit = {name: getattr(mit, name) for name in ('fail', 'success', 'skip_rest', 'multipass_realms')}


def fail(msg):
    """Goes on after a difference that is on the list, as the script would have after none."""
    seen = _list.find(mark=mit._last_mark, command=mit._last_cmd, output=mit._last_cmd_output,
                      message=msg)
    if seen is None:
        _mit['fail'](msg)
    print(f'*** Difference: {mit._last_mark or "(beginning)"}: {mit._last_cmd}\n***   {seen.reason}')
    if seen.ends:
        success('up to a difference')
        os._exit(_finished())


def _finished():
    """For an end in the middle of the script: what is done at its end."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    return 0


def success(msg):
    for entry in _list.not_seen():
        _mit['fail'](f'expected.toml has a difference that did not occur: {entry}')
    _mit['success'](msg)


def skip_rest(whatmsg, whymsg):
    _mit['skip_rest'](whatmsg, whymsg)


def multipass_realms(**keywords):
    """MIT's passes, but for those whose keys the servers cannot hold; those are shown to be refused."""
    every = mit._passes
    for one in every:
        mit._passes = [one]
        reason = expected.refused_pass(one[0])
        if reason is None:
            yield from _mit['multipass_realms'](**keywords)
        elif not mit.testpass or mit.testpass == one[0]:
            _show_refusal(one, reason)
    mit._passes = every


def _show_refusal(one, reason):
    name, krbtgt_keysalt, krb5_conf, kdc_conf = one
    realm = mit.K5Realm(krb5_conf=krb5_conf, kdc_conf=kdc_conf, create_user=False, create_host=False,
                        start_kdc=False)
    if krbtgt_keysalt:
        refused = [mit.kadminl, 'cpw', '-randkey', '-e', krbtgt_keysalt, realm.krbtgt_princ]
    else:
        refused = [mit.kadminl, 'addprinc', '-pw', 'any password', realm.user_princ]
    realm.run(refused, expected_code=1, expected_msg='supported_enctypes = aes256-gcm:normal')
    print(f'*** Difference: pass {name}: {reason}')
    realm.stop()


for name, changed in (('fail', fail), ('success', success), ('skip_rest', skip_rest),
                      ('multipass_realms', multipass_realms)):
    setattr(mit, name, changed)
real_servers.change(mit, expected.local_services(_script))


def _uncaught(kind, error, trace):
    """A script that looks for what is not there ends with Python's own error."""
    sys.__excepthook__(kind, error, trace)
    fail(f'{kind.__name__}: {error}')


sys.excepthook = _uncaught

globals().update({name: value for name, value in vars(mit).items() if not name.startswith('__')})
__all__ = [name for name in vars(mit) if not name.startswith('_')]
