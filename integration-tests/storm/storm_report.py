# SPDX-License-Identifier: Apache-2.0
"""report.md and the drawings of `make storm`, from report.json's contents."""

from storm_goals import PAPER, goals

ROWS = (('one-step', 'one-step, saturation'), ('two-step', 'two-step, saturation'),
        ('AS+TGS', 'AS and one service ticket'), ('open loop', 'open loop, 1,000/s'),
        ('-w 2', 'two workers (-w 2)'))
SINGLE = (('jobs', 'jobs, without a KDC'), ('ours window 100 ms', 'ours, a batch every 100 ms'),
          ('ours 80 % of the knee', 'ours, 80 % of the knee'),
          ('ours overload', 'ours, 3-fold overload'), ('ours lockout on', 'ours, lockout on'),
          ('ours 4,000 in flight', 'ours, 4,000 in flight'),
          ('ours idle', 'ours, one login at a time'),
          ('ours 500 in flight', 'ours, 500 in flight'))


def number(value, digits=0):
    return '-' if value is None else f'{value:,.{digits}f}'


def markdown(report):
    """The whole report."""
    results = report['results']
    parts = [_head(report), _goals(report), _throughput(results), _servers(results),
             _phases(results), _growth(results), _two(results)]
    return '\n\n'.join(part for part in parts if part) + '\n'


def section(title, header, rows, after=''):
    """A table under its title; nothing where there is no row."""
    lines = ['|' + '---|' * len(header), *('| ' + ' | '.join(row) + ' |' for row in rows)]
    return '\n'.join([f'## {title}', '', '| ' + ' | '.join(header) + ' |', *lines]) + after \
        if rows else ''


def _head(report):
    machine, setup = report['machine'], report['setup']
    krbtgt = 'krbtgt too' if setup['enctype'].endswith('-gcm') else 'krbtgt aes128-gcm'
    return '\n'.join([
        '# The login storm', '',
        f'{machine["cores"]} cores of {machine["cpu"]}, {machine["kernel"]}; load before the run '
        f'{machine["load_before"]:.2f}. Commit {machine["commit"]}. KDC, three servers and load '
        'generator share the machine.', '',
        f'{setup["users"]:,} users, keys from a keytab, klmdb, no last_success writes, no lockout '
        f'writes, no PAC; ours {setup["enctype"]} ({krbtgt}) without quotas, '
        f'stock {setup["stock_enctype"]}. Our servers: security = "{setup["security"]}". '
        f'Stock is {setup["stock"]}. Saturation runs: {setup["short"]:g} s each, '
        f'{setup["repetitions"]} times, the median one shown. Options: `{setup["options"]}`.'])


def goals_of(report):
    return goals(report['results'], report['setup']['enctype'].endswith('-gcm'))


def _goals(report):
    words = {True: 'met', False: '**missed**', None: 'not measured'}
    return section('Goals', ('goal', 'seen', ''),
                    [(goal.text, goal.seen, words[goal.met]) for goal in goals_of(report)])


def _row(label, result):
    spread = result.get('spread')
    around = f' ({number(spread["min"])} to {number(spread["max"])})' if spread else ''
    return (label, number(result.get('logins_per_s')) + around,
            number(result.get('in_flight') or result.get('rate')),
            number(result.get('p50_ms'), 1), number(result.get('p99_ms'), 1),
            number(result.get('kdc_cpu_per_1000'), 3),
            number(result.get('servers_cpu_per_1000'), 3),
            number(result.get('tool_us_per_login'), 1),
            f'{result.get("lost", 0)} / {result.get("failed", 0)} / {result.get("wrong", 0)}')


def _throughput(results):
    rows = [('Araki et al. 2016, 3 x 16 cores', number(PAPER['logins_per_s']), '-', '-', '-', '-',
             '-', '-', '-')]
    for name, label in ROWS:
        rows += [_row(f'{side}, {label}', results[f'{side} {name}'])
                 for side in ('stock', 'ours') if f'{side} {name}' in results]
    rows += [_row(label, results[name]) for name, label in SINGLE if name in results]
    return '' if len(rows) == 1 else section(
        'Throughput, latency, CPU',
        ('run', 'logins/s (spread)', 'in flight or rate', 'p50 ms', 'p99 ms',
         'krb5kdc s/1,000', 'servers s/1,000', 'generator us', 'lost / failed / wrong'), rows,
        '\n\nThe paper: a batch every 100 ms, on average '
        f'{PAPER["servers_ms"]} ms on the servers and {PAPER["client_ms"]} ms at the client. '
        'Its KDC is not measured. CPU seconds are of all threads, gRPC\'s among them.')


def _servers(results):
    rows = []
    for name, result in results.items():
        seen = result.get('servers') if isinstance(result, dict) else None
        if seen and seen['batches']:
            rows.append((name, number(seen['jobs_per_batch'], 1),
                         number(seen['rounds_per_batch'], 1),
                         number(seen['blocks_per_job'], 1), number(seen['bytes_per_job']),
                         number(seen['waited_us']), number(seen['agreed_us']),
                         number(seen['computed_us']), number(seen['failed_batches'])))
    return section(
        'The servers', ('run', 'jobs per batch', 'rounds per batch', 'AES blocks per job',
         'bytes between servers per job', 'waited us', 'agreed us', 'computed us',
         'failed batches'), rows)


def phases(result):
    """Where a login's mean latency goes, in ms: batch wait, MPC, and the rest."""
    seen = result.get('servers')
    if not seen or not result.get('mean_ms'):
        return None
    waiting = (seen['waited_us'] + seen['agreed_us']) / 1000
    mpc = seen['computed_us'] / 1000
    return {'waiting for the batch': waiting, 'MPC': mpc,
            'tags, KDC, queues': max(0.0, result['mean_ms'] - waiting - mpc)}


def _phases(results):
    rows = []
    for name in ('ours open loop', 'ours one-step', 'ours two-step', 'ours AS+TGS',
                 'ours window 100 ms', 'ours 80 % of the knee'):
        split = phases(results.get(name) or {})
        if split:
            rows.append((name, number(results[name]['mean_ms'], 2),
                         *(number(value, 2) for value in split.values())))
    return section(
        'Where the time goes',
        ('run', 'mean ms at the client', 'waiting for the batch', 'MPC', 'tags, KDC, queues'), rows,
        '\n\nMeans over batches, the slowest server\'s, and of a batch its oldest job\'s '
        'wait; a login of several jobs waits for each, and only one is taken out.')


def _growth(results):
    rows = [(number(point['users']), point['enctype'], number(point['logins_per_s']),
             number(point['p99_ms'], 1), number(point['kdc_cpu_per_1000'], 3),
             number(point['servers_cpu_per_1000'], 3), number(point['bytes_per_key']),
             number(point['anon_mib'], 1), number(point['restart_s'], 1),
             number(point['enrol_seconds'], 1)) for point in results.get('growth', [])]
    return section(
        'How it grows',
        ('users', 'enctype', 'logins/s', 'p99 ms', 'krb5kdc s/1,000', 'servers s/1,000',
         'bytes per key', 'RssAnon MiB', 'restart s', 'enrolled in s'), rows)


def _two(results):
    two = results.get('ours two KDCs')
    if not two:
        return ''
    one = (results.get('ours one-step') or {}).get('logins_per_s')
    return ('## Two krb5kdc on the same servers\n\n'
            f'{number(two["logins_per_s"])} logins/s together ('
            + ' and '.join(number(rate) for rate in two['each'])
            + f'), one alone {number(one)}; p99 {number(two["p99_ms"], 1)} ms, '
            f'{two["lost"]} lost, {two["failed"]} failed.')
