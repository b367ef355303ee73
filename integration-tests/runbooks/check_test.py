# SPDX-License-Identifier: Apache-2.0
"""The cheap checks of all runbooks, which `make test` does; runbooks_test.py follows them."""

import re

import pytest

import check
import config_files
import console
from world import RUNBOOKS

PAGES = [pytest.param(path, id=path.name) for path in check.runbooks()]
# What stock krb5 says, which is not in our sources.
OF_KRB5 = {'A service is not available that is required to process the request', 'Password incorrect',
           'Cannot contact any KDC'}


def test_each_runbook_is_followed_by_a_test():
    assert check.without_test([path.name for path in check.runbooks()], check.followed()) == []


@pytest.mark.parametrize('path', PAGES)
def test_commands_exist(path):
    assert check.complaints_about(console.read(path)) == []


@pytest.mark.parametrize('path', PAGES)
def test_it_says_what_a_runbook_says(path):
    if path.name not in check.NOT_FOLLOWED:
        assert check.missing_parts(path.read_text()) == []
        assert console.read(path), 'it has no commands'


@pytest.mark.parametrize('path', PAGES)
def test_no_command_is_outside_of_what_is_followed(path):
    """An indented block is not run: nobody would know whether it is right."""
    if path.name in check.NOT_FOLLOWED:
        return
    text = re.sub(r'```.*?```', '', path.read_text(), flags=re.S)
    assert re.findall(r'^    (?:mpc-|kadmin|kdb5_util|systemctl).*$', text, re.M) == []


def test_figures_are_where_they_are_said_to_come_from():
    path = RUNBOOKS / 'capacity.md'
    assert check.invented(path, path.read_text()) == []


def index_rows():
    """(what is seen, where it leads) of the index."""
    text = (RUNBOOKS / check.INDEX).read_text().split('## By what you want')[0]
    rows = [line.strip('|').split('|') for line in text.splitlines()
            if line.startswith(('| `', '| some'))]
    return [(row[0], row[-1]) for row in rows]


def test_the_index_has_each_runbook():
    text = (RUNBOOKS / check.INDEX).read_text()
    assert [path.name for path in check.runbooks() if f']({path.name}' not in text] == []


def test_the_index_names_what_programs_say():
    seen = {span for row, _ in index_rows() for span in re.findall(r'`([^`]+)`', row)}
    assert len(seen) > 40
    unknown = [span for span in seen - OF_KRB5 if span not in check.sources()]
    assert unknown == []


def test_the_index_has_each_alert():
    rules = (config_files.REPOSITORY / 'deploy/monitoring/mpc-kdc.rules.yml').read_text()
    text = (RUNBOOKS / check.INDEX).read_text()
    assert [name for name in re.findall(r'- alert: (\w+)', rules) if f'`{name}`' not in text] == []


# The checks see -------------------------------------------------------------------------------------

def steps(tmp_path, text):
    page = tmp_path / 'page.md'
    page.write_text(f'# Page\n\n```console\n{text}\n```\n')
    return console.read(page)


@pytest.mark.parametrize('command', [
    'kdc# frobnicate', 'kdc# mpc-admin statsu', 'kdc# mpc-admin status --loudly', 'ca# mpc-ca issue certs --rolle peer',
    'p0# mpc-server --check-konfig', 'kdc# ls | frobnicate', 'kdc# reboot', 'kdc# mpc-admin audit forge x'])
def test_a_command_that_does_not_exist_is_seen(tmp_path, command):
    assert len(check.complaints_about(steps(tmp_path, command))) == 1


@pytest.mark.parametrize('command', [
    'kdc# mpc-admin rotate-krbtgt --finish --force', 'p*# systemctl reload mpc-server', 'kdc# ls /etc | grep "a b" > x',
    "kdc# mpc-kdb list | sed 's/;/|/' | sort -u", 'kdc# mpc-admin --version',
    'kdc# mpc-admin audit show x --since 2026-01-01'])
def test_a_command_that_exists_is_accepted(tmp_path, command):
    assert check.complaints_about(steps(tmp_path, command)) == []


def test_a_runbook_without_a_test_is_seen():
    assert check.without_test(['new.md', 'install.md'], check.followed()) == ['new.md']


def test_an_invented_figure_is_seen():
    path = RUNBOOKS / 'capacity.md'
    text = path.read_text()
    assert len(check.invented(path, text.replace('| 8,483 |', '| 9,483 |'))) == 1
    assert len(check.invented(path, text.replace('1,541', '1,154'))) == 1


def test_a_missing_part_is_seen():
    text = (RUNBOOKS / 'install.md').read_text()
    assert check.missing_parts(text.replace('What stays dangerous', 'More')) == ['What stays dangerous']


# What a block says, and what is printed ------------------------------------------------------------

BLOCK = '''kdc# mpc-admin list x   # it is refused, exit status 4
error: ... is not there
client$ cat > file <<END
> one # exit status 3
> END
p*# true'''


def test_blocks_are_read(tmp_path):
    first, second, third = steps(tmp_path, BLOCK)
    assert (first.machine, first.root, first.command, first.statuses) == ('kdc', True, 'mpc-admin list x', (4,))
    assert first.expected == ['error: ... is not there'] and first.heading == 'Page'
    assert (second.root, second.command, second.statuses) == (False, 'cat > file <<END\none # exit status 3\nEND', (0,))
    assert third.machine == 'p*' and third.line == 9


@pytest.mark.parametrize('text', ['output first', 'kdc# ls\nfile\n> more of the command'])
def test_a_block_that_nobody_can_follow(tmp_path, text):
    with pytest.raises(console.BadRunbook):
        steps(tmp_path, text)


@pytest.mark.parametrize('expected, printed', [
    ([], ''), (['a  b'], ' a b\n\n'), (['a ... d'], 'a b c d'), (['...'], ''), (['...'], 'a\nb'),
    (['...', 'c'], 'a\nc'), (['a', '...', 'c', '...'], 'a\nc'), (['a', '...', 'c'], 'a\nb\nc\nb\nc'),
    (['(a.c)'], '(a.c)'), (['x ...', '...'], 'x y\nz')])
def test_what_fits(expected, printed):
    assert console.fits(expected, printed)


@pytest.mark.parametrize('expected, printed', [
    ([], 'a'), (['a'], ''), (['a'], 'a\nb'), (['a', 'b'], 'a'), (['a ... d'], 'a b c'), (['...', 'c'], 'a\nc\nd'),
    (['(a.c)'], '(abc)'), (['a', 'b'], 'b\na'), (['...', 'b', '...'], 'a\nc')])
def test_what_does_not_fit(expected, printed):
    assert not console.fits(expected, printed)
