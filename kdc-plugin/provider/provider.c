/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/provider/provider.h"

#include <errno.h>
#include <krb5/remote_key_plugin.h>

#include "kdc-plugin/provider/operation.h"
#include "kdc-plugin/provider/process_client.h"
#include "kdc-plugin/provider/request.h"
#include "kdc-plugin/provider/results.h"
#include "kdc-plugin/provider/waiting.h"

/* Sends what a hint prepared; without pre-authentication a login waits until it is needed, since
 * most such requests end with "pre-authentication required". */
static void send_early(krb5_context context, request *r)
{
    char *error = NULL;
    mpc_client *client;

    if (r->prepared.job.operation == 0 || r->prepared.job.open == NULL)
        return;
    client = process_client_get(context, &error);
    mpc_text_free(error); /* the operation itself will report it */
    if (client != NULL && request_is_of(r, context, client))
        request_send_prepared(r, client);
}

static void provider_hint_as(krb5_context context, void *moddata,
                             const krb5_remote_key_as_hint *hint)
{
    request *r = request_current(1);

    (void)moddata;
    if (r == NULL)
        return;
    request_take_as_hint(r, hint);
    send_early(context, r);
}

static void provider_hint_tgs(krb5_context context, void *moddata,
                              const krb5_remote_key_tgs_hint *hint)
{
    request *r = request_current(1);

    (void)moddata;
    if (r == NULL)
        return;
    request_take_tgs_hint(r, hint);
    send_early(context, r);
}

static void provider_request_done(void *moddata, void *state)
{
    (void)moddata;
    request_free(state);
}

static void provider_flush(void *moddata)
{
    (void)moddata;
    waiting_flush();
}

/* The line in krb5kdc's log ends with the request's name, by which the servers' logs speak of it; of
 * one that the servers could not know there is none. */
static const char *provider_request_result(krb5_context context, void *moddata, krb5_msgtype type,
                                           krb5_error_code code)
{
    const request *r = request_current(0);

    (void)moddata;
    kdc_metrics_request(process_client_metrics(context),
                        type == KRB5_AS_REQ ? KDC_AS_REQ : KDC_TGS_REQ, result_of(r, type, code),
                        r != NULL && r->asked,
                        r != NULL ? kdc_metrics_clock() - r->began : 0);
    return r != NULL ? r->label : NULL;
}

static void provider_request_dropped(void *moddata)
{
    (void)moddata;
    kdc_metrics_dropped();
}

/* No prf: its output under a user's key is as good as the password. */
static const krb5_remote_key_vtable vtable = {
    .version = KRB5_REMOTE_KEY_VTABLE_VERSION,
    .encrypt = provider_encrypt,
    .decrypt = provider_decrypt,
    .make_checksum = provider_make_checksum,
    .verify_checksum = provider_verify_checksum,
    .hint_as = provider_hint_as,
    .hint_tgs = provider_hint_tgs,
    .request_done = provider_request_done,
    .flush = provider_flush,
    .request_result = provider_request_result,
    .request_dropped = provider_request_dropped,
};

krb5_error_code provider_register(krb5_context context, const mpc_options *options,
                                  client_contexts contexts)
{
    if (krb5_c_remote_key_host()->version != KRB5_REMOTE_KEY_HOST_VERSION) {
        krb5_set_error_message(context, KRB5_PLUGIN_VER_NOTSUPP,
                               "this module was built for another version of the patched krb5");
        return KRB5_PLUGIN_VER_NOTSUPP;
    }
    if (process_client_configure(context, options, contexts) != 0) {
        krb5_set_error_message(context, EINVAL,
                               "realm %s is served by other MPC servers in this process already, "
                               "or there is no memory", options->realm);
        return EINVAL;
    }
    return krb5_c_register_remote_keys(&vtable, NULL);
}

void provider_forget(krb5_context context)
{
    process_client_forget(context);
    source_forget(context);
}

void provider_note_client(const uint8_t handle[MPC_HANDLE_BYTES])
{
    request *r = request_current(1);

    if (r != NULL)
        request_note_client(r, handle);
}

void provider_unregister(void)
{
    krb5_c_register_remote_keys(NULL, NULL);
    process_client_stop();
    kdc_metrics_stop();
}
