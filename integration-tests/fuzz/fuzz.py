#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the fuzz targets of a build, one after the other, and says what came of it.

    fuzz.py BUILD [--seconds N] [--runs N] [--max-len N] [--only NAME,NAME] [--json FILE] [--keep] [--jobs N] [--fast]

BUILD is configured with -DMPCKDC_FUZZ=ON and built (make fuzz does both). Each target sets out from its own
seeds, which its encoders write, and from its kept corpus; --keep adds to the corpus what reached more, as few
and as short inputs as reach all of it. First the control: bugs that were planted must be found.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
CORPUS = TOP / 'integration-tests/fuzz/corpus'
KRB5_CORPUS = TOP / 'krb5-patches/fuzz/corpus'
CONTROL = 'control_'
CONTROL_SECONDS = 60
KEPT_INPUT_BYTES = 4096     # longer ones are not kept: a corpus is text in this repository
KEPT_CORPUS_BYTES = 40_000
LLVM = ('-14', '')          # suffixes of the tools


class Target:
    def __init__(self, line):
        """A line of fuzz-targets.txt: folder of the sources, program, name, files that it tries."""
        self.folder, self.program, self.name, *covers = line.split()
        self.covers = [os.path.normpath(TOP / self.folder / path) for path in covers]

    @property
    def corpus(self):
        ours = not self.folder.startswith('krb5-patches')
        return (CORPUS if ours else KRB5_CORPUS) / f'{self.name}.corpus'


def read_targets(build):
    lines = (build / 'fuzz-targets.txt').read_text().splitlines()
    return [Target(line) for line in lines if line.strip()]


def tool(name):
    for suffix in LLVM:
        if path := shutil.which(name + suffix):
            return path
    sys.exit(f'{name} is missing: apt-get install llvm-14')


# ---- Corpora: one input a line, in hexadecimal ----

def unpack(corpus, folder):
    if not corpus.exists():
        return 0
    inputs = corpus.read_text().split('\n')[:-1]
    for number, line in enumerate(inputs):
        (folder / f'kept-{number}').write_bytes(bytes.fromhex(line))
    return len(inputs)


def pack(folder, corpus):
    """The shortest first, so that a corpus that would be too long loses the longest."""
    inputs = sorted((path.read_bytes() for path in folder.iterdir()), key=lambda b: (len(b), b))
    lines, size = [], 0
    for data in inputs:
        size += 2 * len(data) + 1
        if len(data) <= KEPT_INPUT_BYTES and size <= KEPT_CORPUS_BYTES:
            lines.append(data.hex())
    corpus.parent.mkdir(exist_ok=True)
    corpus.write_text(''.join(line + '\n' for line in sorted(lines)))
    return len(lines)


# ---- One run ----

# The frames of each allocation take much of the time; whoever runs a reproducer sees them.
NO_FRAMES = ':malloc_context_size=1'
# Freed memory is used again soon, and new memory filled less far, so that it stays in the caches.
HOT_MEMORY = ':quarantine_size_mb=1:thread_local_quarantine_size_kb=16:max_malloc_fill_size=64'


def run_program(target, arguments, profile='/dev/null', leaks=1, asan=''):
    environment = dict(os.environ, LLVM_PROFILE_FILE=str(profile), UBSAN_OPTIONS='print_stacktrace=1',
                       ASAN_OPTIONS=f'allocator_may_return_null=1:detect_leaks={leaks}{asan}')
    command = [target.program, f'--target={target.name}', *arguments]
    return subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, errors='replace')


def statistic(output, name):
    found = re.search(rf'stat::{name}:\s+(\d+)', output)
    return int(found[1]) if found else 0


def write_seeds(target, folder):
    folder.mkdir()
    seeds = run_program(target, [f'--write-seeds={folder}'], leaks=0)
    if seeds.returncode != 0:
        sys.exit(f'{target.name}: no seeds:\n{seeds.stdout}')


def fuzz(target, options, work):
    """What one target did: a dictionary, the row of the table."""
    folder, crashes = work / target.name, options.build / 'crashes'
    crashes.mkdir(exist_ok=True)
    write_seeds(target, folder)
    kept = unpack(target.corpus, folder)
    begun = len(list(folder.iterdir()))
    started = time.monotonic()
    arguments = [f'-max_total_time={options.seconds}', '-timeout=25', '-rss_limit_mb=2560', '-print_final_stats=1',
                 f'-artifact_prefix={crashes}/{target.name}-', f'-use_value_profile={int(options.profile)}']
    if options.max_len:
        arguments.append(f'-max_len={options.max_len}')
    if options.runs:
        arguments.append(f'-runs={options.runs}')
    if options.fast:
        arguments.append('-entropic=0')
    done = run_program(target, arguments + [str(folder)], asan=NO_FRAMES + (HOT_MEMORY if options.fast else ''))
    row = {'target': target.name, 'executions': statistic(done.stdout, 'number_of_executed_units'),
           'seconds': round(time.monotonic() - started, 1), 'inputs': begun, 'kept': kept,
           'features': feature_count(done.stdout), 'found': statistic(done.stdout, 'new_units_added'),
           'crash': None}
    row['per_second'] = round(row['executions'] / max(row['seconds'], 0.1))
    if done.returncode != 0:
        found = re.search(r'Test unit written to (\S+)', done.stdout)
        row['crash'] = found[1] if found else f'exit status {done.returncode}'
        again = run_program(target, [row['crash']]).stdout if found else ''
        (crashes / f'{target.name}.log').write_text(done.stdout + again)
    return row


def feature_count(output):
    """Of the last line that tells: what of the code was reached, with counts and comparisons."""
    told = re.findall(r' ft: (\d+)', output)
    return int(told[-1]) if told else 0


def minimise(target, work):
    """The fewest inputs of its folder that reach, with the seeds, all that they reach together."""
    small = work / f'{target.name}.small'
    write_seeds(target, small)
    seeds = list(small.iterdir())
    done = run_program(target, ['-merge=1', '-timeout=25', '-max_len=65536', str(small), str(work / target.name)])
    if done.returncode != 0:
        sys.exit(f'{target.name}: the corpus does not merge:\n{done.stdout[-2000:]}')
    for seed in seeds:
        seed.unlink()
    return small


# ---- Coverage ----

class Lines:
    """Of one file: of all its functions, and of those that any input has entered."""
    def __init__(self):
        self.ran = self.count = self.entered_ran = self.entered_count = 0

    def add(self, count, missed):
        self.ran += count - missed
        self.count += count
        if missed < count:
            self.entered_ran += count - missed
            self.entered_count += count


def coverage(targets, profiles, work):
    """{file: Lines} of all that the targets are to cover, together."""
    merged = work / 'all.profdata'
    subprocess.run([tool('llvm-profdata'), 'merge', '-sparse', '-o', merged, *profiles], check=True)
    programs = list(dict.fromkeys(target.program for target in targets))
    files = sorted({path for target in targets for path in target.covers})
    if not files:
        return {}
    objects = [argument for program in programs[1:] for argument in ('-object', program)]
    out = subprocess.run([tool('llvm-cov'), 'report', '-show-functions', f'-instr-profile={merged}', programs[0],
                          *objects, *files], check=True, capture_output=True, text=True).stdout
    covered = {path: Lines() for path in files}
    path = None
    for line in out.splitlines():
        if named := re.match(r"File '(.*)':$", line):
            path = named[1]
        # Name, regions, missed, percent, lines, missed, ...
        elif (words := line.split()) and len(words) >= 7 and words[4].isdigit() and words[0] != 'TOTAL':
            covered[path].add(int(words[4]), int(words[5]))
    return covered


# ---- What is said ----

def print_row(row):
    ending = f"CRASH {row['crash']}" if row['crash'] else ''
    print(f"{row['target']:20} {row['executions']:>12,} {row['per_second']:>9,} {row['inputs']:>7,} "
          f"{row['found']:>7,} {row['features']:>9,}  {ending}", flush=True)


def percent(part, whole):
    return 100 * part / whole if whole else 0


def print_coverage(covered):
    """A file has more than a parser, so functions that nothing enters are told apart."""
    print(f"\n{'lines run':>10} {'of':>6} {'':>6} {'of functions entered':>21}  file")
    for path, lines in covered.items():
        name = path[len(str(TOP)) + 1:] if path.startswith(f'{TOP}/') else path
        name = re.sub(r'^.*/fuzz-krb5/[^/]*/', 'krb5: ', name)
        print(f'{lines.ran:>10} {lines.count:>6} {percent(lines.ran, lines.count):>5.1f}% '
              f'{percent(lines.entered_ran, lines.entered_count):>20.1f}%  {name}')


def try_control(targets, options, work):
    """Every planted bug is found, and what was written down makes it happen again."""
    for target in targets:
        own = argparse.Namespace(**vars(options))
        own.seconds, own.runs, own.build, own.profile = CONTROL_SECONDS, 0, work, True
        row = fuzz(target, own, work)
        again = row['crash'] and run_program(target, [row['crash']]).returncode != 0
        print(f"control {target.name}: {'found after ' + str(row['seconds']) + ' s' if again else 'NOT FOUND'}",
              flush=True)
        if not again:
            sys.exit('a planted bug was not found: what the targets below say would mean nothing')


def try_target(target, options, work):
    """Fuzzes it, keeps what was found, and runs that once more for the coverage."""
    row = fuzz(target, options, work)
    if options.keep and not row['crash']:
        row['kept'] = pack(minimise(target, work), target.corpus)
    if not options.no_coverage:
        run_program(target, ['-runs=0', f'-artifact_prefix={work}/', str(work / target.name)],
                    profile=work / f'{target.name}.profraw')
    return row


def choose(targets, only):
    names = set(only.split(',')) if only else None
    unknown = (names or set()) - {target.name for target in targets}
    if unknown:
        sys.exit(f"no such target: {', '.join(sorted(unknown))}; there are "
                 f"{', '.join(target.name for target in targets)}")
    return [target for target in targets if not names or target.name in names]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build', type=pathlib.Path)
    parser.add_argument('--seconds', type=int, default=60, help='for each target')
    parser.add_argument('--runs', type=int, default=0, help='stop a target after so many executions')
    parser.add_argument('--max-len', type=int, default=0, help='of an input in bytes; short ones are quicker')
    parser.add_argument('--only', help='names, with commas between')
    parser.add_argument('--jobs', type=int, default=1, help='targets at a time')
    parser.add_argument('--json', type=pathlib.Path)
    parser.add_argument('--keep', action='store_true', help='add to the corpora in the tree')
    parser.add_argument('--profile', action='store_true', help='compare values too: slower, finds more')
    parser.add_argument('--fast', action='store_true',
                        help='choose inputs without weighing how rare their features are, and use freed memory '
                             'again at once: more executions')
    parser.add_argument('--no-coverage', action='store_true')
    options = parser.parse_args()
    options.build = options.build.resolve()
    everything = read_targets(options.build)
    control = [target for target in everything if target.name.startswith(CONTROL)]
    targets = choose([target for target in everything if target not in control], options.only)
    with tempfile.TemporaryDirectory(prefix='mpckdc-fuzz.') as name:
        work = pathlib.Path(name)
        try_control(control, options, work)
        print(f"\n{'target':20} {'executions':>12} {'per s':>9} {'inputs':>7} {'new':>7} {'features':>9}", flush=True)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            rows = []
            for row in pool.map(lambda target: try_target(target, options, work), targets):
                rows.append(row)
                print_row(row)
        profiles = [work / f'{target.name}.profraw' for target in targets]
        profiles = [path for path in profiles if path.exists()]
        covered = coverage(targets, profiles, work) if profiles else {}
        if covered:
            print_coverage(covered)
    if options.json:
        options.json.write_text(json.dumps({'targets': rows, 'lines': {path: vars(lines) for path, lines in covered.items()}},
                                           indent=1) + '\n')
    crashed = [row['target'] for row in rows if row['crash']]
    print(f"\n{len(rows)} targets, {sum(row['executions'] for row in rows):,} executions, "
          f"{len(crashed)} with a crash {' '.join(crashed)}")
    sys.exit(1 if crashed else 0)


if __name__ == '__main__':
    main()
