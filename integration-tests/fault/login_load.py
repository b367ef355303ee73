# SPDX-License-Identifier: Apache-2.0
"""The load: logins at a steady rate until SIGTERM, each outcome a line of JSON in a file.

    login_load.py PLAN.json OUTCOMES.jsonl

Runs in the clients' namespace. The rate does not wait for answers (an open loop): during an outage
users keep coming, so what they lose is counted in full. After SIGTERM no login begins, and the
program ends when the last one has its answer or has given up.

PLAN.json: {"seed", "rate", "check_every", "wrong_share", "service", "keytab",
            "users": [[name, password]...], "guessers": [[name, wrong password]...]}
"""

import concurrent.futures
import json
import pathlib
import random
import signal
import sys
import threading
import time

import kerberos

MAX_UNDER_WAY = 800  # a login waits 36 s at most (two exchanges of 18 s): 20 logins/s and a reserve


def log_in(plan, name, password, is_right, check):
    """One outcome. A check that fails leaves `code` at 0 and sets `check_code`."""
    outcome = {'user': name, 'right': is_right, 'start': time.monotonic(),
               'code': 0, 'text': '', 'checked': False, 'check_code': 0}
    try:
        with kerberos.Login() as login:
            login.get_tgt(name, password)
            outcome['end'] = time.monotonic()
            if check:
                outcome['checked'] = True
                check_ticket(login, plan, outcome)
    except kerberos.KerberosError as error:
        outcome.update(code=error.code, text=str(error), end=time.monotonic())
    return outcome


def check_ticket(login, plan, outcome):
    try:
        login.check_ticket(plan['service'], plan['keytab'])
    except kerberos.KerberosError as error:
        outcome.update(check_code=error.code, text=f'service ticket: {error}')


def main():
    plan = json.loads(pathlib.Path(sys.argv[1]).read_text())
    draw, stop, lock = random.Random(plan['seed']), threading.Event(), threading.Lock()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with open(sys.argv[2], 'w', buffering=1) as out, \
            concurrent.futures.ThreadPoolExecutor(MAX_UNDER_WAY) as pool:
        def one(*login):
            line = json.dumps(log_in(plan, *login)) + '\n'
            with lock:
                out.write(line)
        begun, tasks = time.monotonic(), []
        while not stop.is_set():
            is_right = draw.random() >= plan['wrong_share']
            name, password = draw.choice(plan['users' if is_right else 'guessers'])
            check = is_right and len(tasks) % plan['check_every'] == 0
            tasks.append(pool.submit(one, name, password, is_right, check))
            stop.wait(max(0, begun + len(tasks) / plan['rate'] - time.monotonic()))
        for task in tasks:
            task.result()  # an exception of the load itself must not pass as "no outcome"


if __name__ == '__main__':
    main()
