# SPDX-License-Identifier: Apache-2.0
"""`make demo`: a realm whose keys no machine holds, and a user who logs in to it.

    demo.py          starts over: stops an old demo, makes the realm, shows a login, searches for keys
    demo.py --stop   stops what the demo left running

How a realm is made is in integration-tests/realm/realm.py, which the tests use too. How the search is
done is in proof.py beside it.
"""

import argparse
import pathlib
import sys
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / 'integration-tests/realm'))

import config_files  # noqa: E402
import proof  # noqa: E402
import realm  # noqa: E402

USER, PASSWORD = 'alice', 'correct horse battery staple'
SERVICE = 'host/www.example.com'
FOLDER = config_files.BUILD / 'demo'
# Above the kernel's usual range for outgoing connections.
PORTS = realm.Ports(kdc=61088, kadmind=61749, kpasswd=61464,
                    clients=(61100, 61101, 61102), peers=(61110, 61111, 61112))


def heading(text):
    print(f'\n== {text}', flush=True)


def say(text):
    for line in text.splitlines():
        print(f'   {line}', flush=True)


def show_command(argv, output):
    """Prints a command as a person would type it, and what it said."""
    shown = [argv[0].rsplit('/', 1)[-1]] + [str(arg) for arg in argv[1:]]
    say('$ ' + ' '.join(f"'{arg}'" if ' ' in arg else arg for arg in shown))
    say('\n'.join('  ' + line for line in output.splitlines() if line.strip()))


def stop_old(demo):
    stopped = demo.stop()
    if stopped:
        print('stopped: ' + ', '.join(stopped))
    return stopped


def start(demo):
    heading('Three mpc-servers, each with its own folder, store key and certificate')
    demo.write_files()
    demo.start_servers()
    for party, server in enumerate(demo.servers):
        say(f'P{party}  pid {server.pid()}  port {demo.ports.clients[party]}  {demo.dir}/p{party}')

    heading(f'The realm {demo.name}: krbtgt is drawn by the servers jointly, on shares')
    demo.trace = show_command
    demo.admin('init-realm')
    demo.trace = None
    demo.create_database()
    demo.add_service(SERVICE)
    demo.start_kdc()
    say(f'krb5kdc  pid {demo.kdc.pid()}  127.0.0.1:{demo.ports.kdc}')
    say(f'kadmind  pid {demo.kadmind.pid()}  127.0.0.1:{demo.ports.kadmind}')


def log_in(demo):
    demo.trace = show_command
    heading(f'{USER} is enrolled: her key is split on the administrator\'s machine, '
            'one share to each server')
    demo.enroll(USER, PASSWORD)

    heading(f'{USER} logs in and gets a service ticket')
    began = time.monotonic()
    demo.kinit(USER, PASSWORD)
    seconds = time.monotonic() - began
    demo.kvno(SERVICE)
    demo.klist('-e')
    say(f'(kinit took {1000 * seconds:.0f} ms)')

    heading('A wrong password is refused')
    wrong = demo.kinit(USER, 'not her password', ccache='ccache-wrong', check=False)
    demo.trace = None
    if wrong.returncode == 0 or 'Password incorrect' not in wrong.stdout:
        raise realm.RealmError('a wrong password was not refused as one')


def say_where_things_are(demo):
    heading('The realm is running')
    say(f'''everything lies in {demo.dir}
  p0/ p1/ p2/   each server's configuration, store key, shares   (one machine each, in earnest)
  kdc/          krb5kdc's and kadmind's database, stash, configuration
  ca/ admin/    test certificates; mpc-admin's configuration
  log/          logs; p0-audit.jsonl and its like: who asked which server for what

From a second terminal:
  . {demo.dir}/env.sh
  kinit {USER}            # password: {PASSWORD}
  klist -e
  kadmin.local listprincs
  mpc-admin status

To stop it:  make demo-stop''')


def run():
    demo = realm.Realm(FOLDER, ports=PORTS)
    stop_old(demo)
    taken = demo.ports.taken()
    if taken:
        print(f'The demo needs these loopback ports, and another process has them: '
              f'{", ".join(map(str, taken))}.\n`ss -lntup` shows whose they are. Nothing was '
              'started.', file=sys.stderr)
        return 1
    demo.destroy()
    began = time.monotonic()
    try:
        start(demo)
        log_in(demo)
        heading(f'No machine holds {USER}\'s key: a search for it, and for all that is derived from it')
        holds = proof.search(demo, USER, PASSWORD, FOLDER / 'stock', say)
    except (realm.RealmError, FileNotFoundError) as error:
        print(f'\nThe demo failed: {error}\nLogs: {demo.log_dir}', file=sys.stderr)
        demo.stop()
        return 1
    if not holds:
        print('\nThe demo failed: a key was found where none may be, or the search is blind.',
              file=sys.stderr)
        return 1
    say_where_things_are(demo)
    print(f'\nmake demo: everything as promised, in {time.monotonic() - began:.1f} s')
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('--stop', action='store_true', help='stop what the demo left running')
    if not parser.parse_args().stop:
        return run()
    if not stop_old(realm.Realm(FOLDER, ports=PORTS)):
        print('no demo is running')
    return 0


if __name__ == '__main__':
    sys.exit(main())
