# SPDX-License-Identifier: Apache-2.0
"""Cases about one version after another: of ours, of Debian's krb5, and Debian's instead of ours."""

import pathlib
import re
import shutil
import subprocess

import machines
import readme
from trying import (BASE, PACKAGES, REALM, REPOSITORY, SERVERS, WORK, control, expect, installed, keys_of, log_in, say,
                    wait_for_login)

KRB5_HERE = "$(dpkg-query -W -f '${source:Package} ${Package}\\n' | awk '$1 == \"krb5\" { print $2 }')"  # for bash


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


def verify(admin, tries=4):
    """It computes on whole keys, thousands of rounds: with other work on the machine a call's 30 s may be too few."""
    for _ in range(tries - 1):
        try:
            return admin.run('mpc-admin verify')
        except machines.MachineError as error:
            if 'same request, or are not connected' not in str(error):
                raise
    return admin.run('mpc-admin verify')


# Where nobody answers questions: deploy/README.md, "Upgrading".
QUIETLY = 'DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Options::=--force-confold'


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
    verify(admin)
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


def stock_version(machine):
    theirs = machine.run("apt-cache madison krb5-kdc | awk '$3 !~ /mpckdc/ { print $3; exit }'").strip()
    expect(theirs, 'Debian\'s own krb5 is not in the apt sources')
    return theirs


def offer_advisory(machine):
    """A newer revision of Debian's krb5, of the packages that the machine has: apt of that machine finds it."""
    stock = WORK / 'shared/stock'
    shutil.rmtree(stock, ignore_errors=True)
    stock.mkdir(parents=True)
    machine.run(f'mkdir -p /root/stock; cd /root/stock; for p in {KRB5_HERE}; do apt-get -q download $p={stock_version(machine)}; '
                'done')
    for deb in pathlib.Path(f'/proc/{machine.init}/root/root/stock').glob('*.deb'):
        shutil.copy(deb, stock)
    another_version('*.deb', WORK / 'shared/advisory', '.advisory1', source=stock)
    add_advisory(machine)


def add_advisory(machine):
    machine.run("echo 'deb [trusted=yes] file:/srv/shared/advisory ./' > /etc/apt/sources.list.d/advisory.list; "
                'apt-get -q update')


def held_case(cluster):
    """Debian's next revision is newer and not patched: without the pin, too, apt leaves the KDC's krb5 alone."""
    kdc = cluster['kdc1']
    kdc.run('mv /etc/apt/preferences.d/mpc-kdc /root/pin; apt-get -q update')
    try:
        offer_advisory(kdc)
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
    add_advisory(machine)
    try:
        said = machine.run('apt-get -s upgrade')
        expect('advisory1' not in said, f'an upgrade would replace the patched krb5, pin or not: {said}')
        machine.run('mv /etc/apt/preferences.d/mpc-kdc /root/pin')
        control_said = machine.run('apt-get -s upgrade; mv /root/pin /etc/apt/preferences.d/mpc-kdc')
        expect(re.search(r'^Inst krb5-user .*advisory1', control_said, re.M),
               f'without the pin apt would not take it either: {control_said}')
    finally:
        machine.run('rm /etc/apt/sources.list.d/advisory.list; apt-get -q update')


# ---- Debian's krb5 and ours ------------------------------------------------------------------------------------


class StockRealm:
    """Debian's KDC with a realm of its own on one machine."""

    def __init__(self, machine):
        self.machine = machine
        machine.run('apt-get -q update; DEBIAN_FRONTEND=noninteractive apt-get -q -y install krb5-kdc krb5-admin-server '
                    'krb5-user')
        self.stock = installed(machine, 'krb5-kdc')
        expect('mpckdc' not in self.stock, self.stock)
        machine.write('/etc/krb5.conf', '[libdefaults]\n default_realm = STOCK.NET\n[realms]\n STOCK.NET = {\n'
                      f'  kdc = {machine.name}\n  admin_server = {machine.name}\n }}\n')
        machine.run("sed 's/@MYREALM/STOCK.NET/' /usr/share/krb5-kdc/kdc.conf.template > /etc/krb5kdc/kdc.conf; "
                    'touch /etc/krb5kdc/kadm5.acl; kdb5_util create -s -P master; kadmin.local addprinc -pw pw bob; '
                    f'kadmin.local addprinc -randkey host/{machine.name}; systemctl restart krb5-kdc krb5-admin-server')
        self.keys = self._works()

    def _works(self):
        """Logins, tickets and kadmin do; the keys."""
        self.machine.run(f'systemctl is-active krb5-kdc krb5-admin-server; echo pw | kinit bob; kvno host/{self.machine.name}; '
                         'echo pw | kadmin -p bob -q getprivs; kdestroy')
        return keys_in(self.machine.run('kdb5_util dump'))

    def works_as_before(self, what):
        expect(self._works() == self.keys, f'{what} changed keys')


def keys_in(dump):
    """Name and key data of each principal: what logins change (times, counters) is left out."""
    keys = {}
    for line in dump.splitlines():
        fields = line.split('\t')
        if fields[0] == 'princ':
            keys[fields[6]] = [field for field in fields if re.fullmatch(r'[0-9a-f]{40,}', field)]
    expect(keys.get('bob@STOCK.NET'), f'no keys in the dump: {dump}')
    return keys


def stock_case():
    """A KDC of Debian's with a realm of its own: our krb5 on it and off it, and nothing changes."""
    with machines.Machines(BASE, WORK / 'stock', ['stock1'], {'/srv/mpc-kdc': PACKAGES}) as cluster:
        kdc = cluster['stock1']
        realm = StockRealm(kdc)
        kdc.run("echo 'deb [trusted=yes] file:/srv/mpc-kdc ./' > /etc/apt/sources.list.d/mpc-kdc.list; apt-get -q update; "
                'DEBIAN_FRONTEND=noninteractive apt-get -q -y upgrade')
        expect('mpckdc' in installed(kdc, 'krb5-kdc'), 'ours did not replace Debian\'s')
        realm.works_as_before('our krb5')
        kdc.run(f'rm /etc/apt/sources.list.d/mpc-kdc.list; apt-get -q update; DEBIAN_FRONTEND=noninteractive apt-get -q -y '
                f'--allow-downgrades install $(for p in {KRB5_HERE}; do echo $p={realm.stock}; done)')
        expect(installed(kdc, 'krb5-kdc') == realm.stock, 'Debian\'s did not replace ours')
        realm.works_as_before('Debian\'s krb5')
    say(f'stock: a realm of Debian\'s krb5 {realm.stock} under ours and back, keys as before, logins, tickets, kadmin')


def newer_case():
    """A KDC with a newer revision of Debian's krb5 than ours are built on: deploy/README.md's commands install ours."""
    with machines.Machines(BASE, WORK / 'newer', ['kdc1'],
                           {'/srv/mpc-kdc': PACKAGES, '/srv/shared': WORK / 'shared'}) as cluster:
        kdc = cluster['kdc1']
        realm = StockRealm(kdc)
        offer_advisory(kdc)
        kdc.run('DEBIAN_FRONTEND=noninteractive apt-get -q -y upgrade')
        newer = installed(kdc, 'krb5-kdc')
        expect(newer.endswith('.advisory1'), newer)
        sources, install, *_ = [script for names, script in readme.blocks(REPOSITORY / 'deploy/README.md') if 'kdc1' in names]
        kdc.run(sources)
        without = kdc.run(install.replace(' --allow-downgrades', ''), check=False)
        expect('without --allow-downgrades' in without and installed(kdc, 'krb5-kdc') == newer,
               f'apt would do without the option: {without}')
        kdc.run(install)
        left = kdc.run(f"dpkg-query -W -f '${{Package}} ${{Version}}\\n' | grep advisory1", check=False)
        expect('mpckdc' in installed(kdc, 'krb5-kdc') and not left.strip(), f'of Debian\'s there is still: {left}')
        realm.works_as_before('our older krb5 with the plugin')
    say(f'newer: deploy/README.md\'s commands put ours over Debian\'s krb5 {newer}, keys as before, logins, tickets, kadmin')
