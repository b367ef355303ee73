// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/bitslice/transpose_common.h"
#include "mpc-server/circuit/bitslice/transpose_isa.h"
#include "mpc-server/circuit/bitslice/word_avx512.h"

MPCKDC_DEFINE_TRANSPOSE(transpose_avx512, Transposer<WordAvx512>)
