# SPDX-License-Identifier: Apache-2.0
"""The update log of incremental propagation, read as kadmind does for a replica that asks (libkdb5's
kdb_log.h and get_sno_status()): what the replica would be told, or that it has to take everything."""

import struct

HEADER = struct.Struct("<IHxxIIIIIIIHH")
ENTRY = struct.Struct("<IIIIiI")
STABLE = 1
FULL = "full resync"


class UpdateLog:
    def __init__(self, realm):
        self.realm = realm
        self.path = realm.kdc_dir / "principal.ulog"

    def _read(self):
        data = self.path.read_bytes()
        (magic, _, self.count, _, _, seconds, useconds, self.first, self.last, self.state,
         self.block) = HEADER.unpack_from(data)
        assert magic == 0x6662323, "not an update log, or another layout"
        self.time = (seconds, useconds)
        self.data = data

    def _has(self, serial, time):
        """check_sno(): 1000 entries unless kdc.conf says otherwise."""
        at = HEADER.size + (serial - 1) % 1000 * self.block
        _, found, seconds, useconds, _, _ = ENTRY.unpack_from(self.data, at)
        return (found, (seconds, useconds)) == (serial, time)

    def now(self):
        """What a replica remembers that has taken all."""
        self._read()
        assert self.state == STABLE
        return self.last, self.time

    def since(self, remembered):
        """FULL, or [(name, text)] of the updates that the replica gets."""
        self._read()
        serial, time = remembered
        if self.state != STABLE:
            return FULL
        if (self.last, self.time) == remembered:
            return []
        if self.count == 0 or not self.first <= serial <= self.last or \
                not self._has(serial, time):
            return FULL
        texts = self.realm.run("kproplog", "-v", "-v").stdout.split("Update serial # : ")[1:]
        wanted = [text for text in texts if int(text.split("\n")[0]) > serial]
        assert len(wanted) == self.last - serial
        return [(text.split("Update principal : ")[1].split("@")[0], text) for text in wanted]


def entries(dump):
    """{name: fields of its line, from the number of tagged data on}"""
    found = {}
    for line in dump.splitlines():
        fields = line.split("\t")
        if fields[0] == "princ":
            found[fields[6].split("@")[0]] = fields[3:]
    return found


def not_told(before, after, updates):
    """Names whose entries differ between the dumps, and of which a replica that had the first one is not told.
    Also those whose keys differ, if no update has keys."""
    if updates == FULL:
        return []
    old, new = entries(before), entries(after)
    wrong = []
    for name in {*old, *new}:
        if old.get(name) == new.get(name):
            continue
        texts = [text for who, text in updates if who == name]
        deleted = bool(texts) and "Update operation : Delete" in texts[-1]
        if not texts or deleted != (name not in new):
            wrong.append(name)
        elif not deleted and keys(old.get(name)) != keys(new[name]) and \
                not any("Key data" in text for text in texts):
            wrong.append(name)
    return wrong


def keys(fields):
    """The handles and keys of a dumped entry: long hexadecimal numbers behind its tagged data, which are
    fields of type, length and contents behind the twelve that each entry has."""
    rest = fields[12 + 3 * int(fields[0]):] if fields else []
    return {f for f in rest if len(f) >= 54 and set(f) <= set("0123456789abcdef")}
