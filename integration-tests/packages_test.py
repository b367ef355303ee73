# SPDX-License-Identifier: Apache-2.0
"""What can be seen of the packages without building them; `make packages-check` does the rest."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
PACKAGES = REPOSITORY / 'deploy/packages'
DEBIAN = PACKAGES / 'debian'
EXPOSURE = 2.0
# In packages.txt for other things than our programs: tools of the build and krb5's own libraries.
NOT_OURS = {'ca-certificates', 'build-essential', 'ccache', 'dpkg-dev', 'quilt', 'autoconf', 'bison', 'libkeyutils-dev', 'libldap-dev',
            'libjemalloc2', 'python3', 'openssl', 'lmdb-utils', 'ninja-build', 'cmake', 'pkg-config'}
# Made by the build, whose own rules name them.
BUILT = {'mpc-server', 'mpc-admin', 'mpc-kdb', 'mpc-kdb-seal', 'mpc.so', 'login-storm'}

sys.path.insert(0, str(PACKAGES / 'check'))
import readme  # noqa: E402


def version():
    return re.search(r'^project\(mpc-kdc VERSION ([\d.]+)', (REPOSITORY / 'CMakeLists.txt').read_text(), re.M).group(1)


def changelog(*arguments):
    return subprocess.run([PACKAGES / 'changelog.py', REPOSITORY / 'CHANGELOG.md', *arguments], capture_output=True,
                          encoding='utf-8')


def test_the_changelog_begins_with_the_version_that_is_built():
    done = changelog(f'{version()}+deb12', 'bookworm', '1700000000')
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f'mpc-kdc ({version()}+deb12) bookworm; urgency=medium\n\n  * ')
    assert max(len(line) for line in done.stdout.splitlines() if not line.startswith(' -- ')) <= 80
    assert done.stdout.endswith('>  Tue, 14 Nov 2023 22:13:20 +0000\n')
    assert changelog('9.9.9+deb12', 'bookworm', '0').returncode != 0


def listed():
    for kind in ('install', 'manpages', 'docs', 'examples'):
        for file in sorted(DEBIAN.glob(f'*.{kind}')):
            for line in file.read_text().split('\n'):
                if line:
                    yield file.name, line.split()[0]


def test_each_file_that_a_package_gets_is_here_or_is_built():
    names = list(listed())
    assert len(names) > 20
    for where, path in names:
        if path.startswith('obj/'):
            assert path.rsplit('/', 1)[1] in BUILT, f'{where}: {path}'
        else:
            assert (REPOSITORY / path).exists(), f'{where}: {path} is not there'
    rules = (DEBIAN / 'rules').read_text()
    for path in re.findall(r'(?<= )deploy/[\w./-]+', rules):
        assert (REPOSITORY / path).exists(), f'rules: {path}'


def test_each_program_has_a_manual_page():
    pages = {path.rsplit('/', 1)[1].rsplit('.', 1)[0] for where, path in listed() if where.endswith('.manpages')}
    programs = {path.rsplit('/', 1)[1] for where, path in listed()
                if where.endswith('.install') and not path.endswith(('.so', '.toml'))}
    assert programs == BUILT - {'mpc.so'} | {'mpc-ca', 'login-storm-plot'}
    assert programs <= pages


def test_what_the_build_needs_is_what_packages_txt_installs():
    control = (DEBIAN / 'control').read_text()
    wanted = set(re.findall(r'[\w.+-]+', re.search(r'^Build-Depends: (.*?)^\w', control, re.M | re.S).group(1)))
    for line in (REPOSITORY / 'deploy/packages.txt').read_text().splitlines():
        name = line.split()[0] if line and not line.startswith('#') else None
        if name and name not in NOT_OURS:
            assert name in wanted, f'{name} is in packages.txt and not in debian/control'


def test_debians_source_package_can_be_prepared(tmp_path):
    build = pathlib.Path(os.environ.get('MPCKDC_BUILD', REPOSITORY / 'build'))
    found = sorted(build.glob('krb5/package/krb5_*.dsc'))
    if not found:
        pytest.skip('krb5 is not built here')
    source = tmp_path / 'source'
    subprocess.run(['dpkg-source', '--no-check', '--skip-patches', '-x', found[-1], source], check=True, capture_output=True)
    theirs = (source / 'debian/changelog').read_text().split('\n')[0]
    series = REPOSITORY / 'krb5-patches/series'
    subprocess.run([PACKAGES / 'krb5/prepare.sh', source, series.parent, series, version(), 'Tue, 14 Nov 2023 22:13:20 +0000'],
                   check=True)
    entry = (source / 'debian/changelog').read_text().split('\n')[0]
    assert entry.split(')')[0] == f'{theirs.split(")")[0]}+mpckdc{version()}'
    ours = [line for line in series.read_text().splitlines() if line and not line.startswith('#')]
    patches = (source / 'debian/patches/series').read_text().splitlines()
    assert patches[-len(ours):] == [f'remote-keys/{name}' for name in ours]
    symbols = (source / 'debian/libk5crypto3.symbols').read_text()
    assert '\n| libk5crypto3-remote-keys\n' in symbols
    assert re.search(r'^ krb5_c_register_remote_keys@k5crypto_3_MIT [\d.]+ 1$', symbols, re.M)
    # What Debian changed must be seen: here a rule that is gone.
    rules = source / 'debian/rules'
    rules.write_text(rules.read_text().replace('dh_auto_build', 'make'))
    again = subprocess.run([PACKAGES / 'krb5/prepare.sh', source, series.parent, series, version(), 'x'],
                           capture_output=True, encoding='utf-8')
    assert again.returncode != 0 and 'prepare.sh: ' in again.stderr


def test_the_commands_of_the_readme_are_found():
    blocks = readme.blocks(REPOSITORY / 'deploy/README.md')
    assert len(blocks) >= 8
    assert {name for names, _ in blocks for name in names} == {'mpc0', 'mpc1', 'mpc2', 'kdc1', 'admin'}
    text = (REPOSITORY / 'deploy/README.md').read_text()
    indented = [line for line in text.splitlines() if line.startswith('    ')]
    assert sum(len(script.splitlines()) for _, script in blocks) == len(indented), 'a command is for no machine'


@pytest.mark.parametrize('unit', ['mpc-server.service', 'mpc-rotate-krbtgt.service'])
def test_units_are_sandboxed(unit):
    if shutil.which('systemd-analyze') is None:
        pytest.skip('systemd is not installed')
    done = subprocess.run(['systemd-analyze', 'security', '--offline=true', '--no-pager', REPOSITORY / 'deploy/systemd' / unit],
                          capture_output=True, encoding='utf-8')
    found = re.search(r'exposure level for \S+: ([\d.]+)', done.stdout)
    assert found, done.stdout + done.stderr
    assert float(found.group(1)) <= EXPOSURE


def test_the_audit_log_is_where_logrotate_and_the_runbooks_look():
    written = tomllib.loads((REPOSITORY / 'deploy/config/mpc-server.toml').read_text())['audit']['file']
    assert written in (REPOSITORY / 'deploy/logrotate/mpc-kdc').read_text().split()
    assert written in (REPOSITORY / 'deploy/runbooks/a-server-deviated.md').read_text()
