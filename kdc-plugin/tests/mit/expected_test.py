# SPDX-License-Identifier: Apache-2.0
"""The list of what MIT's scripts must see otherwise, and whether it hides anything."""

import pathlib
import tomllib

import pytest

import expected

CHECK = {'mark': 'first keys', 'command': 'kadmin.local ktadd user', 'output': 'use mpc-admin randkey',
         'message': 'kadmin.local failed with code 1.'}


def entry(**changes):
    return expected.Difference(**{'script': 'tests/t_x.py', 'reason': 'why', 'command': 'ktadd user',
                                  'instead': 'mpc-admin randkey', **changes})


def test_a_listed_difference_is_found_and_ticked_off():
    listed = expected.Expected([entry(), entry(command='renprinc')])
    assert listed.find(**CHECK).reason == 'why'
    assert [one.command for one in listed.not_seen()] == ['renprinc']


@pytest.mark.parametrize('changed', [{'mark': 'other'}, {'command': 'kadmin.local cpw'},
                                     {'output': 'Segmentation fault'}, {'message': 'other'}])
def test_another_failure_is_none_of_it(changed):
    listed = expected.Expected([entry(case='first', message='code 1')])
    assert listed.find(**{**CHECK, **changed}) is None
    assert len(listed.not_seen()) == 1


def test_the_list_is_whole():
    entries = tomllib.loads(expected.FILE.read_text())['difference']
    for script in {one['script'] for one in entries}:
        expected.Expected.of_script(script)
    for one in entries:
        assert len(one['reason']) > 20 and (one.get('command') or one.get('case')), one


def test_an_entry_that_fits_everything_is_refused(tmp_path, monkeypatch):
    listed = tmp_path / 'expected.toml'
    listed.write_text('[[difference]]\nscript = "tests/t_x.py"\nreason = "any"\ncommand = "kinit"\n')
    monkeypatch.setattr(expected, 'FILE', pathlib.Path(listed))
    with pytest.raises(ValueError, match='does not say what is seen instead'):
        expected.Expected.of_script('tests/t_x.py')
