# SPDX-License-Identifier: Apache-2.0
"""series.py with two small releases: what is shared, what is replaced, what is refused."""

import importlib.util
import os
import subprocess

import pytest

spec = importlib.util.spec_from_file_location(
    "series", os.path.join(os.path.dirname(os.path.abspath(__file__)), "series.py"))

BEFORE = "".join(f"line {n}\n" for n in range(12))


@pytest.fixture
def series(tmp_path, monkeypatch):
    """The module, with patches in tmp_path/patches. Of trixie b.c is another, and a.c is longer."""
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "HERE", str(tmp_path / "patches"))
    (tmp_path / "patches").mkdir()

    def unpack(release, directory):
        os.makedirs(directory)
        trixie = release == "trixie"
        for name, text in (("a.c", ("new\n" if trixie else "") + BEFORE),
                           ("b.c", BEFORE.replace("line 4", "other") if trixie else BEFORE)):
            with open(os.path.join(directory, name), "w") as file:
                file.write(text)

    monkeypatch.setattr(module, "unpack", unpack)
    return module


def change(directory, number, **files):
    """A commit that turns `line 5` of each file into what is given."""
    for name, text in files.items():
        path = os.path.join(directory, name + ".c")
        with open(path) as file:
            content = file.read()
        with open(path, "w") as file:
            file.write(content.replace("line 5\n", text + "\n"))
    series_commit(directory, number)


def series_commit(directory, number):
    subprocess.run(["git", "add", "-A"], cwd=directory, check=True)
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm",
                    f"Change\n\nWhy.\n\nPatch-name: {number:04}-Change.patch"], cwd=directory, check=True)


@pytest.fixture
def saved(series, tmp_path):
    """Both releases with a patch of two files, and trixie with one of its own."""
    for release in ("bookworm", "trixie"):
        series.make_tree(release, str(tmp_path / release))
    for release in ("bookworm", "trixie"):
        directory = str(tmp_path / release)
        change(directory, 1, a="mine", b="mine")
        if release == "trixie":
            with open(os.path.join(directory, "c.c"), "w") as file:
                file.write("only here\n")
            series_commit(directory, 2)
        series.save(release, directory, "A <a@b>")
    return tmp_path / "patches"


def test_only_what_differs_is_written(series, saved):
    own = (saved / "trixie" / "0001-Change.patch").read_text()
    assert "b/b.c" in own and "b/a.c" not in own
    assert (saved / "trixie" / "series").read_text() == "0002-Change.patch\n"
    assert (saved / "series").read_text() == "0001-Change.patch\n"


def test_patches_have_git_headers_and_a_diffstat(saved):
    patch = (saved / "0001-Change.patch").read_text()
    assert patch.startswith("From: A <a@b>\nSubject: [PATCH] Change\n\nWhy.\n---\n a.c | 2 +-\n b.c | 2 +-\n")
    assert "\ndiff --git a/a.c b/a.c\n--- a/a.c\n+++ b/a.c\n@@" in patch and "\nindex " not in patch


def test_quilt_s_headers_are_read_as_well(series):
    patch = (b"Subject: [PATCH 7] Change\n\nWhy.\n---\n a.c | 2 +-\n\n--- a/a.c\n+++ b/a.c\n@@ -1 +1 @@\n-- a\n+b\n"
             b"--- /dev/null\n+++ b/b.c\n@@ -0,0 +1 @@\n+c\n--- a/c.c\n+++ /dev/null\n@@ -1 +0,0 @@\n-d\n")
    head, sections = series.split(patch, "0007-Change.patch")
    assert list(sections) == ["a.c", "b.c", "c.c"] and head + b"".join(sections.values()) == patch
    assert series.title_and_body(head) == ("Change", "Why.")


def test_both_releases_are_put_together_again(series, saved, tmp_path):
    for release, files in (("bookworm", "ab"), ("trixie", "abc")):
        series.check(release)
        again = tmp_path / (release + "-again")
        series.make_tree(release, str(again))
        for name in files:
            assert (again / (name + ".c")).read_text() == (tmp_path / release / (name + ".c")).read_text()


def test_a_tree_goes_on_behind_its_last_commit(series, saved, tmp_path):
    directory = tmp_path / "trixie"
    series.git(str(directory), "reset", "-q", "--hard", "HEAD~")
    assert not (directory / "c.c").exists()
    series.make_tree("trixie", str(directory))
    assert (directory / "c.c").exists()


def test_a_repeated_section_is_refused(series, saved):
    shared = (saved / "0001-Change.patch").read_bytes()
    section = series.split(shared, "")[1]["a.c"]
    with open(saved / "trixie" / "0001-Change.patch", "ab") as file:
        file.write(section)
    with pytest.raises(SystemExit, match="repeats the shared section for a.c"):
        series.check("trixie")


def test_a_patch_that_needs_fuzz_is_refused(series, saved):
    (saved / "trixie" / "0001-Change.patch").unlink()
    with pytest.raises(SystemExit, match="0001-Change.patch does not apply"):
        series.check("trixie")


def test_a_patch_that_no_series_names_is_refused(series, saved):
    (saved / "trixie" / "0003-Lost.patch").write_text("")
    with pytest.raises(SystemExit, match="no series of trixie names 0003-Lost.patch"):
        series.check("trixie")


def test_a_file_that_only_the_shared_patch_changes_is_refused(series, saved, tmp_path):
    directory = str(tmp_path / "trixie2")
    series.make_tree("trixie", directory)
    series.git(directory, "reset", "-q", "--hard", "unpatched")
    change(directory, 1, b="mine")
    with pytest.raises(SystemExit, match="changes a.c for bookworm but not for trixie"):
        series.save("trixie", directory, "A <a@b>")
