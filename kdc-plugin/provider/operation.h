/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One operation of krb5's under a handle on its way to the servers: what opening (opening.c), sealing
 * (sealing.c) and checksums (checksums.c) have in common. In the order of a call: begin, then either a job
 * that was prepared by a hint lands, or one of its own flies.
 */
#ifndef KDC_PLUGIN_PROVIDER_OPERATION_H_
#define KDC_PLUGIN_PROVIDER_OPERATION_H_

#include <krb5/krb5.h>

#include "kdc-plugin/client/mpc_client.h"
#include "kdc-plugin/provider/request.h"
#include "kdc-plugin/provider/waiting.h"

typedef struct operation {
    krb5_context context;
    const char *what; /* for messages */
    request *request; /* that it is part of; may be NULL */
    mpc_client *client;
} operation;

static inline const uint8_t *operation_handle(const krb5_data *handle)
{
    return (const uint8_t *)handle->data;
}

/* Gets the request, in which each operation leaves what later ones need, and the job client of the
 * context's realm; an outage if there is none. */
krb5_error_code operation_begin(operation *op);

/* What the caller of an operation gets: a lack of memory is an outage like any other, and says nothing
 * about a client. */
krb5_error_code operation_outcome(const operation *op, krb5_error_code ret);

/* Sends a job for the request being processed. As flight_start(). */
flight *operation_send(const operation *op, mpc_job *job);

/* Remembers why the servers did not do a job, where that is no outage: anybody can bring it about. */
void operation_note(const operation *op, const mpc_result *result);

/* Waits for the flight of a job. On success *result belongs to it. */
krb5_error_code operation_land(const operation *op, const mpc_job *job, flight *f,
                               const mpc_result **result);

/* Sends the prepared job if it was not sent yet, and waits for it. KRB5_PLUGIN_NO_HANDLE: it failed
 * and a later job has passed the gate. */
krb5_error_code operation_land_prepared(const operation *op, const mpc_result **result);

/* Sends a job of its own and waits for it; *f is to be released. One whose grant is lost is sent
 * once more. */
krb5_error_code operation_fly(const operation *op, mpc_job *job, flight **f,
                              const mpc_result **result);

/* krb5's calls: those of krb5_remote_key_vtable. */
krb5_error_code provider_decrypt(krb5_context context, void *moddata, krb5_enctype enctype,
                                 const krb5_data *handle, krb5_keyusage usage,
                                 const krb5_data *cipher, krb5_data *plain);
krb5_error_code provider_encrypt(krb5_context context, void *moddata, krb5_enctype enctype,
                                 const krb5_data *handle, krb5_keyusage usage,
                                 const krb5_data *plain, krb5_data *message);
krb5_error_code provider_make_checksum(krb5_context context, void *moddata, krb5_enctype enctype,
                                       const krb5_data *handle, krb5_keyusage usage,
                                       krb5_cksumtype type, const krb5_data *input,
                                       krb5_data *out);
krb5_error_code provider_verify_checksum(krb5_context context, void *moddata, krb5_enctype enctype,
                                         const krb5_data *handle, krb5_keyusage usage,
                                         krb5_cksumtype type, const krb5_data *input,
                                         const krb5_data *cksum, krb5_boolean *valid);

#endif /* KDC_PLUGIN_PROVIDER_OPERATION_H_ */
