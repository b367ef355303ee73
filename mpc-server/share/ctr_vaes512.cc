// SPDX-License-Identifier: Apache-2.0
// Counter mode with VAES on AVX-512 registers.
#include "mpc-server/share/ctr_isa.h"
#include "mpc-server/share/vaes512.h"

MPCKDC_DEFINE_CTR(ctr_vaes512, VaesCounter<Vaes512>)
