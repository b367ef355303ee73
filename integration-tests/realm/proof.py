# SPDX-License-Identifier: Apache-2.0
"""The proof: what thieves of each machine would find, and that the search is not blind.

Every place is searched as it lies on disk and also opened with whatever keys lie beside it: the KDC's
dump with its stash, each server's store with its store key. The same search must find the user's key
on a stock KDC's disk, every key in two servers' stores put together (that is the trust assumption),
and the realm's local master key in krb5kdc's memory.
"""

import kdbfile
import keys
import keysearch
import realm
import storefile


class Report:
    """Prints one line per place and keeps whether all was as promised."""

    def __init__(self, say):
        self.holds = True
        self._say = say

    def line(self, place, size, names, expected):
        """expected: whether something must be found here."""
        as_promised = bool(names) == expected
        self.holds &= as_promised
        shown = ', '.join(names[:2]) + (f' and {len(names) - 2} more' if len(names) > 2 else '')
        verdict = '' if as_promised else '   <-- NOT as promised'
        self._say(f'{place:<52}{_amount(size):>8}   {shown or "nothing"}{verdict}')

    def count(self, place, number, of, what):
        """All of something that is there must be of one kind."""
        as_promised = number == of > 0
        self.holds &= as_promised
        self._say(f'{place}: {number} {what}, {of - number} others'
                  + ('' if as_promised else '   <-- NOT as promised'))


def _amount(size):
    for unit in ('B', 'KB'):
        if size < 1024:
            return f'{size:.0f} {unit}'
        size /= 1024
    return f'{size:.0f} MB'


def search(live, user, password, stock_folder, say):
    """Searches everything that a running realm left behind; returns whether all was as promised."""
    stores = storefile.open_stores(live)
    secrets = keys.secrets_of_password(f'{user}@{live.name}', password)
    count = len(secrets)
    secrets += storefile.secrets_of_krbtgt(live, stores)
    if len(secrets) == count:
        raise realm.RealmError('P0 holds no share of krbtgt')
    needles = keysearch.KeySearch(secrets)
    say(f'{count} secrets of {user}: password, base keys, Kg, Ke, Ki, Kc of usages 1, 3, 56, their '
        'round keys, H, states of HMACs')
    say(f'{len(secrets) - count} of krbtgt, which nobody ever saw: joined from two stores for this '
        'search')
    say('raw, in pieces of 8 bytes, reversed, in hex, in base64')
    report = Report(say)
    say('\nCan the search see? Where a key is, it must be found:')
    _search_stock(stock_folder, user, password, report)
    _search_for_master_key(live, report)
    _search_joined(stores, needles, report)
    say('\nThis realm, each machine by itself. Nothing may be found:')
    _search_kdc(live, user, needles, report)
    for party in range(3):
        _search_server(live, party, stores[party], needles, report)
    _search_memory(live, needles, report)
    return report.holds


# Where a key is -----------------------------------------------------------------------------------

def _opened(recovered):
    return b'\n'.join(plain for _, plain in recovered if plain)


def _search_stock(folder, user, password, report):
    """A stock KDC of the same release with the same user: its disk gives the key away."""
    stock = realm.StockRealm(folder)
    stock.destroy()
    stock.create()
    stock.kadmin_local(f"addprinc -pw '{password}' {user}")
    dump = stock.dump(stock.kdc_dir / 'dump')
    needles = keysearch.KeySearch(keys.secrets_of_password(
        f'{user}@{stock.name}', password, (keys.AES256_CTS, keys.AES128_CTS)))
    opened = _opened(kdbfile.recover_keys(dump, stock.stash))
    report.line('a stock KDC: dump opened with the stash beside it', len(opened),
                needles.find(opened), True)


def _search_for_master_key(live, report):
    """K/M stays local: it protects handles only. krb5kdc has it in memory."""
    master = [('local master key', key) for _, _, _, key in kdbfile.read_keytab(live.stash)]
    names, size = keysearch.KeySearch(master).search_memory(live.kdc.pid())
    report.line('memory of krb5kdc, for the master key of handles', size, names, True)


def _search_joined(stores, needles, report):
    joined = b'\n'.join(_join_all(stores[0], stores[1]))
    report.line('P0 and P1 put together (the trust assumption)', len(joined), needles.find(joined),
                True)


def _join_all(store, store_of_next):
    for handle, record in store.items():
        other = store_of_next[handle]
        yield storefile.join(record.base, other.base)
        for usage, shares in record.usages.items():
            yield storefile.join(shares, other.usages[usage])


# Where none may be --------------------------------------------------------------------------------

def _search_kdc(live, user, needles, report):
    dump = live.dump(live.kdc_dir / 'dump')
    recovered = kdbfile.recover_keys(dump, live.stash)
    opened = _opened(recovered)
    report.line('KDC: dump opened with its stash', len(opened), needles.find(opened), False)
    protected = [f'{name}@{live.name}' for name in (user, f'krbtgt/{live.name}', 'kadmin/admin')]
    _check_handles(recovered, protected, report)
    found, size = needles.search_files([live.kdc_dir])
    report.line('KDC: database, dump, stash as they lie', size, _names(found), False)


def _check_handles(recovered, protected, report):
    """Not only are the keys not there: a handle is there for each of them."""
    plains = [plain for sealed, plain in recovered if sealed.principal in protected]
    handles = sum(kdbfile.is_remote_key(plain) for plain in plains)
    report.count(f'KDC: the dump has for {", ".join(name.split("@")[0] for name in protected)}', handles, len(plains),
                 'handles')


def _search_server(live, party, store, needles, report):
    opened = b'\n'.join(key.plain for key in store.values())
    report.line(f'P{party}: {len(store)} records opened with its store key', len(opened),
                needles.find(opened), False)
    found, size = needles.search_files([live.dir / f'p{party}'])
    report.line(f'P{party}: every file as it lies', size, _names(found), False)


def _search_memory(live, needles, report):
    for process in [live.kdc, live.kadmind] + live.servers:
        names, size = needles.search_memory(process.pid())
        report.line(f'memory of {process.name}, pid {process.pid()}', size, names, False)


def _names(found):
    return sorted({name for names in found.values() for name in names})
