// SPDX-License-Identifier: Apache-2.0
//
// libkrb5's own encoders and decoders of Kerberos messages. It exports them, and has for many
// releases; their header (k5-int.h) is not installed.
#ifndef INTEGRATION_TESTS_STORM_LIBKRB5_DER_H_
#define INTEGRATION_TESTS_STORM_LIBKRB5_DER_H_

#include <krb5/krb5.h>

extern "C" {
typedef struct _krb5_pa_enc_ts {
  krb5_timestamp patimestamp;
  krb5_int32 pausec;
} krb5_pa_enc_ts;

void krb5_free_kdc_rep(krb5_context, krb5_kdc_rep*);
void krb5_free_enc_kdc_rep_part(krb5_context, krb5_enc_kdc_rep_part*);
krb5_error_code encode_krb5_pa_enc_ts(const krb5_pa_enc_ts*, krb5_data**);
krb5_error_code encode_krb5_enc_data(const krb5_enc_data*, krb5_data**);
krb5_error_code encode_krb5_authenticator(const krb5_authenticator*, krb5_data**);
krb5_error_code encode_krb5_ap_req(const krb5_ap_req*, krb5_data**);
krb5_error_code encode_krb5_as_req(const krb5_kdc_req*, krb5_data**);
krb5_error_code encode_krb5_tgs_req(const krb5_kdc_req*, krb5_data**);
krb5_error_code encode_krb5_kdc_req_body(const krb5_kdc_req*, krb5_data**);
krb5_error_code decode_krb5_as_rep(const krb5_data*, krb5_kdc_rep**);
krb5_error_code decode_krb5_tgs_rep(const krb5_data*, krb5_kdc_rep**);
krb5_error_code decode_krb5_error(const krb5_data*, krb5_error**);
krb5_error_code decode_krb5_enc_kdc_rep_part(const krb5_data*, krb5_enc_kdc_rep_part**);
krb5_error_code decode_krb5_encryption_key(const krb5_data*, krb5_keyblock**);

// The KDC's side of them, for tests.
void krb5_free_kdc_req(krb5_context, krb5_kdc_req*);
void krb5_free_ap_req(krb5_context, krb5_ap_req*);
krb5_error_code decode_krb5_as_req(const krb5_data*, krb5_kdc_req**);
krb5_error_code decode_krb5_tgs_req(const krb5_data*, krb5_kdc_req**);
krb5_error_code decode_krb5_ap_req(const krb5_data*, krb5_ap_req**);
krb5_error_code decode_krb5_authenticator(const krb5_data*, krb5_authenticator**);
krb5_error_code decode_krb5_enc_data(const krb5_data*, krb5_enc_data**);
krb5_error_code encode_krb5_as_rep(const krb5_kdc_rep*, krb5_data**);
krb5_error_code encode_krb5_tgs_rep(const krb5_kdc_rep*, krb5_data**);
krb5_error_code encode_krb5_enc_kdc_rep_part(const krb5_enc_kdc_rep_part*, krb5_data**);
krb5_error_code encode_krb5_error(const krb5_error*, krb5_data**);
krb5_error_code encode_krb5_checksum(const krb5_checksum*, krb5_data**);
}

#endif  // INTEGRATION_TESTS_STORM_LIBKRB5_DER_H_
