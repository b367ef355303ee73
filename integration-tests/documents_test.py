# SPDX-License-Identifier: Apache-2.0
"""What the documents name exists: links, files, folders, tests, make targets, symbols.

Read are the Markdown files of the repository and the manual pages. Checked are

  - links `[text](path#anchor)`, with their anchors;
  - in backticks: paths (`agree/steps.h`, `share/reveal`, `storm_test.py`, `*_test.cc`, `wire/`), C++ and Python names
    (`JobClient::Submit`, `kChunksUnderWay`, `principal_failures`), `make TARGET`;
  - outside of backticks: paths that begin with a folder of the repository, and the first column of a
    table whose header begins with "file";
  - in indented blocks: `make TARGET` and paths.

A path may be meant from the document's folder, from the repository, or be the end of one path.
"""

import functools
import pathlib
import re
import subprocess

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
_SUFFIXES = r'(?:cc|h|c|py|sh|md|txt|toml|proto|patch|cmake|json|conf|tsv|in|1|8)'
_PATH = re.compile(r'^[\w.*-]+(?:/[\w.*-]+)*/?$')
_FILE = re.compile(rf'\.{_SUFFIXES}$')
# Not in the repository: other people's, or made when something runs.
_ELSEWHERE = re.compile(
    r'^(/|~|build/|certs/|host/|HTTP/|kadmin/|krbtgt/|K/M|nfs/|ldap/|root/|robot/|plugins/|lib/|tests/|src/|kdc/|'
    r'gssapi/|item/|DATA_DIR|PREFIX|REPOSITORY)|'
    r'^(kdc|krb5|kadm5|client-krb5)\.(conf|acl)$|^(ca|report|matrix|network|state)\.(pem|key|json|md)$')

# Put together by a program from pieces.
_MADE = {'bytes_per_hmac_per_party', 'hmacs_per_s', 'hmacs_per_cpu_s'}


@functools.lru_cache(maxsize=None)
def tracked():
    out = subprocess.run(['git', 'ls-files'], cwd=REPOSITORY, stdout=subprocess.PIPE, check=True,
                         encoding='utf-8').stdout
    files = set(out.split('\n')) - {''}
    for patch in (REPOSITORY / 'krb5-patches').glob('*.patch'):  # what they add to krb5
        files |= set(re.findall(r'^\+\+\+ b/(\S+)', patch.read_text(errors='replace'), re.M))
    folders = {str(parent) for file in files for parent in pathlib.PurePosixPath(file).parents}
    return files | folders - {'.'}


@functools.lru_cache(maxsize=None)
def words():
    """Every word of what is no document."""
    found = set()
    for file in tracked():
        path = REPOSITORY / file
        if path.is_file() and path.suffix not in ('.md', '.8', '.1') and path != pathlib.Path(__file__).resolve():
            found |= set(re.findall(r'\w+', path.read_text(errors='replace')))
    return found


@functools.lru_cache(maxsize=None)
def in_quotes(text):
    """A text of a program, "aes/norm" as a step, that looks like a path."""
    return any(f'"{text}"' in (REPOSITORY / file).read_text(errors='replace') for file in tracked()
               if file.endswith('.cc'))


@functools.lru_cache(maxsize=None)
def targets():
    text = (REPOSITORY / 'Makefile').read_text()
    return set(re.findall(r'^([a-z][\w0-9-]*):', text, re.M)) | {'depend'}  # krb5's own


@functools.lru_cache(maxsize=None)
def google_tests():
    found = set()
    for file in tracked():
        if file.endswith('_test.cc'):
            text = (REPOSITORY / file).read_text()
            pairs = re.findall(r'^(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)', text, re.M)
            found |= {f'{suite}.{name}' for suite, name in pairs}
    return found


def path_exists(name, folder):
    name = name.rstrip('/').replace('\\', '')
    while name.startswith('../'):
        folder, name = folder.parent, name[3:]
    tries = {str(folder / name), name} - {''}
    pattern = re.compile(
        '(?:^|/)' + re.escape(name).replace(r'\*', '[^/]*').replace('000N', r'\d{4}') + rf'(?:\.{_SUFFIXES})?$')
    return bool(tries & tracked()) or any(pattern.search(t) for t in tracked())


def anchors(path):
    found = set()
    for line in path.read_text().splitlines():
        if line.startswith('#'):
            title = re.sub(r'[^\w\- ]', '', line.lstrip('#').strip().lower())
            found.add(title.replace(' ', '-'))
    return found


def link_problem(target, document):
    if re.match(r'[a-z]+:', target):
        return None
    path, _, anchor = target.partition('#')
    file = (document.parent / path).resolve() if path else document
    if not file.exists():
        return 'no such file'
    if anchor and file.suffix == '.md' and anchor not in anchors(file):
        return 'no such heading'
    return None


def span_problem(span, folder):
    """What is wrong with a text in backticks; None for what is no name."""
    if re.match(r'^make [a-z]', span):
        target = span.split()[1]
        return None if target in targets() else f'no target {target} in the Makefile'
    test = re.fullmatch(r'(?:\S+::)?([A-Z]\w+[a-z]\.[A-Z]\w+[a-z]\w*)', span)
    if test and test[1] not in google_tests():
        return f'no test {test[1]}'
    for word in span.split():
        word = word.split('::')[0] if '::test_' in word else word
        word = word.strip('"\'(),;')
        looks = _PATH.match(word) and (_FILE.search(word) or
                                       '/' in word and not re.match(r'^[\d/.]+$|^[A-Z]', word))
        if looks and not _ELSEWHERE.match(word) and not path_exists(word, folder) \
                and not in_quotes(word):
            return f'no such path {word}'
    if re.fullmatch(r'[A-Za-z]\w*(::~?\w+)*(\(\))?', span) and (
            '::' in span or '_' in span or re.match(r'k[A-Z]', span) or
            re.match(r'[A-Z][a-z]+[A-Z]', span)):
        for word in re.findall(r'\w+', span):
            if word not in words() and word not in _MADE:
                return f'no {word} in any source'
    return None


def complaints(document, text=None):
    text = document.read_text() if text is None else text
    folder = document.parent.relative_to(REPOSITORY)
    tops = '|'.join(sorted(re.escape(t) for t in tracked() if '/' not in t and (REPOSITORY / t).is_dir()))
    found, files_table = [], None
    for number, line in enumerate(text.splitlines(), 1):
        def tell(what, why):
            found.append(f'{document.relative_to(REPOSITORY)}:{number}: {what}: {why}')
        for target in re.findall(r'\]\(([^)\s]+)\)', line):
            if why := link_problem(target, document):
                tell(target, why)
        plain = line
        if document.suffix == '.md':
            for span in re.findall(r'`([^`]+)`', line):
                if why := span_problem(span, folder):
                    tell(f'`{span}`', why)
            plain = re.sub(r'`[^`]*`|\]\([^)]*\)', ' ', line)
        else:
            plain = re.sub(r'\\f[BIRP]', '', line.replace('\\-', '-'))
        for path in re.findall(rf'(?<![\w/.-])((?:{tops})/[\w./*-]*[\w*/])', plain):
            if not path_exists(path, folder):
                tell(path, 'no such path')
        if line.startswith('    '):
            for target in re.findall(r'^    make ((?!N)[a-z][\w-]*)', line):
                if target not in targets():
                    tell(f'make {target}', 'no such target')
        if not line.startswith('|'):
            files_table = None
            continue
        first = line.split('|')[1].strip()
        if files_table is None:
            files_table = first == 'file'
        elif files_table and not set(first) <= set('-: '):
            for name in re.findall(r'[\w.*\\/-]+', first.replace('`', '')):
                name = name.replace('\\', '')
                if (_FILE.search(name) or name.endswith('/')) and not _ELSEWHERE.match(name) \
                        and not (path_exists(str(folder / name), folder) or path_exists(name, folder)):
                    tell(name, 'no such file')
    return found


def documents():
    return sorted(REPOSITORY / file for file in tracked()
                  if re.search(r'\.(md|1|8)$', file) and (REPOSITORY / file).is_file())


@pytest.mark.parametrize('document', documents(), ids=lambda d: str(d.relative_to(REPOSITORY)))
def test_what_is_named_exists(document):
    assert complaints(document) == []


@pytest.mark.parametrize('line', [
    '[x](no/such.md)', '[x](README.md#no-such-heading)', '`mpc-server/nowhere/`', '`no_such_file.cc`',
    '`make nonsense`', '    make nonsense', '`Nobody::Wrote`', 'see mpc-server/nowhere for it',
    '`mpc-server/base/secret_test.c`', '`SecretTest.NobodyWroteIt`'])
def test_a_wrong_name_is_seen(line):
    assert len(complaints(REPOSITORY / 'README.md', line)) == 1


@pytest.mark.parametrize('line', [
    '[x](README.md#limits-loudly)', '`mpc-server/base/`', '`secret_test.cc`', '`make demo`',
    '    make sim SEEDS=1', '`absl::Status`', 'see mpc-server/base for it', '`share/reveal`',
    '`SecretTest.DisableCoreDumps`'])
def test_a_right_name_is_accepted(line):
    assert complaints(REPOSITORY / 'README.md', line) == []
