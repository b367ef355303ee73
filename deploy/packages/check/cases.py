#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the packages promise, tried. check.sh RELEASE [CASE...] runs it; each case is a function here or in versions.py."""

import json
import re
import resource
import shutil
import subprocess
import sys
import time

import machines
import readme
import versions
from trying import (BASE, Failed, OURS, PACKAGES, PASSWORD, REALM, RELEASE, REPOSITORY, SERVERS, WORK, control, expect, log_in,
                    say, wait_for_login)

MINUTES = 5
EXPOSURE = 2.0


# ---- The files -------------------------------------------------------------------------------------------------


def packages_case():
    """No private rpath, no code that may be written; the names that our krb5 alone provides."""
    names = {path.name.split('_')[0] for path in PACKAGES.glob('*.deb')}
    wanted = {*OURS, 'krb5-kdc', 'krb5-admin-server', 'krb5-user', 'libkrb5-3', 'libk5crypto3'}
    expect(wanted <= names, f'packages are missing: {sorted(wanted - names)}')
    seen = 0
    for package in sorted(PACKAGES.glob('*.deb')):
        name = package.name.split('_')[0].removesuffix('t64')
        if '-dbg' in name or name not in wanted | {'libkdb5-10', 'libkadm5srv-mit12'}:
            continue
        folder = WORK / 'unpacked' / package.stem
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        machines.run('dpkg-deb', '-x', package, folder)
        for file in folder.rglob('*'):
            if file.is_symlink() or not file.is_file() or file.read_bytes()[:4] != b'\x7fELF':
                continue
            seen += 1
            dynamic = subprocess.run(['readelf', '-dW', file], capture_output=True, encoding='utf-8').stdout
            expect(not re.search(r'R(UN)?PATH', dynamic), f'{file} has a private rpath')
            expect('BIND_NOW' in dynamic or 'NOW' in dynamic or package.name.startswith(('krb5', 'lib')),
                   f'{file} binds late')
    expect(seen > 20, f'only {seen} programs and libraries were looked at')
    plugin = control(next(PACKAGES.glob('mpc-kdc-plugin_*.deb')))
    for name in ('krb5-kdc', 'libk5crypto3', 'libkrb5-3', 'libkdb5-10', 'libkadm5srv-mit12'):
        expect(f'{name}-remote-keys' in plugin['Depends'], f'mpc-kdc-plugin does not depend on {name}-remote-keys')
    say(f'packages: {len(names)} names, {seen} programs and libraries without an rpath')


# ---- The realm -------------------------------------------------------------------------------------------------


def realm_case(cluster):
    """deploy/README.md, word by word."""
    began = time.monotonic()
    for names, script in readme.blocks(REPOSITORY / 'deploy/README.md'):
        outputs = cluster.run(names, script)
        (WORK / 'readme.log').open('a').write(
            ''.join(f'== {name}: {script}\n{output}\n' for name, output in outputs.items()))
        say(f'  {time.monotonic() - began:5.1f} s  {", ".join(names)}: {script.strip().splitlines()[0][:70]}')
    seconds = time.monotonic() - began
    shown = cluster['admin'].run('klist -e')
    expect('krbtgt/EXAMPLE.COM@EXAMPLE.COM' in shown, f'no ticket: {shown}')
    said = (WORK / 'readme.log').read_text()
    expect('command not found' not in said, f'a command of the page is in none of the packages: {said}')
    traced = cluster['admin'].run(f"echo '{PASSWORD}' | KRB5_TRACE=/dev/stdout kinit alice")
    expect('Selected etype info: etype aes256-gcm' in traced, f'the client does not use a gcm type: {traced}')
    expect(seconds < 60 * MINUTES, f'the realm answered after {seconds:.0f} s')
    wrong = cluster['admin'].run("echo wrong | kinit alice", check=False)
    expect('Password incorrect' in wrong, f'a wrong password was not refused as one: {wrong}')
    say(f'realm: deploy/README.md word by word, a realm answered after {seconds:.0f} s')


def units_case(cluster):
    """Type, user, watchdog, credential, sandbox, of units that run."""
    server, kdc = cluster['mpc0'], cluster['kdc1']
    # The first status comes after the circuits are prepared: on a busy machine some seconds after the first login.
    for _ in range(60):
        shown = dict(line.split('=', 1) for line in server.run(
            'systemctl show mpc-server -p Type,User,ActiveState,WatchdogUSec,MainPID,StatusText').splitlines())
        if shown['StatusText']:
            break
        time.sleep(0.5)
    expect(shown['Type'] == 'notify' and shown['ActiveState'] == 'active', f'{shown}')
    expect(shown['User'] == 'mpc-kdc' and shown['WatchdogUSec'] == '3min' and shown['StatusText'] == 'serving', f'{shown}')
    expect(server.run(f'stat -c %U /proc/{shown["MainPID"]}').strip() == 'mpc-kdc', 'runs as another user')
    expect(server.run('stat -c "%U %a" /etc/mpc-kdc/peer.key').strip() == 'root 600', 'peer.key is not root\'s alone')
    denied = server.run('setpriv --reuid mpc-kdc --regid mpc-kdc --clear-groups cat /etc/mpc-kdc/peer.key', check=False)
    expect('Permission denied' in denied, 'the server\'s user reads the private key\'s file')
    limits = server.run(f'grep -E "core|locked" /proc/{shown["MainPID"]}/limits')
    expect(re.search(r'core file size\s+0\s+0', limits) and re.search(rf'locked memory\s+{most_locked_memory()}\s', limits),
           limits)
    server.run('systemctl reload mpc-server')
    units = [(server, 'mpc-server'), (kdc, 'krb5-kdc'), (kdc, 'krb5-admin-server'), (cluster['admin'], 'mpc-rotate-krbtgt')]
    for machine, unit in units:
        said = machine.run(f'systemd-analyze security --no-pager {unit}.service')
        exposure = float(re.search(r'Overall exposure level for \S+: ([\d.]+)', said).group(1))
        expect(exposure <= EXPOSURE, f'{unit}: exposure {exposure}')
        complaints = machine.run(f'systemd-analyze verify --man=no {unit}.service 2>&1', check=False)
        expect(unit not in complaints, f'{unit}: {complaints}')
        say(f'units: {unit} is exposed {exposure}')
    log_in(cluster['admin'])


def most_locked_memory():
    """What LimitMEMLOCK=infinity gives here: where root may not raise its limits, what we have."""
    raised = subprocess.run(['prlimit', '--memlock=unlimited', 'true'], stderr=subprocess.DEVNULL).returncode == 0
    hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    return 'unlimited' if raised or hard == resource.RLIM_INFINITY else hard


def watchdog_case(cluster):
    """A server that stands still is started again; the control is a watchdog that is off."""
    server = cluster['mpc1']
    server.write('/etc/systemd/system/mpc-server.service.d/watchdog.conf', '[Service]\nWatchdogSec=4s\n')
    server.run('systemctl daemon-reload; systemctl restart mpc-server')
    time.sleep(10)
    state = server.run('systemctl show mpc-server -p NRestarts,ActiveState')
    expect('NRestarts=0' in state and 'ActiveState=active' in state, f'it does not feed the watchdog: {state}')
    server.run('kill -STOP $(systemctl show mpc-server -p MainPID --value)')
    for _ in range(60):
        time.sleep(0.5)
        state = server.run('systemctl show mpc-server -p NRestarts,ActiveState')
        if 'NRestarts=1' in state and 'ActiveState=active' in state:
            break
    expect('NRestarts=1' in state and 'ActiveState=active' in state, f'not started again: {state}')
    again = wait_for_login(cluster['admin'])
    server.run('rm /etc/systemd/system/mpc-server.service.d/watchdog.conf; systemctl daemon-reload; '
               'systemctl restart mpc-server')
    wait_for_login(cluster['admin'])
    say(f'watchdog: a stopped server was started again, a login succeeded {again:.1f} s later')


def comes_back_case(cluster):
    """A server that could not start for a while does when the reason is gone, and nobody has to think of it."""
    server, admin = cluster['mpc2'], cluster['admin']
    for name in ('peer.key', 'peer.pem'):
        server.run(f'mv /etc/mpc-kdc/{name} /root; systemctl restart mpc-server || true; sleep 15; '
                   f'mv /root/{name} /etc/mpc-kdc')
        again = wait_for_login(admin)
        say(f'comes-back: a server had no {name} for a while; {again:.1f} s later a login succeeded')


def request_of(kdc, status):
    """The name of the last request that ended so, from krb5kdc's line in the journal."""
    ended = re.compile(rf' {status}: .*alice@EXAMPLE\.COM .*, request ([0-9a-f]{{16}})$')
    found = [match.group(1) for entry in journal(kdc, '-u krb5-kdc') for match in [ended.search(entry['MESSAGE'])] if match]
    expect(found, f'krb5kdc\'s journal has no request of alice\'s that ended with {status}')
    return found[-1]


def journal(machine, what):
    return [json.loads(line) for line in machine.run(f'journalctl -q -o json {what}').splitlines()]


def verdicts_in_the_audit_log(server, request):
    lines = server.run(f'grep -sh {request} /var/log/mpc-kdc/audit.log* || true').splitlines()
    return [job['verdict'] for line in lines for job in json.loads(line).get('jobs', ()) if job.get('request') == request]


def journal_case(cluster):
    """One name for a request: in krb5kdc's line, in fields of the three servers' journals, in their audit logs."""
    admin, kdc = cluster['admin'], cluster['kdc1']
    log_in(admin)
    good = request_of(kdc, 'ISSUE')
    refused = admin.run('echo wrong | kinit alice', check=False)
    expect('Password incorrect' in refused, refused)
    wrong = request_of(kdc, 'PREAUTH_FAILED')
    time.sleep(2)  # the servers' lines are not waited for by who asked
    jobs = set()
    for name in SERVERS:
        server = cluster[name]
        expect(verdicts_in_the_audit_log(server, good) == ['OK'], f'{name}\'s audit log does not tell of {good}')
        expect(verdicts_in_the_audit_log(server, wrong) == ['BAD_TAG'], f'{name}\'s audit log does not tell of {wrong}')
        expect(not journal(server, f'MPC_REQUEST={good}'), f'{name}\'s journal tells of {good}, which went well')
        found = journal(server, f'-u mpc-server MPC_REQUEST={wrong}')
        expect(len(found) == 1, f'{name}\'s journal has {len(found)} lines of {wrong}')
        line = found[0]
        expect((line['_SYSTEMD_UNIT'], line['SYSLOG_IDENTIFIER'], line['MPC_KDC'], line['MPC_VERDICT']) ==
               ('mpc-server.service', 'mpc-server', 'kdc1', 'BAD_TAG') and wrong in line['MESSAGE'], f'{name}: {line}')
        jobs.add(line['MPC_JOB'])
    expect(len(jobs) == 1, f'the servers tell of different jobs: {jobs}')
    say(f'journal: krb5kdc\'s request {wrong}, a wrong password, is one line with its fields in three journals; that and a '
        f'login, {good}, are in three audit logs')


# ---- Main ------------------------------------------------------------------------------------------------------

ALONE = {'packages': packages_case, 'stock': versions.stock_case, 'newer': versions.newer_case}
IN_THE_REALM = {'realm': realm_case, 'units': units_case, 'journal': journal_case, 'watchdog': watchdog_case,
                'comes-back': comes_back_case, 'upgrade': versions.upgrade_case, 'plugin': versions.plugin_case,
                'held': versions.held_case}


def main():
    chosen = sys.argv[4:] or [*ALONE, *IN_THE_REALM]
    unknown = set(chosen) - {*ALONE, *IN_THE_REALM}
    if unknown:
        print(f'no such case: {", ".join(sorted(unknown))}', file=sys.stderr)
        return 2
    WORK.mkdir(parents=True, exist_ok=True)
    (WORK / 'shared').mkdir(exist_ok=True)
    (WORK / 'readme.log').unlink(missing_ok=True)
    try:
        for name, case in ALONE.items():
            if name in chosen:
                case()
        cases = [name for name in IN_THE_REALM if name in chosen]
        if cases:
            with machines.Machines(BASE, WORK / 'realm', REALM,
                                   {'/srv/mpc-kdc': PACKAGES, '/srv/shared': WORK / 'shared'}) as cluster:
                for name in cases if cases[0] == 'realm' else ['realm', *cases]:
                    IN_THE_REALM[name](cluster)
    except (Failed, machines.MachineError, subprocess.CalledProcessError) as error:
        print(f'{RELEASE}: FAILED: {error}', file=sys.stderr)
        print(f'{RELEASE}: journals: journalctl -D {WORK}/*/NAME/upper/var/log/journal', file=sys.stderr)
        return 1
    say('packages-check passed')
    return 0


if __name__ == '__main__':
    sys.exit(main())
