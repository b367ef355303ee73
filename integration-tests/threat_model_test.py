# SPDX-License-Identifier: Apache-2.0
"""deploy/THREAT-MODEL.md names a test for each promise: here each name is looked up.

A test is written `PATH::NAME` in the column "tests": one of GoogleTest as Suite.Name, one of pytest
as pytest prints it (with [PARAMETER] or without), a step of a script of MIT's as it calls mark(). A
cell without one says why: "none: ..." or "not built".
"""

import functools
import pathlib
import re
import subprocess
import sys

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
DOCUMENT = REPOSITORY / 'deploy/THREAT-MODEL.md'
_REFERENCE = re.compile(r'`([^`:]+\.(?:cc|py))::([^`]+)`')
_WITHOUT_TEST = ('none: ', 'not built')


def cells_of_tests(text):
    """[(line number, cell)] of every column called "tests"."""
    cells, column = [], None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith('|'):
            column = None
            continue
        row = [cell.strip() for cell in re.split(r'(?<!\\)\|', line)[1:-1]]
        if column is None:
            column = row.index('tests') if 'tests' in row else -1
        elif column >= 0 and not set(row[0]) <= set('-:'):
            cells.append((number, row[column] if column < len(row) else ''))
    return cells


def complaints(text):
    """What is wrong with a document, a line each."""
    found = []
    for number, cell in cells_of_tests(text):
        references = _REFERENCE.findall(cell)
        if not references and not cell.startswith(_WITHOUT_TEST):
            found.append(f'line {number}: neither a test nor a reason why there is none: {cell!r}')
        for path, name in references:
            if why := problem(path, name):
                found.append(f'line {number}: {path}::{name}: {why}')
    return found


def problem(path, name):
    """Why there is no such test; None if there is."""
    file = REPOSITORY / path
    if not file.is_file():
        return 'no such file'
    if file.suffix == '.cc':
        return None if name in _google_tests(file) else 'no such test in this file'
    if path.startswith('integration-tests/'):
        return None if f'{path}::{name}' in _collected() else 'pytest does not collect it'
    text = file.read_text()
    known = f'mark({name!r})' in text or re.search(rf'^def {re.escape(name)}\(', text, re.M)
    return None if known else 'no such test in this file'


def _google_tests(file):
    found = re.findall(r'^(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)', file.read_text(), re.M)
    return {f'{suite}.{name}' for suite, name in found if not name.startswith('DISABLED_')}


@functools.lru_cache(maxsize=None)
def _collected():
    """What pytest collects, each test with its parameters and without."""
    result = subprocess.run(
        [sys.executable, '-m', 'pytest', '--collect-only', '-q', '-p', 'no:cacheprovider',
         'integration-tests'], cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        encoding='utf-8')
    names = {line for line in result.stdout.splitlines() if '::' in line}
    assert names, f'pytest collects nothing:\n{result.stdout}'
    return names | {name.split('[')[0] for name in names}


def test_every_named_test_exists():
    assert complaints(DOCUMENT.read_text()) == []


def test_there_are_promises_and_limits():
    assert len(cells_of_tests(DOCUMENT.read_text())) > 40


TABLE = '| promise | tests |\n|---|---|\n| it holds | {} |\n'


@pytest.mark.parametrize('cell', [
    '',
    'see the tests',
    '`integration-tests/realm/no_such_file_test.py::test_it`',
    '`integration-tests/realm/proof_test.py::test_that_nobody_wrote`',
    '`integration-tests/realm/proof_test.py::test_no_machine_holds_a_key[nowhere]`',
    '`mpc-server/base/secret_test.cc::SecretTest.ThatNobodyWrote`',
    '`mpc-server/base/secret_test.cc::SecretTest`',
    '`kdc-plugin/tests/kdb_module_test.py::test_that_nobody_wrote`',
    '`krb5-patches/testprovider/t_remote_keys.py::a step that nobody wrote`',
    '`integration-tests/realm/proof_test.py::test_no_machine_holds_a_key`<br>'
    '`mpc-server/base/secret_test.cc::SecretTest.ThatNobodyWrote`',
])
def test_a_wrong_name_is_seen(cell):
    assert len(complaints(TABLE.format(cell))) == 1


@pytest.mark.parametrize('cell', [
    '`integration-tests/realm/proof_test.py::test_no_machine_holds_a_key`',
    '`mpc-server/base/secret_test.cc::SecretTest.DisableCoreDumps`',
    '`mpc-server/store/share_store_test.cc::ShareStoreTest.NonceMarkOnlyRises`',
    '`kdc-plugin/tests/kdb_module_test.py::test_rename`',
    '`krb5-patches/testprovider/t_remote_keys.py::TGTs without header`',
    'none: it is an assumption',
    'not built',
])
def test_a_right_name_is_accepted(cell):
    assert complaints(TABLE.format(cell)) == []
