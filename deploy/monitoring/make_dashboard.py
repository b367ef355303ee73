#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints dashboard.json for Grafana from the table of panels below, which the picture in the README is
drawn from, too.

    deploy/monitoring/make_dashboard.py > deploy/monitoring/dashboard.json

Each panel: title, unit (Grafana's names), what a reader should know, and [query, legend] pairs. $realm
and $__rate_interval are Grafana's variables. All three servers of a triple count every job, so
rates of jobs are the maximum of its parties."""

import json
import sys

PER_SERVER = '{{party}}/{{triple}}'
STATE = 'mpckdc_state{{realm="$realm",what="{}"}}'


def state(what, legend=PER_SERVER):
    return [STATE.format(what), legend]


def jobs(selector, by):
    rate = f'rate(mpckdc_jobs_total{{realm="$realm"{selector}}}[$__rate_interval])'
    keys = ', '.join(('triple', *by))
    legend = ' '.join(f'{{{{{name}}}}}' for name in by) or 'all triples'
    outer = f'sum by ({", ".join(by)})' if by else 'sum'
    return [f'{outer} (max by ({keys}) (sum by ({keys}, party) ({rate})))', legend]


def quantile(q, family, by, selector=''):
    rate = f'rate({family}_bucket{{realm="$realm"{selector}}}[$__rate_interval])'
    legend = f'p{round(100 * q)} ' + ' '.join(f'{{{{{name}}}}}' for name in by)
    return [f'histogram_quantile({q}, sum by (le, {", ".join(by)}) ({rate}))', legend]


def work(what):
    return [f'rate(mpckdc_batch_work_total{{realm="$realm",what="{what}"}}[$__rate_interval])',
            PER_SERVER]


def krb5kdc(name, by, selector=''):
    """A rate of all KDCs of the realm together."""
    return [f'sum by ({", ".join(by)}) (rate(mpckdc_krb5kdc_{name}{{realm="$realm"{selector}}}'
            '[$__rate_interval]))', ' '.join(f'{{{{{label}}}}}' for label in by) or name]


ROWS = [
    ('Logins', [
        ('Logins a second', 'reqps', 'Good ones, and the jobs of all kinds that ended otherwise.',
         [jobs(',operation="login",verdict="ok"', ()),
          jobs(',verdict!="ok"', ('verdict',))]),
        ('Jobs a second by operation', 'reqps', 'A login of a gcm type is one; of 17 to 20 two.',
         [jobs(',verdict="ok"', ('operation',))]),
        ('How long a job takes', 's', 'From its receipt to its answer, at the slowest server.',
         [quantile(0.5, 'mpckdc_job_seconds', ('operation',)),
          quantile(0.99, 'mpckdc_job_seconds', ('operation',))]),
        ('Agreement and rounds by enctype', 's', "Of the batch that a job was in; by the job's first key.",
         [quantile(0.5, 'mpckdc_key_seconds', ('enctype',)),
          quantile(0.99, 'mpckdc_key_seconds', ('enctype',))]),
        ('Refused by quotas', 'reqps', 'Which quota, at whichever server.',
         [['sum by (quota) (rate(mpckdc_quota_refusals_total{realm="$realm"}[$__rate_interval]))',
           '{{quota}}']]),
    ]),
    ('Batches', [
        ('Jobs in a batch', 'short', 'Mean.',
         [['rate(mpckdc_batch_jobs_sum{realm="$realm"}[$__rate_interval]) / '
           'rate(mpckdc_batch_jobs_count{realm="$realm"}[$__rate_interval])', PER_SERVER]]),
        ('Phases of a batch', 's', 'Waited: its oldest job. Agreed and computed: this batch.',
         [quantile(0.5, 'mpckdc_batch_seconds', ('phase',)),
          quantile(0.99, 'mpckdc_batch_seconds', ('phase',))]),
        ('Bytes a second to the next server', 'Bps', 'In rounds.', [work('bytes')]),
        ('Rounds a second', 'ops', 'Each is a message to the next server and one from the last.',
         [work('rounds')]),
        ('Batches of keys 17 to 20 by protocol', 'ops', 'Garbled circuits or rounds on shares.',
         [['sum by (what, party) (rate(mpckdc_batch_work_total{realm="$realm",'
           'what=~"garbled_batches|replicated_batches"}[$__rate_interval]))',
           '{{what}} {{party}}']]),
        ('Waiting', 'short', 'Jobs that are in no batch yet, tags that were not asked for yet.',
         [state('jobs_waiting', 'jobs ' + PER_SERVER),
          state('pending_seals', 'tags ' + PER_SERVER)]),
    ]),
    ('Health', [
        ('Up', 'short', 'The server answers; it is connected to both others; it seals.',
         [['up{realm="$realm",job="mpc-server"}', 'up ' + PER_SERVER],
          state('peers_connected', 'connected ' + PER_SERVER),
          [f'1 - {STATE.format("degraded")}', 'seals ' + PER_SERVER]]),
        ('Alarms', 'short', 'Anything but 0 is for a person.',
         [state('quarantined', 'quarantined ' + PER_SERVER),
          state('different_records', 'different records ' + PER_SERVER),
          state('audit_failing', 'audit fails ' + PER_SERVER),
          state('refresh_trouble', 'refresh ' + PER_SERVER)]),
        ('Distance of the servers', 's', 'One way, measured on the links.',
         [['mpckdc_peer_distance_seconds{realm="$realm"}', '{{party}} to {{peer}}']]),
        ('Clocks', 's', "A neighbour's minus the server's own.",
         [['mpckdc_peer_clock_skew_seconds{realm="$realm"}', '{{party}} to {{peer}}']]),
        ('Share epoch', 'short', 'The same at all; one more with each refresh.',
         [state('share_epoch')]),
        ('Age of the shares', 's', 'Since the last refresh began.',
         [[f'time() - ({STATE.format("share_epoch_began_seconds")} > 0)', PER_SERVER]]),
        ('Certificates end in', 's', '',
         [[f'{STATE.format("certificate_expires_seconds")} - time()', PER_SERVER]]),
        ('Lines of the audit log a second', 'ops', '',
         [['rate(mpckdc_state{realm="$realm",what="audit_lines"}[$__rate_interval])',
           PER_SERVER]]),
    ]),
    ('krb5kdc', [
        ('Requests by result', 'reqps', 'Of krb5kdc; preauth_required is the first half of most logins.',
         [krb5kdc('requests_total', ('type', 'result'), ',result!="preauth_required"')]),
        ('With keys on the servers, and without', 'reqps',
         'local: answered from the database alone, as by any KDC, or before a key was needed.',
         [krb5kdc('requests_total', ('type', 'keys'))]),
        ('How long a request takes', 's', "From reading the client's entry to the answer.",
         [quantile(0.5, 'mpckdc_krb5kdc_request_seconds', ('type',)),
          quantile(0.99, 'mpckdc_krb5kdc_request_seconds', ('type',))]),
        ('What requests wait for', 's',
         "job, tag: the servers' answers. gathered, resumed: krb5kdc's one thread for each process.",
         [quantile(0.5, 'mpckdc_krb5kdc_wait_seconds', ('phase', 'enctype')),
          quantile(0.99, 'mpckdc_krb5kdc_wait_seconds', ('phase', 'enctype'))]),
        ('Jobs that are not ok', 'reqps', 'By what the three servers said together.',
         [krb5kdc('jobs_total', ('operation', 'verdict'), ',verdict!="ok"')]),
        ('Jobs and tags in a message to a server', 'short', 'Mean.',
         [['sum by (server) (rate(mpckdc_krb5kdc_server_entries_total{realm="$realm"}'
           '[$__rate_interval])) / sum by (server) '
           '(rate(mpckdc_krb5kdc_server_messages_total{realm="$realm"}[$__rate_interval]))',
           '{{server}}']]),
        ('Waiting at krb5kdc', 'short', 'Jobs and tags that are not answered; jobs held since no '
         'triple serves.',
         [['sum by (instance) (mpckdc_krb5kdc_jobs_waiting{realm="$realm"})', 'jobs {{instance}}'],
          ['sum by (instance) (mpckdc_krb5kdc_tags_waiting{realm="$realm"})', 'tags {{instance}}'],
          ['sum by (instance) (mpckdc_krb5kdc_jobs_held{realm="$realm"})', 'held {{instance}}']]),
        ('Oldest of them', 's', 'At the worst process.',
         [['max by (instance) (mpckdc_krb5kdc_oldest_wait_seconds{realm="$realm"})',
           '{{instance}}']]),
        ('Connected to', 'short', 'The least of all processes: 0 is one that does not reach the server.',
         [['min by (instance, server, party) (mpckdc_krb5kdc_server_up{realm="$realm"})',
           '{{instance}} {{party}} {{server}}']]),
        ('Round trip to the servers', 's', 'The shortest of the last minute, of a tag.',
         [['min by (instance, server, party) '
           '(mpckdc_krb5kdc_server_round_trip_seconds{realm="$realm"})',
           '{{instance}} {{party}} {{server}}']]),
        ('Dropped, sent again, held', 'reqps', 'Overload; an outage that another triple bridged; one '
         'that none did.',
         [krb5kdc('dropped_requests_total', ()), krb5kdc('resent_jobs_total', ()),
          krb5kdc('held_jobs_total', ())]),
        ("krb5kdc's certificates end in", 's', 'As its files have them.',
         [['mpckdc_krb5kdc_certificate_expires_seconds{realm="$realm"} - time()',
           '{{instance}} {{what}}']]),
    ]),
    ('Store', [
        ('Keys', 'short', 'Committed, and deleted ones whose grace time is not over.',
         [state('keys', 'keys ' + PER_SERVER), state('retired', 'retired ' + PER_SERVER)]),
        ('Size', 'bytes', "Of the server's own files; of a database, look at that.",
         [state('store_bytes')]),
        ("The party's database", 's', 'Where shares are in PostgreSQL: its last read and commit.',
         [state('database_answer_seconds', 'read ' + PER_SERVER),
          state('database_commit_seconds', 'commit ' + PER_SERVER)]),
        ('Records still to be written by a refresh', 'short', '',
         [state('refresh_records_left')]),
    ]),
]

WIDTH, HEIGHT, PER_ROW = 12, 8, 2
SOURCE = {'type': 'prometheus', 'uid': '${source}'}


def panel(number, place, title, unit, text, queries):
    return {
        'id': number,
        'type': 'timeseries',
        'title': title,
        'description': text,
        'datasource': SOURCE,
        'gridPos': {'h': HEIGHT, 'w': WIDTH, **place},
        'fieldConfig': {'defaults': {'unit': unit, 'min': None if title == 'Clocks' else 0},
                        'overrides': []},
        'options': {'legend': {'displayMode': 'list', 'placement': 'bottom'},
                    'tooltip': {'mode': 'multi', 'sort': 'desc'}},
        'targets': [{'refId': chr(ord('A') + i), 'datasource': SOURCE, 'expr': query,
                     'legendFormat': legend} for i, (query, legend) in enumerate(queries)],
    }


def panels():
    made, y = [], 0
    for title, row in ROWS:
        made.append({'id': len(made) + 1, 'type': 'row', 'title': title, 'collapsed': False,
                     'panels': [], 'gridPos': {'h': 1, 'w': 24, 'x': 0, 'y': y}})
        y += 1
        for i, one in enumerate(row):
            place = {'x': WIDTH * (i % PER_ROW), 'y': y + HEIGHT * (i // PER_ROW)}
            made.append(panel(len(made) + 1, place, *one))
        y += HEIGHT * -(-len(row) // PER_ROW)
    return made


def dashboard():
    return {
        'uid': 'mpc-kdc',
        'title': 'mpc-kdc: a realm and its servers',
        'tags': ['kerberos', 'mpc-kdc'],
        'schemaVersion': 38,
        'version': 1,
        'editable': True,
        'refresh': '10s',
        'time': {'from': 'now-1h', 'to': 'now'},
        'timezone': 'browser',
        'templating': {'list': [
            {'name': 'source', 'label': 'Prometheus', 'type': 'datasource', 'query': 'prometheus'},
            {'name': 'realm', 'label': 'Realm', 'type': 'query', 'datasource': SOURCE,
             'query': 'label_values(mpckdc_jobs_total, realm)', 'refresh': 2},
        ]},
        'annotations': {'list': [
            {'name': 'refreshes of the shares', 'datasource': SOURCE, 'enable': True,
             'expr': 'changes(mpckdc_state{realm="$realm",what="share_epoch"}[1m]) > 0',
             'iconColor': 'blue', 'titleFormat': 'share epoch', 'textFormat': '{{party}}'},
        ]},
        'panels': panels(),
    }


if __name__ == '__main__':
    json.dump(dashboard(), sys.stdout, indent=2)
    print()
