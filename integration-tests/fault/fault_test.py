# SPDX-License-Identifier: Apache-2.0
"""A short choice of `make fault` for every change: real processes, real faults, steady logins.

What must hold is in lab.complaints(); the seconds are reported, never judged.
"""

import pytest

import faults
import lab as lab_module

SHORT = faults.Timing(before=2, kill=3, stop=6, partition=6, after=4)


@pytest.mark.parametrize('target, kind', [('p0', 'kill'), ('p2', 'partition')])
def test_outage_gives_no_wrong_answer_and_no_lockout(lab, target, kind):
    report = lab.run(kind, target, SHORT)
    print(report)
    assert lab_module.complaints(report) == []
    assert report['silence_seconds'] > SHORT.of(kind) / 2, 'it takes all three servers'


def test_failures_are_counted_at_all(lab):
    """Lockout is on: what the guessers do is written, so an outage's count would be seen too.

    And the KDC itself is killed while it asks the servers: whoever repeats his request to the new
    one is no attacker."""
    counted = lab.wrong_passwords_counted()
    report = lab.run('kill', 'kdc', SHORT)
    assert lab_module.complaints(report) == []
    assert report['wrong_password_refused']
    assert lab.wrong_passwords_counted() > counted


def test_harness_sees_wrong_answers_and_counted_failures(lab):
    control = lab.run_control(2)
    assert control['ok'] and control['wrong_answers'], control
    assert list(control['users_with_failures'].values())[0][0] >= 1, control
