# SPDX-License-Identifier: Apache-2.0
"""deploy/monitoring against a real Prometheus (Debian's) that scrapes three real servers, and a real
node_exporter that reads krb5kdc's file: every query of the dashboard is understood and finds what a
healthy realm shows, every rule is loaded, and the alerts of a server that is down fire."""

import importlib.util
import json
import subprocess
import time

import pytest

import config_files
import daemon
import prometheus as prometheus_module
import realm as realm_module

MONITORING = config_files.REPOSITORY / 'deploy/monitoring'
# Nothing of these is to be seen in a healthy realm on LMDB: no database, no refusal, no client of 17 to 20.
EMPTY = {'Refused by quotas', "The party's database", 'Batches of keys 17 to 20 by protocol'}
INTERVAL = prometheus_module.INTERVAL


def program(name):
    spec = importlib.util.spec_from_file_location(name, MONITORING / f'{name}.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_dashboard():
    return program('make_dashboard').dashboard()


def test_the_dashboard_is_what_its_program_makes():
    assert json.loads((MONITORING / 'dashboard.json').read_text()) == make_dashboard()


def test_rules_and_their_tests():
    for command in ('check', 'rules', 'mpc-kdc.rules.yml'), ('check', 'config', 'prometheus.yml'), \
            ('test', 'rules', 'mpc-kdc.rules.test.yml'):
        done = subprocess.run(['promtool', *command], cwd=MONITORING, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, encoding='utf-8')
        assert done.returncode == 0, done.stdout


def test_the_rules_tests_see_a_rule_that_is_wrong(tmp_path):
    rules = (MONITORING / 'mpc-kdc.rules.yml').read_text()
    changed = rules.replace('mpckdc_state{what="quarantined"} == 1',
                            'mpckdc_state{what="quarantined"} == 2')
    assert changed != rules
    (tmp_path / 'mpc-kdc.rules.yml').write_text(changed)
    test = tmp_path / 'mpc-kdc.rules.test.yml'
    test.write_text((MONITORING / test.name).read_text())
    assert subprocess.run(['promtool', 'test', 'rules', test], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 1


def test_every_alert_is_tried_both_ways():
    rules = (MONITORING / 'mpc-kdc.rules.yml').read_text()
    tests = (MONITORING / 'mpc-kdc.rules.test.yml').read_text()
    names = [line.split(': ')[1] for line in rules.splitlines() if '- alert:' in line]
    assert len(names) > 15
    for name in names:
        assert f'alertname: {name}, exp_alerts: []' in tests and f'{{alertname="{name}"}}' in tests
    for line in rules.splitlines():
        if 'runbook:' in line:
            assert (config_files.REPOSITORY / line.split(': ')[1]).is_file(), line


# A real Prometheus ---------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def live(tmp_path_factory):
    folder = tmp_path_factory.mktemp('monitoring')
    (folder / 'textfile').mkdir()
    with realm_module.Realm(
            folder / 'realm',
            realm_module.Options(metrics=tuple(daemon.free_ports(3)), workers=2, extra_database={
                'mpc_metrics_file': folder / 'textfile/mpc-kdc.prom'})) as made:
        yield made.create()


@pytest.fixture(scope='module')
def prometheus(live, tmp_path_factory):
    live.enroll('alice', 'secret')
    folder = tmp_path_factory.mktemp('prometheus')
    with prometheus_module.NodeExporter(live.options.extra_database['mpc_metrics_file'], folder) as kdc, \
            prometheus_module.Prometheus(live, kdc.address, folder / 'run') as made:
        yield made


def filled(live, text):
    return text.replace('$realm', live.name).replace('$__rate_interval', f'{10 * INTERVAL}s')


def test_every_panel_shows_a_login(live, prometheus):
    until = time.monotonic() + 5 * INTERVAL
    while time.monotonic() < until:
        live.kinit('alice', 'secret')
    panels = [panel for panel in make_dashboard()['panels'] if panel['type'] != 'row']
    for panel in panels:
        for target in panel['targets']:
            found = prometheus.query(filled(live, target['expr']))
            assert found or panel['title'] in EMPTY or 'verdict!="ok"' in target['expr'], target
    logins = prometheus.query(filled(live, panels[0]['targets'][0]['expr']))
    assert 0 < float(logins[0]['value'][1]) < 100
    assert prometheus.query(filled(live, 'count(mpckdc_key_seconds_count{enctype="aes256-gcm"})'))


def test_what_is_drawn_is_what_the_panels_show(live, prometheus):
    """All but the drawing itself, which needs matplotlib (`make dashboard`)."""
    drawing = program('draw_dashboard')
    source, begin = drawing.Source(prometheus.url, live.name, INTERVAL), time.time()
    time.sleep(6 * INTERVAL)
    end = time.time()
    rows = drawing.rows()
    assert sum(len(panels) for _, panels in rows) == len(
        [panel for panel in make_dashboard()['panels'] if panel['type'] != 'row'])
    up = next(panel for _, panels in rows for panel in panels if panel['title'] == 'Up')
    lines = source.lines(up['targets'][0], begin, end)
    assert [name for name, _, _ in lines] == ['up p0/0', 'up p1/0', 'up p2/0']
    for _, times, values in lines:
        assert len(times) > 3 and begin - 1 <= times[0] < times[-1] <= end + 1
        assert set(values) == {1.0}
    assert source.lines(up['targets'][0], end - 7200, end - 3600) == []
    assert drawing.legend('{{phase}} of {{nothing}}', {'phase': 'tag'}) == 'tag of'


def test_an_alert_of_a_server_that_is_down(live, prometheus):
    assert prometheus.firing() <= {'MpcDatabaseAlone'}, prometheus.firing()
    live.servers[2].stop()
    try:
        assert daemon.wait_until(
            lambda: {'MpcServerDown', 'MpcPeersDisconnected', 'MpcKdcServerLost'}
            <= prometheus.firing(), 60, 0.5)
    finally:
        live.servers[2].start()
