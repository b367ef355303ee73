/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums: of an AS-REQ, of PACs and of authentication indicators. */
#include <errno.h>
#include <string.h>

#include "kdc-plugin/provider/enctypes.h"
#include "kdc-plugin/provider/errors.h"
#include "kdc-plugin/provider/operation.h"

static krb5_error_code copy_mac(const mpc_result *result, krb5_data *out)
{
    if (out->length < result->mac_size)
        return KRB5_BAD_MSIZE;
    memcpy(out->data, result->mac, result->mac_size);
    out->length = (unsigned int)result->mac_size;
    return 0;
}

/* The checksum of the AS-REQ that was announced; KRB5_PLUGIN_NO_HANDLE as in seal_prepared. */
static krb5_error_code mac_prepared(const operation *op, const uint8_t *handle,
                                    const krb5_data *input, krb5_data *out)
{
    const mpc_result *result;
    krb5_error_code ret;

    if (op->request == NULL || !request_has_mac(op->request, handle, input))
        return KRB5_PLUGIN_NO_HANDLE;
    ret = operation_land_prepared(op, &result);
    return ret ? ret : copy_mac(result, out);
}

static krb5_error_code mac_alone(const operation *op, const mpc_make_mac *mac, krb5_data *out)
{
    mpc_job job = {0};
    flight *f;
    const mpc_result *result;
    krb5_error_code ret;

    job.make_mac = mac;
    job.operation = MPC_MAKE_CHECKSUM;
    if (mac->usage == USAGE_AS_REQ_CHECKSUM) {
        job.client = mac->handle;
        job.grant = op->request == NULL ? 0 : op->request->grant;
        job.operation = job.grant != 0 ? MPC_SEAL_GRANTED : MPC_LOGIN;
    }
    ret = operation_fly(op, &job, &f, &result);
    if (ret == 0)
        ret = copy_mac(result, out);
    flight_release(f);
    return ret;
}

/* The client is told; it was the only one to say anything so long. */
static krb5_error_code too_long(const operation *op, unsigned int length, unsigned int max)
{
    if (op->context != NULL)
        krb5_set_error_message(op->context, KRB5KRB_ERR_FIELD_TOOLONG,
                               "%s: of %u bytes; the MPC servers make one of at most %u under this "
                               "key", op->what, length, max);
    return KRB5KRB_ERR_FIELD_TOOLONG;
}

/* Of authorization data: PACs, and the verifiers of authentication indicators (RFC 7751). */
static int is_authdata_usage(krb5_keyusage usage)
{
    return usage == USAGE_PAC_CHECKSUM || usage == USAGE_CAMMAC;
}

krb5_error_code provider_make_checksum(krb5_context context, void *moddata, krb5_enctype enctype,
                                       const krb5_data *handle, krb5_keyusage usage,
                                       krb5_cksumtype type, const krb5_data *input, krb5_data *out)
{
    const mpc_make_mac mac = {operation_handle(handle), (uint32_t)usage, bytes_of(input), enctype};
    operation op = {context, "making a checksum", NULL, NULL};
    krb5_error_code ret = check_checksum_type(context, enctype, handle, type);

    (void)moddata;
    if (ret)
        return ret;
    if (!is_authdata_usage(usage) && usage != USAGE_AS_REQ_CHECKSUM)
        return not_in_table(context, op.what, usage);
    if (input->length > max_checksummed(enctype, usage))
        return too_long(&op, input->length, max_checksummed(enctype, usage));
    ret = operation_begin(&op);
    if (ret == 0)
        ret = usage == USAGE_AS_REQ_CHECKSUM ? mac_prepared(&op, mac.handle, input, out)
                                             : KRB5_PLUGIN_NO_HANDLE;
    if (ret == KRB5_PLUGIN_NO_HANDLE)
        ret = mac_alone(&op, &mac, out);
    return operation_outcome(&op, ret);
}

krb5_error_code provider_verify_checksum(krb5_context context, void *moddata, krb5_enctype enctype,
                                         const krb5_data *handle, krb5_keyusage usage,
                                         krb5_cksumtype type, const krb5_data *input,
                                         const krb5_data *cksum, krb5_boolean *valid)
{
    const mpc_verify_mac mac = {operation_handle(handle), (uint32_t)usage, bytes_of(input),
                                bytes_of(cksum)};
    operation op = {context, "verifying a checksum", NULL, NULL};
    mpc_job job = {0};
    const mpc_result *result;
    flight *f;
    krb5_error_code ret = check_checksum_type(context, enctype, handle, type);

    (void)moddata;
    *valid = FALSE;
    if (ret)
        return ret;
    if (!is_authdata_usage(usage))
        return not_in_table(context, op.what, usage);
    ret = operation_begin(&op);
    if (ret)
        return operation_outcome(&op, ret);
    job.operation = MPC_VERIFY_CHECKSUM;
    job.verify_mac = &mac;
    f = operation_send(&op, &job);
    result = (f == NULL) ? NULL : flight_await(f);
    if (result == NULL) {
        ret = ENOMEM;
    } else if (result->verdict == MPC_OK) {
        *valid = TRUE;
    } else if (result->verdict != MPC_BAD_TAG) {
        operation_note(&op, result);
        ret = verdict_error(context, result->verdict, op.what, result->detail);
    }
    flight_release(f);
    return operation_outcome(&op, ret);
}
