# SPDX-License-Identifier: Apache-2.0
"""The goals as (goal, what was seen, met): `met` is None when it was not measured. Users' keys of
GCM have other goals than those of enctypes 17 to 20."""

import dataclasses

STORE_USERS = 100_000
PAPER = {'logins_per_s': 36521, 'servers_ms': 110, 'client_ms': 232, 'cores': 48}


@dataclasses.dataclass
class Goal:
    text: str
    seen: str = 'not measured'
    met: object = None  # True, False, or None: not measured


def _limit(text, value, bound, unit, digits=1, more=False):
    """At most `bound`, or with `more` at least."""
    if value is None or bound is None:
        return Goal(text)
    return Goal(text, f'{value:,.{digits}f} {unit}', value >= bound if more else value <= bound)


def _none(text, result, counts, seen):
    """None of these is counted."""
    if any(result.get(count) is None for count in counts):
        return Goal(text)
    return Goal(text, seen.format(**result), not any(result[count] for count in counts))


def goals(results, gcm=True):
    """In the order in which they were set. `gcm`: the users' keys are of GCM."""
    def of(name, what):
        return (results.get(name) or {}).get(what)
    if not gcm:
        return [*_limits(of, STANDARD), *_no_loss(results)]
    return [*_jobs(of), *_kdc(of), *_limits(of, LATENCY), *_no_loss(results), *_memory(of),
            *_mixed(results.get('mixed') or {})]


# Text, run, figure, at most, unit.
STANDARD = (
    ('one login at a time: p50 at most 200 ms', 'ours idle', 'p50_ms', 200, 'ms'),
    ('{} in flight: p50 at most 300 ms', 'ours 500 in flight', 'p50_ms', 300, 'ms'))
LATENCY = (
    ('at 1,000 logins/s p50 at most 5 ms', 'ours open loop', 'p50_ms', 5, 'ms'),
    ('at 1,000 logins/s p99 at most 25 ms', 'ours open loop', 'p99_ms', 25, 'ms'),
    ('at saturation p99 at most 250 ms', 'ours one-step', 'p99_ms', 250, 'ms'),
    ('a batch every 100 ms: average at the client below the paper\'s 232 ms',
     'ours window 100 ms', 'mean_ms', PAPER['client_ms'], 'ms'))


def _limits(of, table):
    return [_limit(text.format(of(run, 'in_flight') or 500), of(run, what), bound, unit)
            for text, run, what, bound, unit in table]


def _mixed(runs):
    """Of logins with keys of GCM, beside what takes long."""
    alone = runs.get('alone', {}).get('p99_ms')
    bound = alone and 2 * alone
    return [_limit(f'1,000 logins/s {beside}: p99 at most twice that of the same alone '
                   f'({number(alone)} ms)', runs.get(beside, {}).get('p99_ms'), bound, 'ms')
            for beside in ('beside stock clients', 'beside a stranger')]


def number(value):
    return '?' if value is None else f'{value:.1f}'


def _jobs(of):
    cpu, tool = of('jobs', 'servers_cpu_per_1000'), of('jobs', 'tool_us_per_login')
    return [
        _limit('login-storm jobs: more than 36,521 logins/s', of('jobs', 'logins_per_s'),
               PAPER['logins_per_s'], 'logins/s', 0, more=True),
        _limit('at most 54 us of CPU per login, three servers and generator',
               None if cpu is None else 1000 * cpu + tool, 54, 'us'),
    ]


def _kdc(of):
    ours, stock = of('ours one-step', 'logins_per_s'), of('stock one-step', 'logins_per_s')
    stock_cpu = of('stock one-step', 'kdc_cpu_per_1000')
    share = None if ours is None or not stock else 100 * ours / stock
    return [
        _limit('one-step through the KDC: at least half of stock', share, 50, '% of stock',
               more=True),
        _limit('and at least 8,000 logins/s', ours, 8000, 'logins/s', 0, more=True),
        _limit(f'CPU of krb5kdc per 1,000 logins at most stock\'s '
               f'({"?" if stock_cpu is None else format(stock_cpu, ".3f")} s)',
               of('ours one-step', 'kdc_cpu_per_1000'), stock_cpu, 's', 3),
        _limit('CPU of the three servers at most 0.08 s per 1,000 logins',
               of('ours one-step', 'servers_cpu_per_1000'), 0.08, 's', 3),
    ]


def _no_loss(results):
    knee = {'seconds': 0, **(results.get('ours 80 % of the knee') or {})}
    wrong = [result['wrong'] or 0 for result in results.values()
             if isinstance(result, dict) and 'wrong' in result]
    return [
        _none(f'80 % of the knee for 5 minutes ({knee["seconds"]:g} s here): '
              'none without an answer', knee, ('lost', 'failed', 'shed'),
              '{lost} lost, {failed} failed, {shed} shed of {ok:,} at {rate:,}/s'),
        _none('no wrong answer in any run', {'wrong': sum(wrong)} if wrong else {}, ('wrong',),
              '{wrong}'),
        _none('lockout writes on: no lockout', results.get('ours lockout on') or {},
              ('locked_out', 'failures_counted'),
              '{locked_out} of {users} users locked out, {failures_counted} failures counted'),
        *_overload(results.get('ours overload') or {})]


def _overload(storm):
    if storm.get('rate') is None:
        return [Goal('3-fold overload: sheds, recovers, memory bounded')]
    before, after = storm['memory_before_mib'], storm['memory_after_mib']
    grown = max(after[part] - before.get(part, 0) for part in after)
    still, recovered = (storm[what] / max(1, storm['expected_logins_per_s'])
                        for what in ('logins_per_s', 'recovered_logins_per_s'))
    return [
        Goal(f'3-fold overload ({storm["rate"]:,}/s): goes on serving',
             f'{storm["logins_per_s"]:,.0f} logins/s, {100 * still:.0f} % of saturation; '
             f'{_turned_away(storm)}', still >= 0.5),
        Goal('afterwards as before', f'{100 * recovered:.0f} % of saturation, '
             f'{storm["recovered_failed"]} failed',
             recovered >= 0.9 and storm['recovered_failed'] == 0),
        Goal('and memory stays bounded (at most 200 MiB more)', f'{grown:+.0f} MiB', grown <= 200),
    ]


def _turned_away(storm):
    """How the rest was told: lost without an answer, errors by name, shed by the generator."""
    return ', '.join([f'{storm["lost"]:,} lost', f'{storm["shed"]:,} not begun', *(
        f'{error["expected"] + error["unexpected"]:,} {text}'
        for text, error in (storm['errors'] or {}).items())])


def _memory(of):
    peak = of('ours 4,000 in flight', 'memory_mib') or {}
    number = of('ours 4,000 in flight', 'in_flight') or 4000
    stores = of('stores', 'users') or 0
    enough = stores >= STORE_USERS  # a small store is mostly pages that are not full yet
    return [
        _limit(f'krb5kdc with {number:,} requests in flight at most 200 MB',
               peak['kdc'] * 1.048576 if 'kdc' in peak else None, 200, 'MB', 0),
        _limit(f'mpc-server at most 300 MB beyond the page cache with 1,000,000 users '
               f'({stores:,} here)', of('stores', 'anon_mib') if enough else None,
               300 / 1.048576, 'MiB', 0),
        _limit(f'at most 2 KB (2,048 bytes) per aes128-gcm key on disk ({stores:,} users)',
               of('stores', 'bytes_per_key') if enough else None, 2048, 'bytes', 0),
    ]
