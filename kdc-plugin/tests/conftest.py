# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of the KDB module."""

from kdb_realm import all_up, realm, servers  # noqa: F401
