# SPDX-License-Identifier: Apache-2.0
"""What can be seen of a runbook without following it: that its programs, commands and options exist, that it
says what every runbook says, that it invents no figure, and that a test follows it."""

import functools
import pathlib
import re
import shlex
import subprocess

import config_files
import console
from bare_machines import PACKAGES
from stand_ins import FUNCTIONS, PLAIN
from world import RUNBOOKS

HERE = pathlib.Path(__file__).resolve().parent
INDEX = 'README.md'
# Pages about one version's upgrade, from programs that are not here any more: what all upgrades have in
# common is followed in upgrade.md. No other page may be without a test.
NOT_FOLLOWED = {'upgrade-0.3.md': 'needs 0.2.0', 'upgrade-0.4.md': 'needs 0.3.0'}
COPIES = {'ssh', 'scp'}
OURS = {program for programs in PACKAGES.values() for program in programs}
PARTS = ('**When**', '**What you need**', 'Did it work', 'If not', 'What stays dangerous')


def runbooks():
    return sorted(path for path in RUNBOOKS.glob('*.md') if path.name != INDEX)


def followed():
    """The pages that a test follows, as the tests' own text says."""
    text = ''.join(path.read_text() for path in HERE.glob('*_test.py') if path.name != 'check_test.py')
    return set(re.findall(r"\.follow\(\s*'([\w.-]+\.md)'", text))


def without_test(names, tested):
    return sorted(set(names) - tested - set(NOT_FOLLOWED))


# Commands ----------------------------------------------------------------------------------------

def words_of_programs(command):
    """[program, argument...] of each program of a command line; of a here document's first line."""
    lexer = shlex.shlex(command.split('\n')[0], posix=True, punctuation_chars='|&;<>')
    lexer.whitespace_split = True
    lexer.commenters = ''
    programs, begin = [], True
    for word in lexer:
        if word and set(word) <= set('|&;'):
            begin = True
        elif word and set(word) <= set('<>'):
            programs[-1].append(word)
        elif begin:
            programs.append([word])
            begin = False
        else:
            programs[-1].append(word)
    return programs


@functools.lru_cache(maxsize=None)
def help_of(*argv):
    name, *rest = argv
    done = subprocess.run([config_files.mpc_program(name), *rest, '--help'], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, encoding='utf-8', check=False)
    return done.stdout if done.returncode == 0 else None


def options(words):
    return [word.split('=')[0] for word in words if re.match(r'--[a-z]', word)]


def complaint_about(words):
    """What is wrong with one program's words, or None."""
    if words[0] == 'runuser':  # what it runs
        words = words[words.index('--') + 1:]
    program = words[0].rsplit('/', 1)[-1]
    if program in PLAIN | COPIES | set(FUNCTIONS):
        return None
    if program not in OURS:
        return f'{program} is no program of ours, and nothing stands for it'
    if program == 'mpc-ca':
        text = (config_files.REPOSITORY / 'deploy/ca/mpc-ca').read_text()
        return next((f'mpc-ca has no {word}' for word in options(words) if f'{word})' not in text), None)
    if program == 'mpc-admin':
        command = words[1] if not words[1].startswith('-') else None
        parts = [command, words[2]] if command == 'audit' else [command] if command else []
        text = help_of(program, *parts)
        if text is None or not text.startswith(' '.join(['usage: mpc-admin', *parts])):
            return f'mpc-admin has no command {" ".join(parts)}'
    elif program == 'mpc-server':
        text = (config_files.REPOSITORY / 'mpc-server/doc/man/mpc-server.8').read_text().replace('\\-', '-')
    else:
        return None
    return next((f'{program} has no option {word}' for word in options(words) if word not in text), None)


def complaints_about(steps):
    return [f'{step.where()}: {why}' for step in steps for words in words_of_programs(step.command)
            if (why := complaint_about(words))]


def missing_parts(text):
    return [part for part in PARTS if part not in text]


# Figures -------------------------------------------------------------------------------------------

def invented(path, text):
    """Figures in tables whose last column is "from", that the pages linked there do not have."""
    found, cited, in_table = [], '', False
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.strip('|').split('|')]
        if not line.startswith('|'):
            in_table = False
        elif cells[-1] == 'from':
            in_table = True
        elif in_table and not set(line) <= set('|- '):
            links = re.findall(r'\]\(([^)#]+)', cells[-1])
            if links:
                cited = ''.join((path.parent / link).resolve().read_text() for link in links)
            for figure in re.findall(r'(?<![\w.,])\d[\d,.]*\d(?![\w])', ' '.join(cells[:-1])):
                if not re.search(rf'(?<![\d,.]){re.escape(figure)}(?![\d]|,\d|\.\d)', cited):
                    found.append(f'{path.name}:{number}: {figure}')
    return found


# The index -------------------------------------------------------------------------------------------

@functools.lru_cache(maxsize=None)
def sources():
    """All that programs may print, with literals that go over several lines joined."""
    files = subprocess.run(['git', 'ls-files', '*.cc', '*.c', '*.h', 'krb5-patches/*.patch', 'deploy/monitoring/*.yml'],
                           cwd=config_files.REPOSITORY, stdout=subprocess.PIPE, check=True, encoding='utf-8').stdout
    text = ''.join((config_files.REPOSITORY / file).read_text(errors='replace') for file in files.split())
    return re.sub(r'"\s*\n\+?\s*"', '', text)
