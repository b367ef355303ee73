# SPDX-License-Identifier: Apache-2.0
"""What an intruder can do only so often, whatever his KDC tells them. The control is a realm
without quotas: there the same attempts get him what he wants."""

import intruder as intruder_module
import pytest
import wire
from attack import World
from start_world import start

LOW = {'principal_failures': '1/min burst 3', 'kdc_opens': '1/min burst 5'}


@pytest.fixture(scope='module')
def limited(tmp_path_factory):
    with start(tmp_path_factory.mktemp('limited'), quota=LOW) as live:
        yield World(live)


def _guess(world, us, password):
    """One guess at alice's password; the verdict of each server."""
    tried = intruder_module.User(world.live, 'alice', password)
    answers = us.servers.ask(us.login_job(world.alice, tried.preauth()))
    return {wire.verdict(answer) for answer in answers}


def _guess_through_a_list(world):
    """The verdicts of six wrong guesses and the right one, the later ones in a session of their
    own: a KDC that calls itself another process."""
    first, second = world.intruder, intruder_module.Intruder(world.live)
    verdicts = [_guess(world, first if number < 3 else second, f'guess {number}')
                for number in range(6)]
    verdicts.append(_guess(world, second, world.alice.password))
    second.close()
    return verdicts


def test_guesses_are_counted_by_the_servers(limited, world):
    before = limited.audit_lines()
    verdicts = _guess_through_a_list(limited)
    assert verdicts == [{'BAD_TAG'}] * 3 + [{'QUOTA'}] * 4, 'the right guess came too late'
    assert limited.wait_for_traces(before, '"QUOTA"')
    world.intruder.servers.reconnect_if_broken()
    assert _guess_through_a_list(world) == [{'BAD_TAG'}] * 6 + [{'OK'}], 'the control does not see'


def _open_again_and_again(world):
    us = world.intruder
    recorded = us.login(world.mallory).tgt.message
    return [{wire.verdict(answer) for answer in us.servers.ask(us.open_ticket_job(recorded))}
            for _ in range(7)]


def test_tickets_opened_are_counted_by_the_servers(limited, world):
    before = limited.audit_lines()
    assert _open_again_and_again(limited) == [{'OK'}] * 5 + [{'QUOTA'}] * 2
    assert limited.wait_for_traces(before, '"QUOTA"')
    world.intruder.servers.reconnect_if_broken()
    assert _open_again_and_again(world) == [{'OK'}] * 7, 'the control does not see'
