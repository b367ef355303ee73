// SPDX-License-Identifier: Apache-2.0
// Counter mode with VAES on AVX2 registers, for CPUs that have it without AVX-512 or are asked for
// AVX2.
#include "mpc-server/share/ctr_isa.h"
#include "mpc-server/share/vaes256.h"

MPCKDC_DEFINE_CTR(ctr_vaes256, VaesCounter<Vaes256>)
