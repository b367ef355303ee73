# SPDX-License-Identifier: Apache-2.0
"""deploy/monitoring against a real Prometheus (Debian's) that scrapes three real servers, and a real
node_exporter that reads krb5kdc's file: every query of the dashboard is understood and finds what a
healthy realm shows, every rule is loaded, and the alerts of a server that is down fire."""

import importlib.util
import json
import subprocess
import time
import urllib.parse
import urllib.request

import pytest

import config_files
import daemon
import realm as realm_module

MONITORING = config_files.REPOSITORY / 'deploy/monitoring'
# Nothing of these is to be seen in a healthy realm on LMDB: no database, no refusal, no client of 17 to 20.
EMPTY = {'Refused by quotas', "The party's database", 'Batches of keys 17 to 20 by protocol'}
INTERVAL = 1  # seconds between scrapes


def make_dashboard():
    spec = importlib.util.spec_from_file_location('make_dashboard',
                                                  MONITORING / 'make_dashboard.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.dashboard()


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

class NodeExporter:
    """`with` it: Debian's, with nothing but the collector that reads krb5kdc's file."""

    def __init__(self, metrics_file, folder):
        self._file, self._log = metrics_file, folder / 'node-exporter.log'
        self.address = f'127.0.0.1:{daemon.free_ports(1)[0]}'

    def __enter__(self):
        with open(self._log, 'w', encoding='utf-8') as log:
            self._process = subprocess.Popen(  # pylint: disable=consider-using-with
                ['prometheus-node-exporter', '--collector.disable-defaults', '--collector.textfile',
                 f'--collector.textfile.directory={self._file.parent}',
                 f'--web.listen-address={self.address}'], stdout=log, stderr=log)
        return self

    def __exit__(self, *error):
        self._process.terminate()
        self._process.wait(30)


class Prometheus:
    """`with` it: Debian's, with our rules, which scrapes three servers and krb5kdc each second."""

    def __init__(self, live, kdc, folder):
        self._folder, self._ports, self._kdc = folder, live.options.metrics, kdc
        self._realm = live.name
        self.url = f'http://127.0.0.1:{daemon.free_ports(1)[0]}'

    def __enter__(self):
        self._folder.mkdir()
        targets = ''.join(
            f'      - targets: ["127.0.0.1:{port}"]\n'
            f'        labels: {{realm: {self._realm}, party: p{party}, triple: "0"}}\n'
            for party, port in enumerate(self._ports))
        # The waits of the rules are minutes: as seconds here.
        rules = (MONITORING / 'mpc-kdc.rules.yml').read_text()
        (self._folder / 'rules.yml').write_text(rules.replace('for: 1m', 'for: 2s'))
        (self._folder / 'prometheus.yml').write_text(
            f'global: {{scrape_interval: {INTERVAL}s, evaluation_interval: {INTERVAL}s}}\n'
            'rule_files: [rules.yml]\nscrape_configs:\n  - job_name: mpc-server\n'
            f'    static_configs:\n{targets}'
            f'  - job_name: krb5kdc\n    static_configs:\n      - targets: ["{self._kdc}"]\n')
        with open(self._folder / 'log', 'w', encoding='utf-8') as log:
            self._process = subprocess.Popen(  # pylint: disable=consider-using-with
                ['prometheus', f'--config.file={self._folder}/prometheus.yml',
                 f'--storage.tsdb.path={self._folder}/data',
                 f'--web.listen-address={self.url.removeprefix("http://")}'],
                stdout=log, stderr=log)
        assert daemon.wait_until(self._ready, 30, 0.2), (self._folder / 'log').read_text()
        return self

    def __exit__(self, *error):
        self._process.terminate()
        self._process.wait(30)

    def _ready(self):
        try:
            return len(self.query('up == 1')) == len(self._ports) + 1
        except OSError:
            return False

    def get(self, path, **parameters):
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f'{self.url}/api/v1/{path}?{query}', timeout=10) as reply:
            answer = json.load(reply)
        assert answer['status'] == 'success', answer
        return answer['data']

    def query(self, text):
        return self.get('query', query=text)['result']

    def firing(self):
        return {alert['labels']['alertname'] for alert in self.get('alerts')['alerts']
                if alert['state'] == 'firing'}


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
    with NodeExporter(live.options.extra_database['mpc_metrics_file'], folder) as kdc, \
            Prometheus(live, kdc.address, folder / 'run') as made:
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


def test_an_alert_of_a_server_that_is_down(live, prometheus):
    assert prometheus.firing() <= {'MpcDatabaseAlone'}, prometheus.firing()
    live.servers[2].stop()
    try:
        assert daemon.wait_until(
            lambda: {'MpcServerDown', 'MpcPeersDisconnected', 'MpcKdcServerLost'}
            <= prometheus.firing(), 60, 0.5)
    finally:
        live.servers[2].start()
