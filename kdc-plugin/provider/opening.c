/* SPDX-License-Identifier: Apache-2.0 */
/* Decryption: pre-authentications and tickets are opened. */
#include <errno.h>
#include <string.h>

#include "kdc-plugin/provider/enctypes.h"
#include "kdc-plugin/provider/errors.h"
#include "kdc-plugin/provider/operation.h"

/* Opens a message by the job that was prepared for it, or else by one of its own. */
static krb5_error_code open_message(const operation *op, const mpc_open *open,
                                    const krb5_data *cipher, krb5_data *plain, uint64_t *job_id)
{
    request *r = op->request;
    const int prepared = r != NULL && request_has_open(r, open->handle, open->usage, cipher);
    mpc_job job = {0};
    flight *f;
    const mpc_result *result;
    krb5_error_code ret;

    if (prepared) {
        f = request_send_prepared(r, op->client) ? r->prepared.flight : NULL;
    } else {
        job.operation = open->usage == USAGE_PREAUTH ? MPC_OPEN_PREAUTH : MPC_OPEN_TICKET;
        job.client = open->usage == USAGE_PREAUTH ? open->handle : NULL;
        job.open = open;
        f = operation_send(op, &job);
    }
    ret = operation_land(op, prepared ? &r->prepared.job : &job, f, &result);
    if (ret == 0) {
        *job_id = result->id;
        ret = take_plain(open->enctype, cipher, result, plain);
    }
    if (!prepared)
        flight_release(f);
    return ret;
}

krb5_error_code provider_decrypt(krb5_context context, void *moddata, krb5_enctype enctype,
                                 const krb5_data *handle, krb5_keyusage usage,
                                 const krb5_data *cipher, krb5_data *plain)
{
    const mpc_open open = {operation_handle(handle), (uint32_t)usage, bytes_of(cipher), enctype};
    operation op = {context, usage == USAGE_PREAUTH ? "verifying a pre-authentication"
                                                    : "opening a ticket", NULL, NULL};
    request *r;
    uint64_t id = 0;
    krb5_error_code ret = check_remote_key(context, enctype, handle);

    (void)moddata;
    if (ret)
        return ret;
    if (usage != USAGE_PREAUTH && usage != USAGE_TICKET)
        return not_in_table(context, "decrypting", usage);
    if (plain_length(enctype, cipher) < 0)
        return wrong_size(context, op.what, cipher->length, enctype);
    ret = check_size(context, op.what, cipher->length, enctype, usage);
    if (ret && usage == USAGE_PREAUTH) /* wrong, as what is too short is */
        return wrong_size(context, op.what, cipher->length, enctype);
    if (ret)
        return ret;
    ret = operation_begin(&op);
    if (ret == 0)
        ret = open_message(&op, &open, cipher, plain, &id);
    r = op.request;
    if (ret || r == NULL)
        return operation_outcome(&op, ret);
    if (usage == USAGE_PREAUTH) {
        r->grant = id;
        r->has_client = 1;
        memcpy(r->client, open.handle, MPC_HANDLE_BYTES);
        request_remember_preauth(r, enctype, open.handle, cipher);
    } else if (!r->is_as && !request_remember_parent(r, enctype, open.handle, cipher)) {
        return operation_outcome(&op, ENOMEM);
    }
    return 0;
}
