# SPDX-License-Identifier: Apache-2.0
"""krb5-check.sh: two checks of one variant would write into each other's tree."""

import fcntl
import os
import pathlib
import subprocess
import sys

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(1, str(REPOSITORY / 'integration-tests/realm'))

import config_files  # noqa: E402

BUILT = config_files.KRB5_TREE.resolve().parents[1]


@pytest.mark.parametrize('variant', ['patched', 'servers'])
def test_a_second_check_of_a_variant_is_refused(variant):
    if not BUILT.name.startswith('patched-'):
        pytest.skip(f'{BUILT} is no build of krb5-patches/build.sh')
    with open(BUILT / f'krb5-check-{variant}.lock', 'a') as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        held.write('4711\n')
        held.flush()
        refused = subprocess.run(
            [REPOSITORY / 'krb5-patches/krb5-check.sh', '--variants', variant, '--only', '^none$'],
            capture_output=True, encoding='utf-8', env={**os.environ, 'BUILD_DIR': str(BUILT.parents[1])})
    assert refused.returncode == 1
    assert f'another krb5-check runs variant {variant}' in refused.stderr
    assert 'process 4711' in refused.stderr
