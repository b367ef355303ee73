# SPDX-License-Identifier: Apache-2.0
"""The list of what MIT's scripts must see otherwise, and whether it or the counting of jobs hides
anything."""

import json
import pathlib

import pytest

import counts
import expected

CHECK = {'mark': 'first keys', 'command': 'kadmin.local ktadd user', 'output': 'use mpc-admin randkey',
         'message': 'kadmin.local failed with code 1.'}
NOTHING = {table: [] for table in expected.TABLES}


def entry(**changes):
    return {'script': 'tests/t_x.py', 'reason': 'why', 'command': 'ktadd user',
            'instead': 'mpc-admin randkey', **changes}


def script(*differences, asks='jobs'):
    listed = {**NOTHING, 'difference': differences, 'asks': [{'what': asks, 'reason': 'why'}]}
    return expected.Script('tests/t_x.py', listed)


def test_a_listed_difference_is_found_and_ticked_off():
    listed = script(entry(), entry(command='renprinc'))
    assert listed.find(**CHECK).reason == 'why'
    assert [one.command for one in listed.not_seen()] == ['renprinc']


@pytest.mark.parametrize('changed', [{'mark': 'other'}, {'command': 'kadmin.local cpw'},
                                     {'output': 'Segmentation fault'}, {'message': 'other'}])
def test_another_failure_is_none_of_it(changed):
    listed = script(entry(case='first', message='code 1'))
    assert listed.find(**{**CHECK, **changed}) is None
    assert len(listed.not_seen()) == 1


def test_the_list_is_whole():
    for name in expected.scripts():
        for one in expected.script(name).differences:
            assert one.command or one.case, one


@pytest.mark.parametrize('wrong, says', [
    ('[[difference]]\nscript = "tests/t_x.py"\nreason = "any reason that is long"\ncommand = "kinit"\n',
     'does not say what is seen instead'),
    ('[[local]]\nscript = "tests/t_x.py"\nnames = ["user"]\nreason = "so"\n', 'does not say why'),
    ('[[asks]]\nscript = "tests/t_x.py"\nwhat = "little"\nreason = "any reason that is long"\n',
     'one of')])
def test_an_entry_that_hides_too_much_is_refused(tmp_path, monkeypatch, wrong, says):
    listed = tmp_path / 'expected.toml'
    listed.write_text(wrong)
    monkeypatch.setattr(expected, 'FILE', pathlib.Path(listed))
    with pytest.raises(ValueError, match=says):
        expected.script('tests/t_x.py')


# ---- Counting ------------------------------------------------------------------------------------

LOGIN = {'kind': 'batch', 'jobs': [
    {'op': 'LOGIN', 'verdict': 'OK', 'keys': [{'handle': 'a'}, {'handle': 'b'}]},
    {'op': 'LOGIN', 'verdict': 'REFUSED', 'keys': [{'handle': 'c'}]}]}
WRITE = {'kind': 'admin', 'call': 'CommitKeys', 'result': 'OK'}


def write_logs(folder, *records, parties=3):
    for party in range(parties):
        (folder / f'p{party}-audit.jsonl').write_text(
            ''.join(json.dumps(record) + '\n' for record in records))


def test_jobs_are_counted_that_all_three_computed(tmp_path):
    write_logs(tmp_path, WRITE, LOGIN, {'kind': 'admin', 'call': 'ListKeys', 'result': 'OK'})
    found = counts.of_realm('R', tmp_path)
    assert (found.jobs, found.used, found.made) == (1, 2, 1)
    assert counts.problems(script(), [found]) == []


def test_a_server_that_computed_nothing_counts(tmp_path):
    write_logs(tmp_path, WRITE, LOGIN, parties=2)
    assert counts.of_realm('R', tmp_path).jobs == 0


@pytest.mark.parametrize('asks, jobs, made, says', [
    ('jobs', 0, 2, 'computed no job'), ('jobs', 0, 0, 'no key was put'), ('keys', 1, 2, 'there were 1'),
    ('keys', 0, 0, 'no key was put'), ('nothing', 0, 1, 'asks no server')])
def test_a_script_that_asks_otherwise_than_the_list_says_has_failed(asks, jobs, made, says):
    asked = [counts.Counts('R', jobs, jobs, made)]
    assert says in ' '.join(counts.problems(script(asks=asks), asked))
