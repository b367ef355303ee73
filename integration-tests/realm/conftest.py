# SPDX-License-Identifier: Apache-2.0
"""Realms for the tests. Most tests share one; a test that breaks things makes its own."""

import errno
import itertools
import os
import subprocess

import pytest

import realm as realm_module


@pytest.fixture(scope='session')
def shared_realm(tmp_path_factory):
    with realm_module.Realm(tmp_path_factory.mktemp('shared') / 'realm') as live:
        yield live.create()


@pytest.fixture(scope='module')
def own_realm(tmp_path_factory):
    """A realm of the module's own."""
    with realm_module.Realm(tmp_path_factory.mktemp('own') / 'realm') as live:
        yield live.create()


@pytest.fixture
def make_realm(tmp_path):
    """make_realm(**options): a realm that is not started yet; stopped after the test."""
    made = []

    def make(**options):
        live = realm_module.Realm(tmp_path / f'realm{len(made)}', realm_module.Options(**options))
        made.append(live)
        return live
    yield make
    for live in made:
        live.stop()


@pytest.fixture
def new_realm(make_realm):
    """new_realm(**options): a realm that is up."""
    return lambda **options: make_realm(**options).create()


_counter = itertools.count(1)


@pytest.fixture
def new_user():
    """new_user(realm): the name and the password of a fresh enrolled principal."""
    def make(live, password='a first password'):
        name = f'user{next(_counter)}'
        live.enroll(name, password)
        return name, password
    return make


@pytest.fixture
def user(live, new_user):
    """Of the realm that the test's module calls `live`."""
    return new_user(live)


@pytest.fixture
def mount_disk():
    """mount_disk(folder, mb): a file system of its own there; unmounted at the end."""
    mounted = []

    def mount(folder, mb):
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={mb}m,mode=700', 'tmpfs',
                               folder], capture_output=True, encoding='utf-8')
        if done.returncode:
            pytest.skip(f'this machine mounts no tmpfs: {done.stderr.strip()}')
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(['umount', '-l', folder], check=True)


@pytest.fixture
def fill_disk():
    """fill_disk(folder): leaves no block free; returns the file that took them."""
    def fill(folder):
        path = folder / 'filler'
        with open(path, 'wb', buffering=0) as file:
            for size in (65536, 4096, 1):
                try:
                    while True:
                        file.write(b'x' * size)
                except OSError as e:
                    assert e.errno == errno.ENOSPC
        assert os.statvfs(folder).f_bavail == 0
        return path
    return fill


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failing test shows the ends of its realm's logs."""
    report = (yield).get_result()
    if not report.failed:
        return
    for value in getattr(item, 'funcargs', {}).values():
        if isinstance(value, realm_module.Realm):
            for log in sorted(value.log_dir.glob('*.log')):
                tail = log.read_text(errors='replace').splitlines()[-15:]
                report.sections.append((f'end of {log.name}', '\n'.join(tail)))
