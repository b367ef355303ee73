# SPDX-License-Identifier: Apache-2.0
"""The matrix as it is shown: what fails is seen, colours are for terminals only."""

import io

import judge
import report
from judge import Cell


class Terminal(io.StringIO):
    def isatty(self):
        return True


def made():
    result = report.Report('local', False, versions={'A': 'A 1.0'})
    for transport, verdict in (('udp', judge.YES), ('tcp', judge.NO)):
        result.cells.append(Cell('A', 18, transport, 'login', verdict, 'said so'))
        result.cells.append(Cell('A', 18, transport, 'renew', judge.CANNOT, 'it never could'))
        result.cells.append(Cell('A', 18, transport, 'armor', judge.STOCK, 'broke', 'broke there'))
    result.applications.append(report.Application('sshd', 'lets in', judge.YES))
    return result


def shown(result, out):
    result.show(out)
    return out.getvalue()


def test_one_transport_that_fails_is_seen():
    result = made()
    (_, enctype, marks), = result.rows()
    assert enctype == 18 and marks[0] == 'udp:yes tcp:NO'
    assert [one.transport for one in result.failures()] == ['tcp']
    assert 'login, FAILED: said so' in shown(result, io.StringIO())


def test_reasons_are_given_once():
    text = made().markdown()
    assert text.count('it never could') == 1 and text.count('broke there') == 1
    assert '| sshd | lets in | yes |' in text and '- A: A 1.0' in text


def test_what_is_absent_is_a_failure():
    result = made()
    before = len(result.failures())
    result.absent['B'] = 'b-clients'
    assert len(result.failures()) == before + 1 and 'B was not tried' in result.markdown()


def test_colours_for_terminals_only():
    assert '\033[' in shown(made(), Terminal())
    assert '\033[' not in shown(made(), io.StringIO())
