# SPDX-License-Identifier: Apache-2.0
"""What our Python scripts take from each other's modules is there, and the programs of the Makefile begin."""

import ast
import pathlib
import subprocess
import sys

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
PROGRAMS = ['deploy/demo/demo.py', 'integration-tests/storm/bench_storm.py',
            'integration-tests/storm/bench_stores.py', 'integration-tests/fault/matrix.py',
            'integration-tests/clients/client_matrix.py', 'integration-tests/wire/bench_network.py']


def files():
    out = subprocess.run(['git', 'ls-files', '*.py'], cwd=REPOSITORY, stdout=subprocess.PIPE, check=True,
                         encoding='utf-8').stdout
    return [REPOSITORY / name for name in out.split()]


def defined(tree):
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from ((alias.asname or alias.name).split('.')[0] for alias in node.names)


def test_names_of_modules_are_there():
    trees = {file: ast.parse(file.read_text()) for file in files()}
    known = {}
    for file, tree in trees.items():
        known.setdefault(file.stem, set()).update(defined(tree))
    wrong = []
    for file, tree in trees.items():
        modules = {alias.asname or alias.name: alias.name for node in ast.walk(tree)
                   if isinstance(node, ast.Import) for alias in node.names if alias.name in known}
        for node in ast.walk(tree):
            if (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
                    and node.value.id in modules and not node.attr.startswith('__')
                    and node.attr not in known[modules[node.value.id]]):
                wrong.append(f'{file.relative_to(REPOSITORY)}:{node.lineno}: {node.value.id}.{node.attr}')
    assert wrong == []


@pytest.mark.parametrize('program', PROGRAMS)
def test_a_program_begins(program):
    done = subprocess.run([sys.executable, program, '--help'], cwd=REPOSITORY, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, encoding='utf-8')
    assert done.returncode == 0, done.stdout
