# SPDX-License-Identifier: Apache-2.0
"""Whether a soak kept the promises: lost logins, memory, descriptors, and how it ended.

An event is a dict: `name`, `begin`, `end` (seconds since 1970), `outage`: whether it takes a party
away from a realm that has no other machine of it, so that logins may fail until `outage_end`, or its end; `calm`:
whether no process ends in it, `said`, `error`.

A memory slope is fitted to the samples after the last event that ended a process, without the first
quarter, in which caches fill. Neighbouring residuals are alike (memory goes up in steps), so there is
less in the samples than their number: the error is widened by that."""

import bisect
import math

LATE = 0.25  # seconds that an answer may take back to a client when an outage is over
SILENCE, PROMOTION = 2, 10   # seconds without a good login; while a standby is promoted
MEMORY_LIMIT = 16 * 1024     # KiB an hour
DESCRIPTORS_LIMIT = 4        # more at the end than at the beginning
MIN_SAMPLES = 12
MIN_SECONDS = 900            # in less, what fills up at first (krb5kdc keeps replies for a while) is a slope
SIGMAS = 2


class Outages:
    """The times in which logins may fail: nothing else may take a login's answer away."""

    def __init__(self, events):
        self._spans = sorted((e['begin'], e.get('outage_end', e['end']) + LATE)
                             for e in events if e['outage'])

    def excuse(self, login):
        """Whether the login and an outage overlap."""
        at = bisect.bisect_right(self._spans, (login.end, math.inf))
        return any(end >= login.due for _, end in self._spans[:at])


class Logins:
    """What became of them. add() each in the order in which they ended."""

    def __init__(self, events):
        self._outages = Outages(events)
        self.begun = self.ok = self.resent = self.wrong = self.locked_out = self.called_wrong = 0
        self.in_outage = {}  # by what it was
        self.lost = {}       # the same, of those that nothing excuses
        self.examples = []
        self.longest_ms = 0.0
        self.silence_s, self.silence_at = 0.0, None  # between two good ones, outside of outages
        self.silences = []   # (from, to) of all that are longer than SILENCE
        self._last_ok = None

    def add(self, login):
        self.begun += 1
        self.resent += login.sends > 1
        if login.outcome == 'ok':
            self._good(login)
            return
        what = login.outcome if not login.code else f'{login.outcome} {login.code}'
        self.wrong += login.outcome == 'wrong'
        self.locked_out += login.code == 18     # KDC_ERR_CLIENT_REVOKED
        self.called_wrong += login.code == 24   # KDC_ERR_PREAUTH_FAILED
        excused = self._outages.excuse(login)
        counts = self.in_outage if excused else self.lost
        counts[what] = counts.get(what, 0) + 1
        if not excused and len(self.examples) < 20:
            self.examples.append([login.due, login.end, what, login.user])

    def _good(self, login):
        self.ok += 1
        self.longest_ms = max(self.longest_ms, 1000 * (login.end - login.due))
        if self._last_ok is not None and login.end - self._last_ok > min(self.silence_s, SILENCE):
            self._silent(type(login)(self._last_ok, login.end, 'lost', 0, 0, ''))
        self._last_ok = max(self._last_ok or 0.0, login.end)

    def _silent(self, gap):
        if self._outages.excuse(gap):
            return
        seconds = gap.end - gap.due
        if seconds > SILENCE:
            self.silences.append((gap.due, gap.end))
        if seconds > self.silence_s:
            self.silence_s, self.silence_at = seconds, gap.due

    def summary(self):
        return {name: value for name, value in vars(self).items() if name[0] != '_'}


def slope(points):
    """(per hour, its standard error) of (seconds, value); None of too few, or of too short a time."""
    if len(points) < MIN_SAMPLES or points[-1][0] - points[0][0] < MIN_SECONDS:
        return None
    n = len(points)
    x = [at / 3600 for at, _ in points]
    y = [value for _, value in points]
    mx, my = sum(x) / n, sum(y) / n
    sxx = sum((a - mx) ** 2 for a in x)
    rise = sum((a - mx) * (b - my) for a, b in zip(x, y)) / sxx
    left = [b - my - rise * (a - mx) for a, b in zip(x, y)]
    square = sum(r * r for r in left)
    if not square:
        return rise, 0.0
    alike = sum(a * b for a, b in zip(left, left[1:])) / square
    alike = min(max(alike, 0.0), 0.99)
    error = math.sqrt(square / (n - 2) / sxx * (1 + alike) / (1 - alike))
    return rise, error


def calm_since(events, begin):
    """From when on no process has ended."""
    return max([e['end'] for e in events if not e['calm']], default=begin)


def of_process(samples, name, what, since):
    """(seconds, value) of the process that has this name at the end."""
    own = [s for s in samples if s['name'] == name and what in s and s['at'] >= since]
    own = [s for s in own if s['pid'] == own[-1]['pid']]  # of nothing, nothing
    return [(s['at'], s[what]) for s in own[len(own) // 4:]]


def judge_memory(samples, names, since):
    """Lines: (kept, text). None for kept: it cannot be told."""
    lines = []
    for what, text in (('anon', 'memory'), ('locked', 'locked memory')):
        for name in names:
            found = slope(of_process(samples, name, what, since))
            if found is None:
                lines.append((None, f'{text} of {name}: too short a time for a slope'))
                continue
            rise, error = found
            kept = True if rise + SIGMAS * error <= MEMORY_LIMIT else None
            if rise - SIGMAS * error > MEMORY_LIMIT:
                kept = False
            lines.append((kept, f'{text} of {name}: {rise / 1024:+.2f} +- {error / 1024:.2f} MiB an '
                                f'hour (at most {MEMORY_LIMIT / 1024:.0f})'))
    return lines


def judge_descriptors(samples, names, since):
    lines = []
    for name in names:
        counts = [value for _, value in of_process(samples, name, 'descriptors', since)]
        if len(counts) < MIN_SAMPLES:
            lines.append((None, f'descriptors of {name}: too few samples'))
            continue
        quarter = len(counts) // 4
        first, last = sorted(counts[:quarter])[quarter // 2], sorted(counts[-quarter:])[quarter // 2]
        lines.append((last - first <= DESCRIPTORS_LIMIT,
                      f'descriptors of {name}: {first} at first, {last} at last, {max(counts)} at most'))
    return lines


def judge_logins(logins, storm):
    """`storm`: login-storm's own report, or None if it did not write one."""
    told = ', '.join(f'{count} {what}' for what, count in sorted(logins.lost.items())) or 'none'
    excused = ', '.join(f'{n} {what}' for what, n in sorted(logins.in_outage.items())) or 'none'
    lines = [
        (logins.ok > 0 and not logins.lost,
         f'{logins.begun} logins, {logins.ok} good; lost outside of outages: {told} (must be none); '
         f'in them: {excused}'),
        (not logins.wrong, f'wrong answers: {logins.wrong}'),
        (not logins.locked_out and not logins.called_wrong,
         f'locked out: {logins.locked_out}; right passwords called wrong: {logins.called_wrong}')]
    if storm is None:
        return [*lines, (False, 'login-storm wrote no report: see logins.txt')]
    shed = storm['logins']['shed']
    return [*lines, (not shed, f'logins that could not begin, with too many in flight: {shed}')]


def judge_silence(logins, events):
    """Of a realm in which no single machine's end is an outage."""
    promotions = [(e['begin'], e['end']) for e in events if e['name'] == 'fail over']
    too_long = [last - first for first, last in logins.silences
                if last - first > PROMOTION or not any(
                    begin <= last and first <= end for begin, end in promotions)]
    return [(not too_long, f'longest time without a good login, outages aside: {logins.silence_s:.2f} s '
             f'(at most {SILENCE} s, {PROMOTION} s while a standby is promoted)'
             + ''.join(f'; too long: {seconds:.2f} s' for seconds in too_long[:3]))]


def judge_events(events):
    failed = [f'{e["name"]}: {e["error"]}' for e in events if e['error']]
    return [(not failed, f'{len(events)} events; failed: {"; ".join(failed) or "none"}')]
