# SPDX-License-Identifier: Apache-2.0
"""Realms for the tests. Most tests share one; a test that breaks things makes its own."""

import itertools

import pytest

import realm as realm_module


@pytest.fixture(scope='session')
def shared_realm(tmp_path_factory):
    live = realm_module.Realm(tmp_path_factory.mktemp('shared') / 'realm')
    try:
        live.create()
        yield live
    finally:
        live.stop()


@pytest.fixture(scope='module')
def own_realm(tmp_path_factory):
    """A realm of the module's own."""
    live = realm_module.Realm(tmp_path_factory.mktemp('own') / 'realm')
    try:
        live.create()
        yield live
    finally:
        live.stop()


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


_counter = itertools.count(1)


@pytest.fixture
def new_user():
    """new_user(realm): the name and the password of a fresh enrolled principal."""
    def make(live, password='a first password'):
        name = f'user{next(_counter)}'
        live.enroll(name, password)
        return name, password
    return make


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
