#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the packages promise, tried. check.sh RELEASE [CASE...] runs it; each case is a function below."""

import pathlib
import re
import resource
import shutil
import subprocess
import sys
import time

import machines
import readme

RELEASE, BASE, PACKAGES = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
WORK = PACKAGES.parent / f'check-{RELEASE}'
SERVERS = ['mpc0', 'mpc1', 'mpc2']
REALM = [*SERVERS, 'kdc1', 'admin']
PASSWORD = 'correct horse battery staple'
MINUTES = 5
OURS = ['mpc-server', 'mpc-admin', 'mpc-kdc-plugin', 'login-storm']
EXPOSURE = 2.0


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


def control(package):
    text = subprocess.run(['dpkg-deb', '-f', str(package)], capture_output=True, encoding='utf-8', check=True).stdout
    return dict(re.findall(r'^([\w-]+): (.*(?:\n .*)*)', text, re.M))


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
    shown = dict(line.split('=', 1) for line in server.run(
        'systemctl show mpc-server -p Type,User,ActiveState,WatchdogUSec,MainPID,StatusText').splitlines())
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


# ---- Versions --------------------------------------------------------------------------------------------------


def another_version(pattern, folder, suffix, source=PACKAGES):
    """The same packages under another version, also where they name each other, in a repository of their own."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for package in sorted(source.glob(pattern)):
        if '-dbg' in package.name:
            continue
        fields = control(package)
        tree = folder / 'tree'
        machines.run('dpkg-deb', '-R', package, tree)
        text = (tree / 'DEBIAN/control').read_text()
        old = fields['Version']
        (tree / 'DEBIAN/control').write_text(text.replace(old, old + suffix))
        for configuration in tree.glob('etc/mpc-kdc/*.toml'):  # that dpkg asks about it
            configuration.write_text(configuration.read_text() + f'# as of {suffix}\n')
        machines.run('dpkg-deb', '--root-owner-group', '-Znone', '-b', tree, folder, stdout=subprocess.DEVNULL)
        shutil.rmtree(tree)
    with (folder / 'Packages').open('w') as index:
        machines.run('dpkg-scanpackages', '-m', '.', cwd=folder, stdout=index, stderr=subprocess.DEVNULL)
    return folder


# Where nobody answers questions: deploy/README.md, "Upgrading".
QUIETLY = 'DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Options::=--force-confold'


def installed(machine, package):
    return machine.run(f"dpkg-query -W -f '${{Version}}' {package}").strip()


def upgrade_case(cluster):
    """A newer version and back, of ours and of krb5: keys, realm and configuration stay."""
    admin = cluster['admin']
    before = keys_of(admin)
    versions = {(name, package): installed(cluster[name], package) for name, package in [
        *((server, 'mpc-server') for server in SERVERS), ('kdc1', 'mpc-kdc-plugin'), ('kdc1', 'krb5-kdc'),
        ('kdc1', 'krb5-admin-server'), ('admin', 'mpc-admin'), ('admin', 'krb5-user'), ('kdc1', 'libk5crypto3')]}
    another_version('*.deb', WORK / 'shared/next', '.next')
    for name in REALM:
        cluster[name].run("echo 'deb [trusted=yes] file:/srv/shared/next ./' > /etc/apt/sources.list.d/next.list; "
                          'apt-get -q update')
    outages = []
    for name in REALM:  # one after the other, as a rolling upgrade
        cluster[name].run(f'{QUIETLY} upgrade')
        outages.append(wait_for_login(admin))
    for (name, package), version in versions.items():
        expect(installed(cluster[name], package) == f'{version}.next', f'{package} of {name} is not the newer one')
    expect(keys_of(admin) == before, 'the upgrade changed keys')
    for name in REALM:
        cluster[name].run('rm /etc/apt/sources.list.d/next.list; apt-get -q update')
        back = ' '.join(cluster[name].run(
            "dpkg-query -W -f '${binary:Package} ${Version}\\n' | awk '$2 ~ /[.]next$/ { sub(/[.]next$/, \"\", $2); "
            "print $1 \"=\" $2 }'").split())
        expect(back, f'{name} has nothing of the newer version')
        cluster[name].run(f'{QUIETLY} --allow-downgrades install {back}')
        outages.append(wait_for_login(admin))
    for (name, package), version in versions.items():
        expect(installed(cluster[name], package) == version, f'{package} of {name} is not the older one again')
    expect(keys_of(admin) == before, 'the downgrade changed keys')
    for name in SERVERS:
        party = cluster[name].run("sed -n 's/^party = //p' /etc/mpc-kdc/mpc-server.toml").strip()
        expect(party == name[-1], f'the configuration of {name} was not kept')
    admin.run('mpc-admin verify')
    say(f'upgrade: up and down on five machines, one after the other; keys as before; the longest wait for a login '
        f'{max(outages):.1f} s')


def plugin_case(cluster):
    """mpc.so alone is upgraded, removed, and comes back: krb5kdc and kadmind have the one that is installed."""
    kdc, admin = cluster['kdc1'], cluster['admin']
    before = installed(kdc, 'mpc-kdc-plugin')
    another_version('mpc-kdc-plugin_*.deb', WORK / 'shared/plugin', '.plugin')
    kdc.run("echo 'deb [trusted=yes] file:/srv/shared/plugin ./' > /etc/apt/sources.list.d/plugin.list; "
            'apt-get -q update; DEBIAN_FRONTEND=noninteractive apt-get -q -y install mpc-kdc-plugin')
    expect(installed(kdc, 'mpc-kdc-plugin') != before, 'it was not upgraded')
    for unit in ('krb5-kdc', 'krb5-admin-server'):
        maps = kdc.run(f'cat /proc/$(systemctl show {unit} -p MainPID --value)/maps')
        expect('/kdb/mpc.so' in maps and 'mpc.so (deleted)' not in maps, f'{unit} goes on with the old mpc.so')
    log_in(admin)
    warned = kdc.run('apt-get -q -y remove mpc-kdc-plugin')
    expect('db_library = mpc' in warned, f'nothing is said of the realm that needs it: {warned}')
    failed = kdc.run('systemctl restart krb5-kdc', check=False)
    expect('failed' in failed, f'krb5kdc starts without mpc.so: {failed}')
    kdc.run(f'rm /etc/apt/sources.list.d/plugin.list; apt-get -q update; '
            f'DEBIAN_FRONTEND=noninteractive apt-get -q -y install mpc-kdc-plugin={before}; '
            'systemctl is-active krb5-kdc krb5-admin-server')
    again = wait_for_login(admin)
    say(f'plugin: upgraded alone, it is the one that krb5kdc and kadmind have; removed and installed again, a login '
        f'succeeded {again:.1f} s later')


def held_case(cluster):
    """Debian's next revision is newer and not patched: without the pin, too, apt leaves the KDC's krb5 alone."""
    kdc = cluster['kdc1']
    stock = WORK / 'shared/stock'
    shutil.rmtree(stock, ignore_errors=True)
    stock.mkdir(parents=True)
    kdc.run('mv /etc/apt/preferences.d/mpc-kdc /root/pin; apt-get -q update')
    try:
        theirs = kdc.run("apt-cache madison krb5-kdc | awk '$3 !~ /mpckdc/ { print $3; exit }'").strip()
        expect(theirs, 'Debian\'s own krb5 is not in the apt sources')
        kdc.run('mkdir -p /root/stock; cd /root/stock; for p in $(dpkg-query -W -f "\\${source:Package} \\${Package}\\n" | '
                f'awk \'$1 == "krb5" {{ print $2 }}\'); do apt-get -q download $p={theirs}; done')
        for deb in pathlib.Path(f'/proc/{kdc.init}/root/root/stock').glob('*.deb'):
            shutil.copy(deb, stock)
        another_version('*.deb', WORK / 'shared/advisory', '.advisory1', source=stock)
        kdc.run("echo 'deb [trusted=yes] file:/srv/shared/advisory ./' > /etc/apt/sources.list.d/advisory.list; "
                'apt-get -q update')
        said = kdc.run('apt-get -s upgrade')
        expect('kept back' in said and not re.search(r'^(Inst|Remv) (krb5-kdc|mpc-kdc-plugin|libk5crypto3) ', said, re.M),
               f'an upgrade would replace the patched krb5: {said}')
        # The control: it is the plugin's dependency that does it.
        control_said = kdc.run('apt-get -s -o Debug::NoLocking=1 install krb5-kdc mpc-kdc-plugin-', check=False)
        expect(re.search(r'^Inst krb5-kdc .*advisory1', control_said, re.M),
               f'without the plugin apt would not take it either: {control_said}')
    finally:
        kdc.run('rm -f /etc/apt/sources.list.d/advisory.list; mv /root/pin /etc/apt/preferences.d/mpc-kdc; '
                'apt-get -q update')
    held_by_the_pin(cluster['admin'])
    say('held: apt-get upgrade keeps the patched krb5 back from a newer one of Debian\'s, also without the pin where the '
        'plugin is, and with the pin where it is not')


def held_by_the_pin(machine):
    """A machine without the plugin: the pin alone does it."""
    machine.run("echo 'deb [trusted=yes] file:/srv/shared/advisory ./' > /etc/apt/sources.list.d/advisory.list; "
                'apt-get -q update')
    try:
        said = machine.run('apt-get -s upgrade')
        expect('advisory1' not in said, f'an upgrade would replace the patched krb5, pin or not: {said}')
        machine.run('mv /etc/apt/preferences.d/mpc-kdc /root/pin')
        control_said = machine.run('apt-get -s upgrade; mv /root/pin /etc/apt/preferences.d/mpc-kdc')
        expect(re.search(r'^Inst krb5-user .*advisory1', control_said, re.M),
               f'without the pin apt would not take it either: {control_said}')
    finally:
        machine.run('rm /etc/apt/sources.list.d/advisory.list; apt-get -q update')


def stock_case():
    """A KDC of Debian's with a realm of its own: our krb5 on it and off it, and nothing changes."""
    with machines.Machines(BASE, WORK / 'stock', ['stock1'], {'/srv/mpc-kdc': PACKAGES}) as cluster:
        kdc = cluster['stock1']
        kdc.run('apt-get -q update; DEBIAN_FRONTEND=noninteractive apt-get -q -y install krb5-kdc krb5-admin-server krb5-user')
        theirs = installed(kdc, 'krb5-kdc')
        expect('mpckdc' not in theirs, theirs)
        kdc.write('/etc/krb5.conf', '[libdefaults]\n default_realm = STOCK.NET\n[realms]\n STOCK.NET = {\n  kdc = stock1\n'
                                    '  admin_server = stock1\n }\n')
        kdc.run("sed 's/@MYREALM/STOCK.NET/' /usr/share/krb5-kdc/kdc.conf.template > /etc/krb5kdc/kdc.conf; "
                'touch /etc/krb5kdc/kadm5.acl; kdb5_util create -s -P master; kadmin.local addprinc -pw pw bob; kadmin.local addprinc -randkey host/stock1; '
                'systemctl restart krb5-kdc krb5-admin-server')
        names = "$(dpkg-query -W -f '${source:Package} ${Package}\\n' | awk '$1 == \"krb5\" { print $2 }')"

        def works():
            kdc.run('systemctl is-active krb5-kdc krb5-admin-server; echo pw | kinit bob; kvno host/stock1; '
                    'echo pw | kadmin -p bob -q getprivs; kdestroy')
            return kdc.run('kdb5_util dump | grep -v "^policy" | sort')
        dump = works()
        kdc.run("echo 'deb [trusted=yes] file:/srv/mpc-kdc ./' > /etc/apt/sources.list.d/mpc-kdc.list; apt-get -q update; "
                'DEBIAN_FRONTEND=noninteractive apt-get -q -y upgrade')
        expect('mpckdc' in installed(kdc, 'krb5-kdc'), 'ours did not replace Debian\'s')
        patched = works()
        kdc.run(f'rm /etc/apt/sources.list.d/mpc-kdc.list; apt-get -q update; DEBIAN_FRONTEND=noninteractive apt-get -q -y '
                f'--allow-downgrades install $(for p in {names}; do echo $p={theirs}; done)')
        expect(installed(kdc, 'krb5-kdc') == theirs, 'Debian\'s did not replace ours')
        back = works()
        expect(keys_in(dump) == keys_in(patched) == keys_in(back), 'keys changed')
    say(f'stock: a realm of Debian\'s krb5 {theirs} under ours and back, keys as before, logins, tickets, kadmin')


def keys_in(dump):
    """Name and key data of each principal: what logins change (times, counters) is left out."""
    keys = {}
    for line in dump.splitlines():
        fields = line.split('\t')
        if fields[0] == 'princ':
            keys[fields[6]] = [field for field in fields if re.fullmatch(r'[0-9a-f]{40,}', field)]
    expect('bob@STOCK.NET' in keys and keys['bob@STOCK.NET'], f'no keys in the dump: {dump}')
    return keys


# ---- Main ------------------------------------------------------------------------------------------------------

ALONE = {'packages': packages_case, 'stock': stock_case}
IN_THE_REALM = {'realm': realm_case, 'units': units_case, 'watchdog': watchdog_case,
                'comes-back': comes_back_case, 'upgrade': upgrade_case,
                'plugin': plugin_case, 'held': held_case}


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
