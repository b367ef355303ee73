# SPDX-License-Identifier: Apache-2.0
"""The test certificate authority's own checks."""

import subprocess

import config_files


def test_certificate_authority():
    script = config_files.REPOSITORY / 'deploy/ca/test-mpc-ca.sh'
    result = subprocess.run(['sh', script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            encoding='utf-8')
    assert result.returncode == 0, result.stdout
