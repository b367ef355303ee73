# SPDX-License-Identifier: Apache-2.0
"""What stands for the programs of a runbook that cannot run here. What is neither here nor one of
PLAIN, nor a program of ours, no test lets a runbook say.

| program | what stands for it |
|---|---|
| systemctl | starts what ExecStart= of the unit says, as its User=, and waits until it listens; signals |
| journalctl | what the unit's processes printed |
| apt | makes the package's programs appear on the machine; they come from the build |
| ssh, scp | a shell, or a copy, at the machine of that name |
| export | is remembered for the machine's next commands, each of which has a shell of its own |
"""

import os
import pathlib
import re
import shlex
import signal
import subprocess
import time
import tomllib

import config_files
import daemon
from bare_machines import SERVICE_ID, SERVICE_USER, Output

UNITS = config_files.REPOSITORY / 'deploy/systemd'
PATIENCE = 30
MAY_LOCK = ['--inh-caps=+ipc_lock', '--ambient-caps=+ipc_lock']  # for LimitMEMLOCK=, which containers may not raise
# Programs of any Debian, which run as they are.
PLAIN = {'awk', 'base64', 'cat', 'chmod', 'chown', 'cp', 'diff', 'echo', 'find', 'grep', 'head', 'hostname', 'install', 'ls', 'mkdir',
         'mv', 'openssl', 'rm', 'runuser', 'sed', 'sha256sum', 'shred', 'sort', 'tail', 'tar', 'tee', 'test', 'touch', 'wc'}
# Debian's units, as far as they matter here.
_DEBIAN = {
    'krb5-kdc': 'ExecStart=/usr/sbin/krb5kdc -n\n',
    'krb5-admin-server': 'ExecStart=/usr/sbin/kadmind -nofork\n',
}


def unit_text(name):
    file = UNITS / (name if name.endswith('.timer') else f'{name}.service')
    return _DEBIAN.get(name) or (file.read_text(encoding='utf-8') if file.exists() else None)


def values(text, key):
    """Of a unit file, with continued lines."""
    return re.findall(rf'^{key}=(.*)$', text.replace('\\\n', ' '), re.M)


class Service:
    """A unit of one machine, as systemd would run it."""

    def __init__(self, machine, unit):
        self.machine, self.unit = machine, unit
        self.text = unit_text(unit)
        self.journal = machine.folder / f'journal-{unit}.log'
        self.child = None

    def is_running(self):
        return self.child is not None and self.child.poll() is None

    def argv(self, line):
        path, *arguments = shlex.split(line)
        user = SERVICE_ID if values(self.text, 'User') == [SERVICE_USER] else None
        become = ['setpriv', '--pdeathsig=KILL']  # with the test's process, however that ends
        if user:
            become = ['prlimit', '--core=0', *become, f'--reuid={user}', f'--regid={user}',
                      '--clear-groups', *MAY_LOCK]
        return self.machine.argv([*become, path.rsplit('/', 1)[-1], *arguments])

    def make_folders(self):
        mode = int((values(self.text, 'StateDirectoryMode') or ['755'])[0], 8)
        for key, place in (('StateDirectory', 'var-lib'), ('LogsDirectory', 'var-log')):
            for name in ' '.join(values(self.text, key)).split():
                folder = self.machine.folder / place / name
                if not folder.exists():
                    folder.mkdir(mode=mode)
                for path in (folder, *folder.rglob('*')):  # as systemd does when the owner is another
                    os.chown(path, SERVICE_ID, SERVICE_ID)

    def start(self):
        if self.is_running():
            return True
        self.make_folders()
        environment = self.machine.environment()
        with open(self.journal, 'ab') as journal:
            for line in values(self.text, 'ExecStartPre'):
                if subprocess.run(self.argv(line), env=environment, stdin=subprocess.DEVNULL, stdout=journal,
                                  stderr=journal, check=False).returncode:
                    return False
            self.child = subprocess.Popen(self.argv(values(self.text, 'ExecStart')[0]), env=environment,
                                          stdin=subprocess.DEVNULL, stdout=journal, stderr=journal,
                                          start_new_session=True)
        daemon.wait_until(lambda: not self.is_running() or self.listens(), PATIENCE)
        return self.is_running() and self.listens()

    def listens(self):
        return all(self.machine.listens(self.child.pid, port) for port in self.ports())

    def ports(self):
        if self.unit == 'mpc-server':
            with open(self.machine.folder / 'etc/mpc-kdc/mpc-server.toml', 'rb') as file:
                return [int(where.rsplit(':', 1)[1]) for where in tomllib.load(file)['listen'].values()]
        return {'krb5-kdc': [88], 'krb5-admin-server': [749]}[self.unit]

    def stop(self, number=signal.SIGTERM):
        if not self.is_running():
            return
        self.child.send_signal(number)
        try:
            self.child.wait(15)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self):
        if self.is_running():
            self.child.kill()
            self.child.wait()


def service(machine, name):
    unit = name.removesuffix('.service')
    if not unit_text(unit):
        return None
    return machine.processes.setdefault(unit, Service(machine, unit))


def systemctl(machine, arguments):
    verb, *names = [word for word in arguments if not word.startswith('-')]
    out, status = '', 0
    for name in names:
        if name.endswith('.timer') and unit_text(name) and verb in ('enable', 'disable', 'start', 'stop'):
            continue  # nothing here waits for a day
        unit = service(machine, name)
        if not unit:
            return Output(f'Unit {name} not found.\n', 5)
        if values(unit.text, 'Type') == ['oneshot'] and verb == 'start':
            text, failed = _run_once(unit)
            out += text
            status = status or failed
        elif verb in ('start', 'restart'):
            if verb == 'restart':
                unit.stop()
            if not unit.start():
                out += f'Job for {unit.unit}.service failed.\n'
                status = 1
        elif verb in ('stop', 'disable'):
            if verb == 'stop' or '--now' in arguments:
                unit.stop()
        elif verb == 'enable':
            if '--now' in arguments and not unit.start():
                out += f'Job for {unit.unit}.service failed.\n'
                status = 1
        elif verb == 'reload':
            unit.child.send_signal(signal.SIGHUP)
            time.sleep(0.3)
        elif verb == 'is-active':
            out += 'active\n' if unit.is_running() else 'inactive\n'
            status = status if unit.is_running() else 3
        else:
            return Output(f'systemctl: no stand-in for {verb}\n', 64)
    return Output(out, status)


def _run_once(unit):
    with open(unit.journal, 'ab') as journal:
        for line in values(unit.text, 'ExecStart'):
            done = subprocess.run(unit.argv(line), env=unit.machine.environment(), stdin=subprocess.DEVNULL,
                                  stdout=journal, stderr=journal, check=False)
            if done.returncode:
                return f'Job for {unit.unit}.service failed.\n', 1
    return '', 0


def journalctl(machine, arguments):
    unit = service(machine, arguments[arguments.index('-u') + 1])
    if not unit:
        return Output('no such unit\n', 1)
    lines = unit.journal.read_text(errors='replace').splitlines() if unit.journal.exists() else []
    count = int(arguments[arguments.index('-n') + 1]) if '-n' in arguments else len(lines)
    return Output('\n'.join(lines[-count:]) + '\n', 0)


def apt(machine, arguments):
    verb, *packages = [word for word in arguments if not word.startswith('-')]
    if verb not in ('install', 'update', 'upgrade'):
        return Output(f'apt: no stand-in for {verb}\n', 64)
    for package in packages:
        if not machine.install(package):
            return Output(f'E: Unable to locate package {package}\n', 100)
    return Output('', 0)


def export(machine, arguments):
    """Holds for the machine's later commands, as in a person's shell."""
    machine.exported.update(word.split('=', 1) for word in arguments)
    return Output('', 0)


FUNCTIONS = {'systemctl': systemctl, 'journalctl': journalctl, 'apt': apt, 'export': export}

# ssh is called by mpc-admin too, so it is a program: at whichever machine the name belongs to.
_SSH = '''#!/bin/sh
# ssh [USER@]MACHINE COMMAND...
while :; do case $1 in -*) shift ;; *) break ;; esac; done
machine=${1#*@}; shift
pid=$(sed -n "s/^$machine //p" /srv/bin/.machines)
[ -n "$pid" ] || { echo "ssh: Could not resolve hostname $machine" >&2; exit 255; }
[ -d "/proc/$pid" ] || { echo "ssh: connect to host $machine port 22: No route to host" >&2; exit 255; }
exec nsenter --target="$pid" --mount --net --uts sh -c "cd; $*"
'''
_SCP = '''#!/bin/sh
# scp FROM TO, one of them MACHINE:PATH
while :; do case $1 in -*) shift ;; *) break ;; esac; done
to=$2
case $to in */ | .) to=$to/${1##*/} ;; esac
case $to in *:*/ | *:) to=$to${1##*/} ;; esac
case $1 in
  *:*) ssh "${1%%:*}" "cat ${1#*:}" > "$to" ;;
  *) ssh "${to%%:*}" "cat > ${to#*:}" < "$1" ;;
esac
'''


def tell_of_each_other(machines):
    """Each machine's ssh knows where the others are."""
    table = ''.join(f'{machine.fqdn} {machine.pid}\n' for key, machine in machines.items()
                    if machine.is_on() and key == machine.name)
    for machine in machines.values():
        for name, text in (('ssh', _SSH), ('scp', _SCP)):
            path = pathlib.Path(machine.folder) / 'bin' / name
            path.write_text(text)
            path.chmod(0o755)
        (machine.folder / 'bin/.machines').write_text(table)
