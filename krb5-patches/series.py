#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One tree of patches for several releases of krb5.

    krb5-patches/NNNN-*.patch           for bookworm, and for the others as far as they fit
    krb5-patches/RELEASE/NNNN-*.patch   what RELEASE needs instead, or alone

A patch is a list of sections, one for each file that it changes. A section in RELEASE/NAME replaces
the one for the same file in NAME, or is added to it; what RELEASE/NAME does not name is shared. A
patch that only RELEASE has is whole. `series` names the shared patches, RELEASE/series those that only
RELEASE has; their numbers give the order.

    series.py names RELEASE             the patches that RELEASE gets, in order
    series.py write RELEASE DIRECTORY   the patches as RELEASE gets them, and their series
    series.py tree RELEASE DIRECTORY    RELEASE's source as a git repository, a commit for each patch
    series.py save RELEASE DIRECTORY    the commits of such a repository as patches, here
    series.py check [RELEASE...]        whether patches apply without fuzz, and only what must differ does
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SHARED = "bookworm"  # the release whose patches are the shared ones
RELEASES = (SHARED, "trixie")
# git's header, or quilt's two lines alone.
SECTION = re.compile(rb"^(?:diff --git a/\S+ b/\S+\n(?:(?!--- |diff ).*\n)*)?"
                     rb"--- (?:a/(?P<old>\S+)|/dev/null)\n\+\+\+ (?:b/(?P<new>\S+)|/dev/null)\n", re.M)


def fail(*lines):
    sys.exit("series.py: " + "\n  ".join(lines))


def run(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, **options).stdout


# ---- Patches and their sections ---------------------------------------------------------------------


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)


def split(patch, name):
    """The text above the first section, and {file: section} in the patch's order."""
    starts = [match.start() for match in SECTION.finditer(patch)]
    if not starts:
        fail(f"{name} changes no file")
    sections = {}
    for start, end in zip(starts, starts[1:] + [len(patch)]):
        match = SECTION.match(patch, start)
        file = (match.group("new") or match.group("old")).decode()
        if file in sections:
            fail(f"{name} has two sections for {file}")
        sections[file] = patch[start:end]
    return patch[: starts[0]], sections


def names_in(directory):
    """The patches that directory's series names."""
    path = os.path.join(directory, "series")
    if not os.path.exists(path):
        return []
    lines = (line.split("#")[0].strip() for line in read(path).decode().splitlines())
    return [line for line in lines if line]


def directory_of(release):
    return HERE if release == SHARED else os.path.join(HERE, release)


def number_of(name):
    match = re.match(r"(\d{4})-", name)
    if not match:
        fail(f"{name} does not begin with a number of four digits")
    return int(match.group(1))


def load(release):
    """[(name, head, sections of the shared patch, sections of RELEASE's)], in the order of numbers."""
    own = directory_of(release)
    shared_names = names_in(HERE)
    own_names = [] if release == SHARED else names_in(own)
    patches = []
    for name in sorted(shared_names + own_names, key=number_of):
        head, shared, replaced = b"", {}, {}
        if name in shared_names:
            head, shared = split(read(os.path.join(HERE, name)), name)
        path = os.path.join(own, name)
        if release != SHARED and os.path.exists(path):
            own_head, replaced = split(read(path), os.path.join(release, name))
            head = head or own_head
        patches.append((name, head, shared, replaced))
    return patches


def write_effective(release, target):
    os.makedirs(target, exist_ok=True)
    names = []
    for name, head, shared, replaced in load(release):
        write(os.path.join(target, name), head + b"".join({**shared, **replaced}.values()))
        names.append(name)
    write(os.path.join(target, "series"), "".join(f"{name}\n" for name in names).encode())


# ---- Source trees as git repositories ---------------------------------------------------------------

# Nothing of the person's own configuration: diffs look the same everywhere.
GIT_ENVIRONMENT = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


def git(directory, *arguments, **options):
    return run("git", *arguments, cwd=directory, env=GIT_ENVIRONMENT, **options)


def unpack(release, directory):
    """RELEASE's source package with Debian's own patches."""
    environment = {**os.environ, "KRB5_RELEASE": release}
    fetch = subprocess.run([os.path.join(HERE, "fetch.sh")], env=environment, stdout=subprocess.PIPE)
    if fetch.returncode != 0:
        fail(f"no source of {release}")
    dsc = fetch.stdout.decode().strip()
    run("dpkg-source", "--no-check", "-x", dsc, directory, stderr=subprocess.STDOUT)
    shutil.rmtree(os.path.join(directory, ".pc"), ignore_errors=True)


def title_and_body(head):
    text = head.decode()
    match = re.search(r"^Subject: (?:\[PATCH[^\]]*\] )?(.*(?:\n .*)*)\n", text, re.M)
    if not match:
        fail("a patch has no Subject:", text.splitlines()[0] if text else "(no text)")
    body = text[match.end():].split("\n---\n")[0].strip("\n")
    return match.group(1).replace("\n ", " "), body


def commit(directory, message):
    git(directory, "add", "-Af", ".")
    git(directory, "-c", "user.name=series", "-c", "user.email=series@localhost", "commit", "-q",
        "--allow-empty", "-F", "-", input=message.encode())


def make_tree(release, directory):
    """If directory is such a repository already, goes on behind its last commit."""
    if not os.path.exists(directory):
        unpack(release, directory)
        git(directory, "init", "-q")
        commit(directory, f"krb5 of {release}")
        git(directory, "tag", "unpatched")
    log = git(directory, "log", "--format=%B", "unpatched..HEAD").decode()
    done = set(re.findall(r"^Patch-name: (\S+)", log, re.M))
    with tempfile.TemporaryDirectory() as patches:
        write_effective(release, patches)
        for name in names_in(patches):
            if name in done:
                continue
            content = read(os.path.join(patches, name))
            apply(directory, content, name)
            title, body = title_and_body(split(content, name)[0])
            commit(directory, f"{title}\n\n{body}\n\nPatch-name: {name}\n")
    print(f"{directory}: a commit for each patch, from the tag `unpatched` on")


def apply(directory, patch, name):
    result = subprocess.run(
        ["patch", "-p1", "--fuzz=0", "--silent", "--no-backup-if-mismatch", "--reject-file=-"],
        cwd=directory, input=patch, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if result.returncode != 0:
        fail(f"{name} does not apply:", *result.stdout.decode(errors="replace").splitlines()[:20])


# ---- Commits back into patches ----------------------------------------------------------------------


def head_of(directory, revision, author):
    message = git(directory, "log", "-1", "--format=%B", revision).decode()
    match = re.search(r"^Patch-name: (\S+)\n?", message, re.M)
    if not match:
        fail(f"commit {revision[:12]} has no line `Patch-name: NNNN-TITLE.patch`")
    title, _, body = message.replace(match.group(0), "").strip("\n").partition("\n")
    stat = git(directory, "diff", "--stat=78", "--summary", f"{revision}~", revision).decode()
    text = f"From: {author}\nSubject: [PATCH] {title}\n\n{body.strip()}\n---\n{stat}\n"
    return match.group(1), text.encode()


def sections_of(directory, revision):
    """As git writes them, but without the lines that name blobs."""
    diff = git(directory, "diff", "--no-color", "--no-ext-diff", "--no-renames", f"{revision}~",
               revision)
    return split(re.sub(rb"^index [0-9a-f]+\.\.[0-9a-f]+( \d+)?\n", b"", diff, flags=re.M), revision)[1]


def fits(directory, revision, file, section):
    """Whether section makes of the file before revision the one after it."""
    before = subprocess.run(["git", "show", f"{revision}~:{file}"], cwd=directory,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    after = git(directory, "show", f"{revision}:{file}")
    return applied(before.stdout if before.returncode == 0 else None, file, section) == after


def applied(content, file, section):
    """What section makes of content (None: no such file), or None if it does not apply."""
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, file)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if content is not None:
            write(path, content)
        result = subprocess.run(
            ["patch", "-p1", "--fuzz=0", "--silent", "--batch", "--no-backup-if-mismatch",
             "--reject-file=-"],
            cwd=place, input=section, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return read(path) if result.returncode == 0 and os.path.exists(path) else None


def save(release, directory, author):
    target = directory_of(release)
    os.makedirs(target, exist_ok=True)
    shared_names = names_in(HERE)
    kept, own_names = set(), []
    for revision in git(directory, "rev-list", "--reverse", "unpatched..HEAD").decode().split():
        name, head = head_of(directory, revision, author)
        sections = sections_of(directory, revision)
        if release != SHARED and name in shared_names:
            shared = split(read(os.path.join(HERE, name)), name)[1]
            missing = set(shared) - set(sections)
            if missing:
                fail(f"{name} changes {', '.join(missing)} for {SHARED} but not for {release}")
            sections = {file: section for file, section in sections.items()
                        if file not in shared or not fits(directory, revision, file, shared[file])}
            head = f"As ../{name}, where {release}'s source differs.\n\n".encode()
        else:
            own_names.append(name)
        if sections:
            write(os.path.join(target, name), head + b"".join(sections.values()))
            kept.add(name)
    for name in os.listdir(target):
        if name.endswith(".patch") and name not in kept:
            os.remove(os.path.join(target, name))
    write(os.path.join(target, "series"), "".join(f"{name}\n" for name in own_names).encode())


# ---- Checks -----------------------------------------------------------------------------------------


def check(release):
    """Applies the patches one by one. What replaces a shared section must do something else."""
    patches = load(release)
    stray = {file for file in os.listdir(directory_of(release)) if file.endswith(".patch")}
    stray -= {name for name, *_ in patches}
    if stray:
        fail(f"no series of {release} names {', '.join(sorted(stray))}")
    counts = dict(shared=0, replaced=0, own=0, lines=0)
    with tempfile.TemporaryDirectory() as place:
        directory = os.path.join(place, "krb5")
        unpack(release, directory)
        for name, _, shared, replaced in patches:
            for file, section in replaced.items():
                check_replacement(directory, release, name, file, shared.get(file), section)
                counts["replaced" if file in shared else "own"] += 1
                counts["lines"] += section.count(b"\n")
            counts["shared"] += len(set(shared) - set(replaced))
            apply(directory, b"".join({**shared, **replaced}.values()), name)
    print(f"{release}: {len(patches)} patches apply without fuzz; sections: {counts['shared']} shared, "
          f"{counts['replaced']} replaced and {counts['own']} of its own ({counts['lines']} lines)")


def check_replacement(directory, release, name, file, shared, section):
    path = os.path.join(directory, file)
    before = read(path) if os.path.exists(path) else None
    if shared is not None and applied(before, file, shared) == applied(before, file, section):
        fail(f"{release}/{name} repeats the shared section for {file}: `series.py save` leaves it out")


def lacks_source(release):
    """Whether somebody who works without a network has given another release's source only."""
    own = run(os.path.join(HERE, "fetch.sh"), "--release").decode().strip()
    return "KRB5_SOURCE" in os.environ and release != own and subprocess.run(
        [os.path.join(HERE, "fetch.sh")], env={**os.environ, "KRB5_RELEASE": release},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0


def author():
    name, email = (run("git", "config", f"user.{key}", cwd=HERE).decode().strip()
                   for key in ("name", "email"))
    return f"{name} <{email}>"


def main(arguments):
    command, *rest = arguments or ["help"]
    if command == "check":
        for release in rest or RELEASES:
            if not rest and lacks_source(release):
                print(f"{release}: NOT checked, no source package of it in {os.environ['KRB5_SOURCE']}")
            else:
                check(release)
        return
    operands = {"names": 1, "write": 2, "tree": 2, "save": 2}
    if len(rest) != operands.get(command) or rest[0] not in RELEASES:
        sys.exit(__doc__)
    if command == "names":
        print(*(name for name, *_ in load(rest[0])), sep="\n")
        return
    release, directory = rest
    if command == "write":
        write_effective(release, directory)
    elif command == "tree":
        make_tree(release, directory)
    else:
        save(release, directory, author())


if __name__ == "__main__":
    main(sys.argv[1:])
