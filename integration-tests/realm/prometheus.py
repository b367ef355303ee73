# SPDX-License-Identifier: Apache-2.0
"""Debian's Prometheus and node_exporter around a realm's three servers and krb5kdc."""

import json
import subprocess
import urllib.parse
import urllib.request

import config_files
import daemon

RULES = config_files.REPOSITORY / 'deploy/monitoring/mpc-kdc.rules.yml'
INTERVAL = 1  # seconds between scrapes


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
        rules = RULES.read_text()
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
