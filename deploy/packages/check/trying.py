# SPDX-License-Identifier: Apache-2.0
"""What all cases use: what was asked for, and questions to machines."""

import pathlib
import re
import subprocess
import sys
import time

import machines

RELEASE, BASE, PACKAGES = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
WORK = PACKAGES.parent / f'check-{RELEASE}'
SERVERS = ['mpc0', 'mpc1', 'mpc2']
REALM = [*SERVERS, 'kdc1', 'admin']
PASSWORD = 'correct horse battery staple'
OURS = ['mpc-server', 'mpc-admin', 'mpc-kdc-plugin', 'login-storm']


class Failed(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise Failed(what)


def say(text):
    print(f'{RELEASE}: {text}', flush=True)


def log_in(admin, user='alice', password=PASSWORD):
    admin.run(f"kdestroy -q; echo '{password}' | kinit {user}")
    return admin.run('klist -e')


def keys_of(admin):
    """What the servers hold: names, versions, handles."""
    return admin.run('mpc-admin list')


def wait_for_login(admin, seconds=30):
    """Seconds until a login succeeds again."""
    began = time.monotonic()
    while time.monotonic() < began + seconds:
        try:
            log_in(admin)
            return time.monotonic() - began
        except machines.MachineError as error:
            last = error
            time.sleep(0.5)
    raise Failed(f'no login within {seconds} s: {last}')


def control(package):
    text = subprocess.run(['dpkg-deb', '-f', str(package)], capture_output=True, encoding='utf-8', check=True).stdout
    return dict(re.findall(r'^([\w-]+): (.*(?:\n .*)*)', text, re.M))


def installed(machine, package):
    return machine.run(f"dpkg-query -W -f '${{Version}}' {package}").strip()
