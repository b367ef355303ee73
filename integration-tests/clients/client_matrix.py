# SPDX-License-Identifier: Apache-2.0
"""`make clients`: every client, every enctype that it knows, both transports, every step.

    client_matrix.py [--users protected|imported|local] [--pac] [--protocol auto|replicated|garbled]
                     [--only MIT,Go] [--enctypes 17,18] [--json FILE] [--markdown FILE]
                     [--no-applications]
    client_matrix.py --patience [--only MIT,Go] [--json FILE] [--markdown FILE]

A step that fails is tried in a realm of MIT's own krb5kdc as well: a client that fails there too
fails because of what it is, and the matrix says so. Exit status 1 if anything else failed.

--patience: instead, how long each client waits for a KDC whose answers are late (patience.py).
"""

import argparse
import dataclasses
import json
import pathlib
import shutil
import subprocess
import sys
import time

import applications
import judge
import client_lab as lab_module
import patience
import report
from gssapi_client import Gssapi
from go_client import Go
from heimdal import Heimdal
from impacket_client import Impacket
from java_client import Java
from kerby_client import Kerby
from mit import Mit

CLIENTS = [Mit, Heimdal, Java, Go, Gssapi, Impacket, Kerby]
AUTO = 'auto'
MARKDOWN = pathlib.Path(__file__).with_name('MATRIX.md')


class Labs:
    """The realm under test, and a stock one when somebody needs it."""

    def __init__(self, folder, options):
        self.folder, self.options = folder, options
        self.ours = lab_module.Lab(folder / 'ours', options.users, options.pac,
                                   '' if options.protocol == AUTO else options.protocol)
        self._stock = None

    def stock(self):
        if not self._stock:
            self._stock = lab_module.Lab(self.folder / 'stock', 'stock', self.options.pac)
            self._stock.start()
        return self._stock

    def stop(self):
        self.ours.stop()
        if self._stock:
            self._stock.stop()


def run_client(client, labs, enctypes, progress):
    cells = []
    for enctype in [number for number in client.enctypes if number in enctypes]:
        for transport in client.transports:
            started = time.monotonic()
            found = judge.one_case(client, labs.ours, enctype, transport, labs.ours.add_user())
            if any(cell.verdict == judge.NO for cell in found):
                compare(client, labs.stock(), found)
            cells += found
            bad = [cell.step for cell in found if cell.verdict == judge.NO]
            progress(f'{client.name} {enctype} {transport}: {time.monotonic() - started:.1f} s'
                     + (f', FAILED: {", ".join(bad)}' if bad else ''))
    return cells


def compare(client, stock, found):
    """Marks what fails at MIT's own KDC too."""
    first = found[0]
    there = judge.one_case(client, stock, first.enctype, first.transport, stock.add_user())
    for cell, control in zip(found, there):
        if cell.verdict == judge.NO and control.verdict == judge.NO:
            cell.verdict, cell.stock_text = judge.STOCK, control.text


def say(line):
    print(line, flush=True)


def options_from(arguments):
    parser = argparse.ArgumentParser(description='stock clients against a realm of ours')
    parser.add_argument('--users', choices=('protected', 'imported', 'local'),
                        default='protected')
    parser.add_argument('--pac', action='store_true', help='tickets with a PAC')
    parser.add_argument('--protocol', choices=(AUTO, 'replicated', 'garbled'), default=AUTO,
                        help="[engine] protocol of the servers, for logins under users' keys")
    parser.add_argument('--only', default='', help='names of clients, comma-separated')
    parser.add_argument('--enctypes', default='17,18,19,20')
    parser.add_argument('--json', type=pathlib.Path)
    parser.add_argument('--markdown', type=pathlib.Path, help='where to write MATRIX.md')
    parser.add_argument('--no-applications', action='store_true', help='no sshd, apache2, SSSD')
    parser.add_argument('--patience', action='store_true', help='how long clients wait; long')
    parser.add_argument('--work', type=pathlib.Path, default=lab_module.FILES / 'run')
    return parser.parse_args(arguments)


def prepared(options, result):
    """The chosen clients that can run here; the report learns of the others."""
    chosen = [make() for make in CLIENTS]
    if options.only:
        chosen = [client for client in chosen if client.name in options.only.split(',')]
    for client in chosen:
        if client.missing():
            result.absent[client.name] = client.missing()
            continue
        try:
            client.prepare()
        except (OSError, subprocess.CalledProcessError) as error:
            result.absent[client.name] = f'what it needs ({error})'
            continue
        result.versions[client.name] = client.version()
        yield client


def run_matrix(options, labs, result):
    enctypes = [int(number) for number in options.enctypes.split(',')]
    labs.ours.start()
    for client in prepared(options, result):
        result.enctype_reasons[client.name] = client.why_no_enctype
        result.transport_reasons[client.name] = client.why_no_transport
        result.cells += run_client(client, labs, enctypes, say)
    if not options.no_applications:
        result.applications = applications.run_all(labs.ours, result, say)
    say(computed(labs.ours))


def computed(ours):
    """What the servers did; a control of --protocol."""
    status = ours.realm.server_status()[0]
    return (f'{status.get("garbled_batches")} batches were garbled, '
            f'{status.get("replicated_batches")} computed in rounds')


def finish_matrix(options, result):
    result.show(sys.stdout)
    if options.json:
        options.json.write_text(json.dumps(dataclasses.asdict(result), indent=1) + '\n')
    if options.markdown:
        older = options.markdown.read_text() if options.markdown.exists() else ''
        options.markdown.write_text(
            patience.with_section(result.markdown(), patience.section_in(older)))


def measure_patience(options, labs, result):
    """Prints the section of MATRIX.md, and replaces the one that is there."""
    found = []
    for client in prepared(options, result):
        for transport in client.transports:
            found.append(patience.measure(client, labs.stock(), transport))
            say(f'{client.name} {transport}: {found[-1].longest} ms')
    section = patience.section(found, result.versions)
    say('\n' + section + ''.join(f'{client} was not tried: {what} is not there\n'
                                 for client, what in result.absent.items()))
    if options.json:
        rows = [dataclasses.asdict(one) for one in found]
        options.json.write_text(json.dumps(rows, indent=1) + '\n')
    document = options.markdown or (None if options.only else MARKDOWN)
    if document:
        document.write_text(patience.with_section(document.read_text(), section))


def main(arguments):
    options = options_from(arguments)
    shutil.rmtree(options.work, ignore_errors=True)
    options.work.mkdir(parents=True)
    labs = Labs(options.work, options)
    result = report.Report(options.users, options.pac, options.protocol)
    try:
        if options.patience:
            measure_patience(options, labs, result)
        else:
            run_matrix(options, labs, result)
    finally:
        labs.stop()
    if not options.patience:
        finish_matrix(options, result)
    return 1 if result.failures() else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
