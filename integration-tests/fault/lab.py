# SPDX-License-Identifier: Apache-2.0
"""A realm spread over network namespaces, users under load, and one fault after the other.

    with Lab(folder) as lab:
        report = lab.run('kill', 'p0', Timing())

Lockout is on for the users who know their passwords (three failures), and krb5kdc writes it: if it
counted an outage as a wrong password, somebody would be locked out. Guessers, who never know
theirs, have no lockout: they show that failures are counted at all.
"""

import concurrent.futures
import json
import pathlib
import re
import secrets
import signal
import subprocess
import sys
import time

import daemon
import faults
import network
import outcomes as outcomes_module
import realm as realm_module

HERE = pathlib.Path(__file__).resolve().parent
SERVICE = 'host/www.example.com'
MAX_FAILURES = 3
USERS, GUESSERS = 12, 4
PATIENCE = 60     # seconds until the first answer after a fault; more is "did not recover"
DRAIN = 90        # seconds until the load's last login must have given up: 54 s, and a reserve
_LOG_WIDTH = 300
_LOG_WORDS = ('MPC server', 'remote key', 'peer')


class Load:
    """login_load.py in the clients' namespace."""

    def __init__(self, live, folder, plan):
        self._outcomes = folder / 'outcomes.jsonl'
        self._outcomes.unlink(missing_ok=True)
        (folder / 'plan.json').write_text(json.dumps(plan))
        env = {**live.env, 'KRB5RCACHENAME': 'none:', 'PYTHONPATH': str(HERE)}
        argv = [sys.executable, HERE / 'login_load.py', folder / 'plan.json', self._outcomes]
        with open(folder / 'load.log', 'wb') as log:
            self._process = subprocess.Popen(live.place('client').argv(argv), env=env,
                                             stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._log = folder / 'load.log'

    def outcomes(self):
        if self._process.poll():
            raise realm_module.RealmError(f'the load ended by itself:\n{self._log.read_text()}')
        if not self._outcomes.exists():
            return []
        lines = self._outcomes.read_text().split('\n')[:-1]  # the last may be half written
        return [json.loads(line) for line in lines]

    def answered_since(self, moment):
        return any(outcomes_module.is_answered(outcome) and outcome['start'] >= moment
                   for outcome in self.outcomes())

    def finish(self):
        self._process.terminate()
        self._process.wait(DRAIN)
        return self.outcomes()

    def kill(self):
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()


class Lab:
    def __init__(self, folder, rate=10, seed=1, users=USERS):
        self.folder = pathlib.Path(folder)
        self.rate, self.seed = rate, seed
        self.network = network.Network()
        self.realm = None
        self._administrator = concurrent.futures.ThreadPoolExecutor(1)
        self._names = [f'user{number}' for number in range(users)]
        self._guessers = [f'guesser{number}' for number in range(GUESSERS)]
        self._passwords = {name: secrets.token_urlsafe(9)
                           for name in (*self._names, *self._guessers)}

    # Making -------------------------------------------------------------------------------------

    def __enter__(self):
        try:
            return self.create()
        except BaseException:
            self.remove()
            raise

    def __exit__(self, *_):
        self.remove()

    def create(self):
        self.network.create()
        # What a realm needs whose KDC counts failures; the defaults, said aloud.
        options = realm_module.Options(
            wrapped='klmdb', extra_database={'disable_lockout': False,
                                             'disable_last_success': False})
        self.realm = realm_module.Realm(self.folder / 'realm', options,
                                        places=self.network.places())
        self.realm.create()
        self.realm.add_service(SERVICE)
        self.realm.kadmin_local(f'ktadd -k {self.folder / "service.keytab"} {SERVICE}')
        self.realm.kadmin_local(f'addpol -maxfailure {MAX_FAILURES} -failurecountinterval 1h '
                                '-lockoutduration 1h lockout')
        self._kadmin_local_batch(
            [f'addprinc -policy lockout -pw {self._passwords[name]} {name}'
             for name in self._names]
            + [f'addprinc -pw {self._passwords[name]} {name}' for name in self._guessers])
        return self

    def remove(self):
        self._administrator.shutdown()
        if self.realm:
            for process in (*self.realm.servers, self.realm.kdc):
                process.send_signal(signal.SIGCONT)
            self.realm.stop()
        self.network.remove()

    def _kadmin_local_batch(self, queries):
        return self.realm.run('kadmin.local', stdin='\n'.join(queries) + '\nquit\n').stdout

    # Running ------------------------------------------------------------------------------------

    def run(self, kind, target, timing, say=lambda text: None):
        """One case, from a realm that works to one that works again. Returns its report."""
        fault = faults.Fault(kind, target, self.realm, self.network)
        say(f'{fault.name} ({faults.DESCRIPTIONS[kind]})')
        logs, load = self._log_sizes(), self.start_load()
        try:
            self._wait_for_answers(load, time.monotonic(), 'before the fault')
            time.sleep(timing.before)
            begun = fault.begin()
            try:
                status = self._ask_half_way(begun + timing.of(kind))
            finally:
                ended = fault.end()
            time.sleep(timing.after)
            self._wait_for_answers(load, ended, f'after the fault ({fault.name})')
            found = load.finish()
        finally:
            load.kill()
        return self._report(fault, found, (begun, ended), status.result(), self._log_lines(logs))

    def run_control(self, seconds, say=lambda text: None):
        """No fault, but what a fault must not do is done: one user's password is wrong for a while.

        The harness must see it. The user is a new one, so that the others stay blameless."""
        name, password = f'control{secrets.token_hex(3)}', secrets.token_urlsafe(9)
        say(f'control: the password of {name} is changed behind the load\'s back')
        self._kadmin_local_batch([f'addprinc -policy lockout -pw {password} {name}'])
        load = self.start_load(users=[[name, password]])
        try:
            self._wait_for_answers(load, time.monotonic(), 'in the control')
            time.sleep(seconds)
            self.realm.kadmin_local(f'cpw -pw {secrets.token_urlsafe(9)} {name}')
            time.sleep(seconds)
            found = load.finish()
        finally:
            load.kill()
        return {**outcomes_module.count(found), 'wrong': outcomes_module.wrong_answers(found),
                'users_with_failures': self.failures([name])}

    def start_load(self, **changes):
        plan = {'seed': self.seed, 'rate': self.rate, 'check_every': 5, 'wrong_share': 0.1,
                'service': SERVICE, 'keytab': str(self.folder / 'service.keytab'),
                'users': [[name, self._passwords[name]] for name in self._names],
                'guessers': [[name, self._passwords[name] + 'x'] for name in self._guessers]}
        return Load(self.realm, self.folder, {**plan, **changes})

    def _wait_for_answers(self, load, moment, when):
        if not daemon.wait_until(lambda: load.answered_since(moment), PATIENCE, 0.2):
            raise realm_module.RealmError(
                f'no login got an answer within {PATIENCE} s {when}:\n'
                + '\n'.join(f'{process.name}: {process.log_tail(5)}'
                            for process in (self.realm.kdc, *self.realm.servers)))

    def _ask_half_way(self, end):
        """Sleeps; half-way an administrator asks the servers how they are. Returns a future."""
        def ask():
            reply = self.realm.admin('status', check=False)
            return (reply.stdout + reply.stderr).splitlines()
        time.sleep(max(0, (end - time.monotonic()) / 2))
        answer = self._administrator.submit(ask)
        time.sleep(max(0, end - time.monotonic()))
        return answer

    # Looking ------------------------------------------------------------------------------------

    def failures(self, names=None):
        """{user: (failed attempts, last failed authentication)} of whom the KDC's database blames.

        A success clears the number of failed attempts but not the time of the last one."""
        blamed = {}
        names = self._names if names is None else names
        text = self._kadmin_local_batch([f'getprinc {name}' for name in names])
        entries = re.findall(r'Principal: ([^@\n]+)@.*?Last failed authentication: ([^\n]+)\n'
                             r'Failed password attempts: (\d+)', text, re.DOTALL)
        if [name for name, _, _ in entries] != list(names):
            raise realm_module.RealmError(f'kadmin.local does not know all users:\n{text}')
        for name, last, attempts in entries:
            if last != '[never]' or attempts != '0':
                blamed[name] = (int(attempts), last)
        return blamed

    def wrong_passwords_counted(self):
        return sum(attempts for attempts, _ in self.failures(self._guessers).values())

    def _report(self, fault, found, times, said, log_lines):
        begun, ended = times
        first = outcomes_module.first_answer(found, ended)
        blamed = self.failures()
        return {
            'target': fault.target, 'fault': fault.kind,
            'fault_seconds': round(ended - begun, 1),
            **outcomes_module.count(found),
            'before': outcomes_module.count(
                [outcome for outcome in found if outcome['end'] < begun]),
            'users_with_failures': blamed,
            'lockouts': sum(attempts >= MAX_FAILURES for attempts, _ in blamed.values()),
            'wrong_passwords_counted': self.wrong_passwords_counted(),
            'silence_seconds': _rounded(
                outcomes_module.longest_silence(found, begun, ended + (first or 0))),
            'first_answer_seconds': _rounded(first),
            'steady_seconds': _rounded(outcomes_module.steady_answers(found, ended)),
            'slowest_seconds': _rounded(max(o['end'] - o['start'] for o in found)),
            'wrong': outcomes_module.wrong_answers(found),
            'texts': sorted({outcome['text'] for outcome in found if outcome['text']}),
            'status_during_fault': said,
            'log_lines': log_lines,
        }

    def _log_sizes(self):
        return {path: path.stat().st_size for path in self.realm.log_dir.glob('*.log')}

    def _log_lines(self, sizes, each=15):
        """What krb5kdc and the servers logged of the outage: the first lines of each kind."""
        lines = []
        for path in sorted(self.realm.log_dir.glob('*.log')):
            with open(path, errors='replace') as log:
                log.seek(sizes.get(path, 0))
                told = [line.strip() for line in log if any(word in line for word in _LOG_WORDS)]
            kinds = {re.sub(r'\d+', '', line): line for line in reversed(told)}
            lines += [f'{path.name}: {line[:_LOG_WIDTH]}'
                      for line in list(reversed(kinds.values()))[:each]]
        return lines


def _rounded(seconds):
    return None if seconds is None else round(seconds, 2)


def complaints(report):
    """What must not be in a report, in words; an empty list is a pass."""
    found = []
    if report['wrong_answers']:
        found.append(f'{report["wrong_answers"]} wrong answers: {"; ".join(report["wrong"][:5])}')
    if report['users_with_failures']:
        found.append(f'the outage was counted as wrong passwords: {report["users_with_failures"]}')
    if not report['before']['ok']:
        found.append('nobody could log in before the fault')
    if (not report['unavailable'] + report['lost']
            and report['silence_seconds'] < report['fault_seconds'] / 2):
        found.append('the fault was not felt: no login failed, and answers never paused')
    if report['first_answer_seconds'] is None or report['steady_seconds'] is None:
        found.append('logins did not become steady again')
    if not report['tickets_checked']:
        found.append('no ticket was checked')
    return found
