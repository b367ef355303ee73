#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`make soak`: hours of logins at a steady rate, while a realm is administered and things happen to it.

    soak.py [--hours H] [--users N] [--rate R] [--pause S] [--seed N] [--postgresql]
            [--triples 2] [--break-something] [--work FOLDER] [--out FOLDER]

Events (soak_events.py) come one after the other in a seeded order; in the last two fifths of the time
only those in which no process ends, so that memory can be told. At the end, and after Ctrl-C, it
writes FOLDER/report.json, report.txt, soak.svg, soak.png and prints the verdict.

Exit status: 0 every promise was kept, 1 one was broken, or it was interrupted, 2 it cannot run here."""

import argparse
import json
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'realm'))
# pylint: disable=wrong-import-position
import config_files
import many_users
import postgres_pair
import realm as realm_module
import soak_events
import soak_plots
import soak_samples
import soak_verdict
import steady_load
import storm
import storm_realms
import storm_runs

ENCTYPE = 'aes128-gcm'
CALM = 0.4           # of the time, at its end
LOCKOUT_USERS = 2000  # who have a policy of three failures
LOCKOUT_FAILURES = 3
AGAIN = ('--resends', 1, '--again-when-unavailable')  # of a client of two triples, at most
ERROR_TEXT = 1000    # characters of what went wrong in an event
GRACE = '2m'         # replaced keys are collected within the run


def parse_arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n', maxsplit=1)[0])
    parser.add_argument('--hours', type=float, default=2)
    parser.add_argument('--users', type=int, default=20000)
    parser.add_argument('--rate', type=float, default=200, help='logins a second (200)')
    parser.add_argument('--pause', type=float, default=20, help='seconds between events (20)')
    parser.add_argument('--sample', type=float, default=10, help='seconds between samples (10)')
    parser.add_argument('--minute', type=float, default=60, help='seconds of a row of latencies')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--only', help='names of events, with commas between')
    parser.add_argument('--postgresql', action='store_true',
                        help='shares in PostgreSQL, a synchronous standby for each party')
    parser.add_argument('--triples', type=int, choices=(1, 2), default=1,
                        help='machines of each party (1); two need --postgresql')
    parser.add_argument('--break-something', action='store_true',
                        help='stop a server for 20 s without saying so: the verdict must see it')
    parser.add_argument('--work', help='where the realm is made (build/)')
    parser.add_argument('--out', default=str(config_files.BUILD / 'soak'))
    arguments = parser.parse_args(argv)
    if arguments.triples > 1 and not arguments.postgresql:
        parser.error('--triples 2 needs --postgresql: several machines share a database')
    names = soak_events.usable(arguments.postgresql, arguments.triples)
    arguments.only = arguments.only.split(',') if arguments.only else names
    unknown = set(arguments.only) - set(names)
    if unknown:
        parser.error(f'no such events here: {", ".join(unknown)}; there are {", ".join(names)}')
    return arguments


# The realm ----------------------------------------------------------------------------------------

def make_realm(folder, pairs, triples):
    options = storm_realms.options_for(
        ENCTYPE, ours=True, extra_server=f'\n[policy]\ndelete_grace = "{GRACE}"\n',
        databases=tuple(pair.conninfo(f'p{party}') for party, pair in enumerate(pairs)),
        triples=triples)
    options.extra_database['disable_lockout'] = False
    return realm_module.Realm(folder, options)


def fill(live, world, users):
    def prepare():
        for party, pair in enumerate(world.pairs):
            soak_events.migrate(live, pair, party)
    live.create(prepare)
    keytab = many_users.write_keytab(live.dir / 'users.keytab', live.name, users,
                                     enctype=many_users.KEYTAB_NUMBERS[ENCTYPE])
    live.admin('enroll', '--all', '--keytab', keytab, '--enctype', ENCTYPE,
               timeout=storm_realms.MANY)
    live.kadmin_local(f'addpol -maxfailure {LOCKOUT_FAILURES} soak')
    live.run('kadmin.local', stdin=''.join(
        f'modprinc -policy soak {many_users.user_name(i)}\n'
        for i in range(min(users, LOCKOUT_USERS))))
    world.prepare()


def failures_counted(live):
    """By the KDC, of the load's users: none ever gave a wrong password."""
    counted = 0
    with open(live.dump(live.dir / 'soak-end'), encoding='utf-8') as lines:
        for line in lines:
            fields = line.split('\t')  # of kdb5_util's format 7
            if fields[0] == 'princ' and fields[6].startswith('u0'):
                counted += int(fields[14])
    return counted


# Running ------------------------------------------------------------------------------------------

class Soak:
    def __init__(self, arguments, live, world, out):
        self.arguments, self.live, self.world, self.out = arguments, live, world, out
        self.events, self.begin = [], None
        self.logged_in_ms = None

    def run(self):
        """Until the time is over, or Ctrl-C; returns whether it was that."""
        names = soak_events.schedule(self.world.random, soak_events.usable(
            bool(self.world.pairs), self.world.triples))
        length = 3600 * self.arguments.hours
        rough = self.begin + (1 - CALM) * length
        try:
            self._pause()
            if self.arguments.break_something:
                self._do('control', soak_events.BREAK, outage=soak_events.NOBODY, calm=False)
            while time.time() < self.begin + length:
                function, outage, calm = soak_events.EVENTS[self._next(names, time.time() > rough)]
                self._do(self._name, function, outage, calm)
                self._pause()
        except KeyboardInterrupt:
            return True
        return False

    def _next(self, names, only_calm):
        usable = {name for name in self.arguments.only if soak_events.EVENTS[name][2] or not only_calm}
        # With --only and nothing left that is calm there are refreshes.
        self._name = next(name for name in names if name in (usable or {'refresh'}))
        return self._name

    def _do(self, name, function, outage, calm):
        outage = self.world.has_outage(outage)
        done = {'name': name, 'begin': time.time(), 'outage': outage, 'calm': calm, 'said': '',
                'error': ''}
        try:
            done['said'] = function(self.world) or ''
            done['end'] = time.time()
            if outage:
                done['outage_end'] = max(done['begin'], self.world.well_at)
            self.world.check_logins()
        except (soak_events.EventError, realm_module.RealmError, subprocess.SubprocessError, OSError,
                AssertionError) as error:
            done['error'] = ' / '.join(str(error).split('\n'))[:ERROR_TEXT] or type(error).__name__
            self.world.heal()
        done.setdefault('end', time.time())
        self.events.append(done)
        say(f'{(done["begin"] - self.begin) / 60:7.2f} min  {name:16}'
            f'{done["end"] - done["begin"]:7.1f} s  {done["said"]}{done["error"]}')

    def _pause(self):
        time.sleep(self.arguments.pause)

    def pids(self):
        return [(server.name, server.pid()) for server in self.live.servers] + [
            ('krb5kdc', self.live.kdc.pid()), ('kadmind', self.live.kadmind.pid())]

    def stores(self):
        for party in range(3):
            try:
                if self.world.pairs:
                    size = int(self.world.pairs[party].sql(
                        f"SELECT pg_database_size('p{party}')"))
                else:
                    file = self.live.dir / f'p{party}/data/shares.mdb'
                    size = file.stat().st_blocks * 512
            except (OSError, subprocess.SubprocessError, ValueError):
                continue  # it is away
            yield f'store{party}', size

    # ---- At the end ----

    def final(self):
        """(kept, text) of what must be true when all is over."""
        live, users = self.live, self.arguments.users
        try:
            self.world.settle()
            storm.PATIENCE = storm_realms.MANY
            counts = storm.logins(live, '--keytab', live.dir / 'users.keytab', '--enctype', ENCTYPE,
                                  '--count', users, '--in-flight', 64, status=None).report['logins']
            lines = [(counts['ok'] == users, f'{counts["ok"]} of {users} users get in afterwards, '
                      'with the keys that they had')]
            self.world.check_logins()
            lines.append((True, 'passwords of before and of now are right, others are wrong'))
            counted = failures_counted(live)
            lines.append((not counted, f'failures that the KDC counted of these users: {counted}'))
            for what in ('verify', 'doctor'):
                done = live.admin(what, check=False, timeout=soak_events.LONG)
                last = (done.stdout.strip() or done.stderr.strip()).splitlines()[-1]
                lines.append((done.returncode == 0, f'mpc-admin {what}: {last}'))
            epochs = [status.get('epoch') for status in live.server_status()]
            lines.append((len(set(epochs)) == 1, f'share epochs {epochs}'))
            return lines
        except (soak_events.EventError, realm_module.RealmError, subprocess.SubprocessError,
                AssertionError) as error:
            return [(False, f'at the end: {error}')]


def say(text):
    print(text, flush=True)


# The report ---------------------------------------------------------------------------------------

def per_event(events, logins):
    """By name: how often, how long, and what logins that it overlaps took at most."""
    table = {}
    for one in events:
        row = table.setdefault(one['name'], {'times': 0, 'seconds': 0.0, 'longest_ms': 0.0,
                                             'not_ok': 0})
        row['times'] += 1
        row['seconds'] = max(row['seconds'], one['end'] - one['begin'])
    for login in logins:
        for one in events:
            if one['begin'] <= login.end and login.due <= one['end']:
                row = table[one['name']]
                row['longest_ms'] = max(row['longest_ms'], 1000 * (login.end - login.due))
                row['not_ok'] += login.outcome != 'ok'
    return table


def make_report(soak, samples, load, storm_report, interrupted, machine):
    arguments = soak.arguments
    logins = soak_verdict.Logins(soak.events)
    minutes = soak_samples.Minutes(soak.begin, arguments.minute)
    for login in soak_samples.read_logins(load.log):
        logins.add(login)
        minutes.add(login)
    since = soak_verdict.calm_since(soak.events, soak.begin)
    names = [*soak.live.machines(), 'krb5kdc']
    lines = soak_verdict.judge_logins(logins, storm_report)
    lines += soak_verdict.judge_events(soak.events)
    if arguments.triples > 1:
        lines += soak_verdict.judge_silence(logins, soak.events)
    lines += soak_verdict.judge_memory(samples, names, since)
    lines += soak_verdict.judge_descriptors(samples, names, since)
    lines += [(False, 'interrupted: not looked at in the end')] if interrupted else soak.final()
    return {'begin': soak.begin, 'end': time.time(), 'machine': machine, 'setup': vars(arguments),
            'logins': logins.summary(), 'minutes': minutes.rows(), 'events': soak.events,
            'per_event': per_event(soak.events, soak_samples.read_logins(load.log)),
            'samples': samples, 'verdict': [{'kept': kept, 'what': what} for kept, what in lines]}


def text_of(report):
    rows = [f'{"minute":>8} {"good":>8} {"not":>6} {"resent":>7} {"p50 ms":>8} {"p99 ms":>8} '
            f'{"longest":>9}']
    for row in report['minutes']:
        rows.append(f'{row["from_s"] / 60:8.2f} {row["ok"]:8} {row["not_ok"]:6} {row["resent"]:7} '
                    + ' '.join('       -' if row[key] is None else f'{row[key]:8.1f}'
                               for key in ('p50_ms', 'p99_ms', 'longest_ms')))
    rows += ['', f'{"event":16} {"times":>5} {"longest, s":>11} {"longest login, ms":>18} '
             f'{"logins not good":>16}']
    for name, row in report['per_event'].items():
        rows.append(f'{name:16} {row["times"]:5} {row["seconds"]:11.1f} {row["longest_ms"]:18.0f} '
                    f'{row["not_ok"]:16}')
    logins = report['logins']
    rows += ['', f'longest login {logins["longest_ms"]:.0f} ms; sent again {logins["resent"]}; longest '
             f'silence outside of outages {logins["silence_s"]:.2f} s', '']
    words = {True: 'kept', False: 'BROKEN', None: 'not told'}
    rows += [f'{words[line["kept"]]:9} {line["what"]}' for line in report['verdict']]
    return '\n'.join(rows) + '\n'


def main(argv=None):
    arguments = parse_arguments(argv)
    out = pathlib.Path(arguments.out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    try:
        storm.program()
        storm_realms.check_space(arguments.work or config_files.BUILD, arguments.users)
    except (FileNotFoundError, storm_realms.StormError) as error:
        print(f'make soak cannot run here: {error}', file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    pairs = []
    try:
        pairs += [postgres_pair.Pair() for _ in range(3 if arguments.postgresql else 0)]
        with tempfile.TemporaryDirectory(dir=arguments.work or config_files.BUILD) as work:
            report = soaked(arguments, pathlib.Path(work), pairs, out)
    except KeyboardInterrupt:
        print('interrupted before there was a realm', file=sys.stderr)
        return 1
    finally:
        for pair in pairs:
            pair.remove()
    return 0 if all(line['kept'] is not False for line in report['verdict']) else 1


def soaked(arguments, work, pairs, out):
    machine = storm_runs.machine()
    for party, pair in enumerate(pairs):
        pair.sql(f'CREATE DATABASE p{party} OWNER mpcowner')
    with make_realm(work / 'realm', pairs, arguments.triples) as live:
        world = soak_events.World(live, random.Random(arguments.seed), pairs)
        say(f'making {arguments.users:,} users')
        fill(live, world, arguments.users)
        soak = Soak(arguments, live, world, out)
        soak.begin = time.time()
        load = steady_load.SteadyLoad(live, out, ENCTYPE, arguments.rate, seed=arguments.seed,
                                      more=AGAIN if arguments.triples > 1 else ())
        with load, soak_samples.Sampler(soak.pids, soak.stores, arguments.sample) as sampler:
            interrupted = soak.run()
            storm_report = load.stop()
        report = make_report(soak, sampler.samples, load, storm_report, interrupted, machine)
    (out / 'report.json').write_text(json.dumps(report, indent=1))
    text = text_of(report)
    (out / 'report.txt').write_text(text)
    say('\n' + text)
    drawn = soak_plots.draw(report, out)
    say('written: ' + ', '.join(map(str, [out / 'report.json', out / 'report.txt', *drawn])))
    return report


if __name__ == '__main__':
    sys.exit(main())
