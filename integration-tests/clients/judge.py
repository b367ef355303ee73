# SPDX-License-Identifier: Apache-2.0
"""Whether a client really did what a step asks: its own word and the KDC's log must agree."""

import dataclasses

import adapter

YES, NO, CANNOT, STOCK = 'yes', 'no', 'cannot', 'stock'


@dataclasses.dataclass
class Cell:
    client: str
    enctype: int
    transport: str
    step: str
    verdict: str
    text: str = ''        # why not, or what the client said
    stock_text: str = ''  # what it said at a stock KDC, where it fails as well


def one_case(client, lab, enctype, transport, password_user, steps=adapter.STEPS):
    """All steps of a client in one lab; a list of cells."""
    user = lab.add_user()
    folder = lab.dir / f'{client.name} {enctype} {transport}'.replace(' ', '-')
    case = lab.case(folder, user, enctype, transport)
    cells = []
    for step in steps:
        mark = lab.mark()
        if step == 'change_password':
            verdict, text = _changed(client, case, password_user)
        else:
            verdict, text = judge(client, step, case, getattr(client, step)(case), mark)
        cells.append(Cell(client.name, enctype, transport, step, verdict, text))
    return cells


def judge(client, step, case, answer, mark):
    """(verdict, text) of one answer. `mark` is where the KDC's log ended before the step."""
    if answer is None:
        return CANNOT, client.why_not.get(step, '')
    issued = case.lab.issued(mark, case.user)
    logins = [one.reply for one in issued if one.request == 'AS_REQ']
    services = [one.service for one in issued if one.request == 'TGS_REQ']
    if step == 'wrong_password':
        return _refused(client, answer, issued)
    if not answer.ok:
        return NO, str(answer) + (f' (the KDC issued under enctype {logins})' if logins else '')
    if step in ('login', 'keytab_login', 'armor') and not logins:
        return NO, 'says that it logged in, but the KDC has issued nothing'
    if any(reply != case.enctype for reply in logins):
        return NO, f'the AS reply was under enctype {logins}'
    if step == 'service_ticket' and f'{case.service}@{case.realm}' not in services:
        return NO, 'says that it has the ticket, but the KDC has issued none'
    if step == 'renew' and f'krbtgt/{case.realm}@{case.realm}' not in services:
        return NO, 'says that it renewed, but the KDC has not'
    return YES, str(answer)


def _refused(client, answer, issued):
    if answer.ok or issued:
        return NO, 'a wrong password got a ticket'
    if client.wrong_password_says not in answer.text:
        return NO, f'not called a wrong password: {answer}'
    return YES, str(answer)


def _changed(client, case, user):
    """The change by the client, then its own login with the new password, and not with the old
    one."""
    other = dataclasses.replace(case, user=user, folder=case.folder / 'change')
    other.folder.mkdir(exist_ok=True)
    new = f'new one {case.enctype} {case.transport}'
    answer = client.change_password(other, new)
    if answer is None:
        return CANNOT, client.why_not.get('change_password', '')
    if not answer.ok:
        return NO, str(answer)
    mark = case.lab.mark()
    old = client.login(other)
    verdict, text = _refused(client, old, case.lab.issued(mark, user))
    if verdict != YES:
        return verdict, f'the old password afterwards: {text}'
    changed = dataclasses.replace(other, password=new)
    mark = case.lab.mark()
    return judge(client, 'login', changed, client.login(changed), mark)
