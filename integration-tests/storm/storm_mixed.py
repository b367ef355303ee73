# SPDX-License-Identifier: Apache-2.0
"""`--only mixed`: 1,000 logins/s of users with keys of GCM, alone; beside stock clients, a tenth as
many; beside a stranger who sends datagrams. Nobody waits for long work but who asks for it."""

import concurrent.futures
import contextlib
import copy
import functools

import daemon
import datagrams  # of integration-tests/realm
import many_users
import storm_realms
import storm_runs

RATE = 1000           # logins/s with keys of GCM
STOCK_SHARE = 10      # of them, one in so many
STRANGER_RATE = 100   # datagrams/s
STOCK = 'aes256-cts'
PROTECTED = 'HTTP/protected.example.com'  # a service whose tickets the servers open


def make_realm(work, users, say, security):
    """Two labs of one realm: users with keys of GCM, and a tenth as many stock ones."""
    options = storm_realms.options_for(STOCK, ours=True, metrics=tuple(daemon.free_ports(3)),
                                       security=security)
    options.extra_database['mpc_protect'] = PROTECTED
    live = storm_realms.realm_module.Realm(work / f'mixed-{users}', options)
    lab = storm_realms.Lab('ours', live, users, 'aes128-gcm')
    lab.take_up({'install': 'None', 'stock': STOCK}, _fill, say)
    stock = copy.copy(lab)
    stock.enctype, stock.keytab = STOCK, _stock_keytab(lab)
    return lab, stock


def _stock_keytab(lab):
    return lab.live.dir / 'stock.keytab'


def _fill(lab):
    storm_realms.fill_ours(lab)
    live = lab.live
    many_users.write_keytab(_stock_keytab(lab), live.name, max(1, lab.users // STOCK_SHARE),
                            enctype=many_users.KEYTAB_NUMBERS[STOCK], first=lab.users)
    live.admin('enroll', '--all', '--keytab', _stock_keytab(lab), '--enctype', STOCK,
               timeout=storm_realms.MANY)
    live.kadmin_local(f'addprinc -randkey -e {STOCK}:normal {PROTECTED}')


@contextlib.contextmanager
def _stock_clients(stock, seconds, result):
    arguments = [*storm_runs.target(stock), '--rate', RATE // STOCK_SHARE]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        run = pool.submit(storm_runs.run, stock, arguments, seconds, name='stock-report')
        yield
        result['stock clients'] = storm_runs.figures(run.result())


@contextlib.contextmanager
def _stranger(lab, result):
    realm = lab.live.name
    user = many_users.user_name(lab.users)  # a stock one
    requests = [
        functools.partial(datagrams.garbage_login, realm, user, 4000),
        *(functools.partial(datagrams.garbage_ticket, realm, storm_realms.SERVICE, PROTECTED, 18, size)
          for size in (2000, 16 << 10))]
    with datagrams.flood(lab.live.ports.kdc, requests, STRANGER_RATE) as sent:
        yield
        result['datagrams'] = sent[0]


def mixed(bench):
    bench.close()  # one realm runs at a time
    lab, stock = make_realm(bench.work, bench.users, bench.say, bench.security)
    arguments = [*storm_runs.target(lab), '--rate', RATE]
    result = bench.results['mixed'] = {}
    try:
        for name, beside in (('alone', contextlib.nullcontext()),
                             ('beside stock clients', _stock_clients(stock, bench.short, result)),
                             ('beside a stranger', _stranger(lab, result)),
                             ('alone again', contextlib.nullcontext())):
            with beside:
                result[name] = storm_runs.figures(storm_runs.run(lab, arguments, bench.short))
        result['wrong'] = sum(run['wrong'] for run in result.values() if isinstance(run, dict))
    finally:
        lab.stop()
