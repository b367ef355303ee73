/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/provider/provider.h"

#include <errno.h>
#include <krb5/remote_key_plugin.h>
#include <string.h>
#include <syslog.h>

#include "kdc-plugin/provider/enctypes.h"
#include "kdc-plugin/provider/errors.h"
#include "kdc-plugin/provider/gcm_message.h"
#include "kdc-plugin/provider/process_client.h"
#include "kdc-plugin/provider/put_off.h"
#include "kdc-plugin/provider/request.h"
#include "kdc-plugin/provider/waiting.h"

static const uint8_t *handle_bytes(const krb5_data *handle)
{
    return (const uint8_t *)handle->data;
}

static mpc_bytes bytes_of(const krb5_data *data)
{
    return (mpc_bytes){(const uint8_t *)data->data, data->length};
}

/* The job client, or an outage. */
static krb5_error_code get_client(krb5_context context, const char *what, mpc_client **client)
{
    char *error = NULL;
    krb5_error_code ret = 0;

    *client = process_client_get(&error);
    if (*client == NULL)
        ret = verdict_error(context, MPC_UNAVAILABLE, what, error == NULL ? "no memory" : error);
    mpc_text_free(error);
    return ret;
}

static krb5_error_code check_enctype(krb5_context context, krb5_enctype enctype,
                                     const krb5_data *handle)
{
    if ((gcm_enctype(enctype) || cts_enctype(enctype)) && handle->length == MPC_HANDLE_BYTES)
        return 0;
    if (context != NULL)
        krb5_set_error_message(context, KRB5_BAD_ENCTYPE,
                               "a remote key of enctype %d; the MPC servers hold keys of "
                               "aes128-gcm, aes256-gcm and the aes enctypes 17 to 20 only",
                               (int)enctype);
    return KRB5_BAD_ENCTYPE;
}

static krb5_error_code wrong_size(krb5_context context, const char *what, size_t size,
                                  krb5_enctype enctype)
{
    if (context != NULL)
        krb5_set_error_message(context, KRB5_BAD_MSIZE, "%s: %lu bytes are none of enctype %d",
                               what, (unsigned long)size, (int)enctype);
    return KRB5_BAD_MSIZE;
}

/* Waits for a flight. On success *result belongs to it. */
static krb5_error_code land(krb5_context context, const char *what, flight *f,
                            const mpc_result **result)
{
    *result = (f == NULL) ? NULL : flight_await(f);
    if (*result == NULL)
        return ENOMEM;
    if ((*result)->verdict != MPC_OK)
        return verdict_error(context, (*result)->verdict, what, (*result)->detail);
    return 0;
}

/* ---- decrypt ---- */

/* The servers answer with keystream, or with the plain text. */
static krb5_error_code take_plain(krb5_enctype enctype, const krb5_data *cipher,
                                  const mpc_result *result, krb5_data *plain)
{
    if (gcm_enctype(enctype))
        return gcm_open(cipher, result->open_keystream, plain);
    return cts_take_plain(enctype, cipher, result->open_plaintext, plain);
}

static krb5_error_code open_alone(krb5_context context, mpc_client *client, const char *what,
                                  const mpc_job *job, const krb5_data *cipher, krb5_data *plain,
                                  uint64_t *job_id)
{
    flight *f = flight_start(client, job);
    const mpc_result *result;
    krb5_error_code ret = land(context, what, f, &result);

    if (ret == 0) {
        *job_id = result->id;
        ret = take_plain(job->open->enctype, cipher, result, plain);
    }
    flight_release(f);
    return ret;
}

static krb5_error_code open_prepared(krb5_context context, mpc_client *client, const char *what,
                                     request *r, const krb5_data *cipher, krb5_data *plain,
                                     uint64_t *job_id)
{
    const mpc_result *result;
    krb5_error_code ret;

    if (!request_send_prepared(r, client))
        return ENOMEM;
    ret = land(context, what, r->prepared.flight, &result);
    if (ret)
        return ret;
    *job_id = result->id;
    return take_plain(r->prepared.open.enctype, cipher, result, plain);
}

static krb5_error_code provider_decrypt(krb5_context context, void *moddata, krb5_enctype enctype,
                                        const krb5_data *handle, krb5_keyusage usage,
                                        const krb5_data *cipher, krb5_data *plain)
{
    const char *what = usage == USAGE_PREAUTH ? "verifying a pre-authentication"
                                              : "opening a ticket";
    const mpc_open open = {handle_bytes(handle), (uint32_t)usage, bytes_of(cipher), enctype};
    mpc_job job = {0};
    request *r = request_current(1);
    mpc_client *client;
    uint64_t id = 0;
    krb5_error_code ret = check_enctype(context, enctype, handle);

    (void)moddata;
    if (ret)
        return ret;
    if (usage != USAGE_PREAUTH && usage != USAGE_TICKET)
        return not_in_table(context, "decrypting", usage);
    if (plain_length(enctype, cipher) < 0)
        return wrong_size(context, what, cipher->length, enctype);
    ret = get_client(context, what, &client);
    if (ret)
        return ret;
    if (r != NULL && request_has_open(r, open.handle, open.usage, cipher)) {
        ret = open_prepared(context, client, what, r, cipher, plain, &id);
    } else {
        job.operation = usage == USAGE_PREAUTH ? MPC_OPEN_PREAUTH : MPC_OPEN_TICKET;
        job.client = usage == USAGE_PREAUTH ? open.handle : NULL;
        job.open = &open;
        ret = open_alone(context, client, what, &job, cipher, plain, &id);
    }
    if (ret || r == NULL)
        return ret;
    if (usage == USAGE_PREAUTH) {
        r->grant = id;
        r->has_client = 1;
        memcpy(r->client, open.handle, MPC_HANDLE_BYTES);
    } else if (!r->is_as) {
        request_remember_parent(r, enctype, open.handle, cipher);
    }
    return 0;
}

/* ---- encrypt ---- */

/* Waits for a tag and writes it to its place; lets go of the flight. */
static krb5_error_code land_tag(krb5_context context, const char *what, tag_flight *t,
                                uint8_t *place)
{
    const char *detail;
    enum mpc_verdict verdict;
    krb5_error_code ret = 0;

    if (t == NULL)
        return ENOMEM;
    verdict = tag_await(t, place, &detail);
    if (verdict != MPC_OK)
        ret = verdict_error(context, verdict, what, detail);
    tag_release(t);
    return ret;
}

/* Writes the tag of the ticket that was handed out without, if there is one. */
static krb5_error_code land_late_tag(krb5_context context, request *r)
{
    const late_tag late = r->late;

    r->late = (late_tag){NULL, NULL};
    if (late.flight == NULL)
        return 0;
    return land_tag(context, "sealing a ticket", late.flight, late.place);
}

/* Lays out the message of one seal of a result and gets its tag: at once, or with that of the reply
 * if `may_be_late`. */
static krb5_error_code finish_seal(krb5_context context, mpc_client *client, const char *what,
                                   request *r, const mpc_result *result, uint32_t index,
                                   int may_be_late, const krb5_data *plain, krb5_data *message)
{
    mpc_bytes ciphertext;
    tag_flight *t;
    uint8_t *place;
    krb5_error_code ret;

    ret = gcm_lay_out(&result->seals[index], plain, message, &ciphertext);
    if (ret)
        return ret;
    place = gcm_tag_place(message);
    memset(place, 0, MPC_TAG_BYTES);
    t = tag_start(client, result->id, index, ciphertext);
    if (t == NULL || !may_be_late || r->late.flight != NULL)
        return land_tag(context, what, t, place);
    r->late = (late_tag){t, place};
    return 0;
}

/* The job that seals one message by itself. False if the table has none for this request. */
static int plan_seal(const request *r, const mpc_seal *seal, mpc_open *parent, mpc_job *job)
{
    memset(job, 0, sizeof(*job));
    job->seals = seal;
    job->seal_count = 1;
    if (seal->usage == USAGE_AS_REPLY || (r != NULL && r->has_client)) {
        job->client = seal->usage == USAGE_AS_REPLY ? seal->handle : r->client;
        job->grant = r == NULL ? 0 : r->grant;
        job->operation = job->grant != 0 ? MPC_SEAL_GRANTED : MPC_LOGIN;
        return 1;
    }
    if (r == NULL || r->is_as || !r->parent.present)
        return 0;
    *parent = (mpc_open){r->parent.handle, USAGE_TICKET, bytes_of(&r->parent.message),
                         r->parent.enctype};
    job->open = parent;
    job->operation = MPC_REISSUE_TICKET;
    return 1;
}

static krb5_error_code seal_alone(krb5_context context, mpc_client *client, const char *what,
                                  request *r, const mpc_seal *seal, const krb5_data *plain,
                                  krb5_data *message)
{
    mpc_open parent;
    mpc_job job;
    flight *f;
    const mpc_result *result;
    krb5_error_code ret;

    if (!plan_seal(r, seal, &parent, &job))
        return verdict_error(context, MPC_REFUSED, what,
                             "the MPC servers know neither the client nor a parent ticket: enrol "
                             "the client with mpc-admin enroll, or see mpc_service_logins for "
                             "services");
    f = flight_start(client, &job);
    ret = land(context, what, f, &result);
    if (ret == 0 && gcm_enctype(seal->enctype))
        ret = finish_seal(context, client, what, r, result, 0, 0, plain, message);
    else if (ret == 0)
        ret = cts_take_message(seal->enctype, plain, result->seals[0].message, message);
    flight_release(f);
    return ret;
}

/* Sends the prepared job if it was not sent yet, and waits for it. KRB5_PLUGIN_NO_HANDLE: it failed
 * and a later job has passed the gate. */
static krb5_error_code land_prepared(krb5_context context, mpc_client *client, const char *what,
                                     request *r, const mpc_result **result)
{
    krb5_error_code ret;

    if (!request_send_prepared(r, client))
        return ENOMEM;
    *result = flight_await(r->prepared.flight);
    if (*result == NULL)
        return ENOMEM;
    if ((*result)->verdict != MPC_OK && r->grant != 0)
        return KRB5_PLUGIN_NO_HANDLE;
    ret = land(context, what, r->prepared.flight, result);
    if (ret == 0 && r->is_as && r->prepared.operation != MPC_SEAL_GRANTED)
        r->grant = (*result)->id;
    return ret;
}

/* Uses a seal of the prepared job. KRB5_PLUGIN_NO_HANDLE: it has none that fits, or as
 * land_prepared. */
static krb5_error_code seal_prepared(krb5_context context, mpc_client *client, const char *what,
                                     request *r, const mpc_seal *seal, const krb5_data *plain,
                                     krb5_data *message)
{
    const mpc_result *result;
    uint32_t index;
    int may_be_late;
    krb5_error_code ret;

    if (r == NULL || !request_take_seal(r, seal->handle, seal->usage, plain->length, &index))
        return KRB5_PLUGIN_NO_HANDLE;
    ret = land_prepared(context, client, what, r, &result);
    if (ret)
        return ret;
    may_be_late = r->tag_may_be_late && seal->usage == USAGE_TICKET;
    return finish_seal(context, client, what, r, result, index, may_be_late, plain, message);
}

static krb5_error_code provider_encrypt(krb5_context context, void *moddata, krb5_enctype enctype,
                                        const krb5_data *handle, krb5_keyusage usage,
                                        const krb5_data *plain, krb5_data *message)
{
    const char *what = usage == USAGE_TICKET ? "sealing a ticket" : "sealing a reply";
    const mpc_seal seal = {handle_bytes(handle), (uint32_t)usage, plain->length, enctype,
                           cts_enctype(enctype) ? bytes_of(plain) : (mpc_bytes){NULL, 0}};
    request *r = request_current(0);
    mpc_client *client;
    krb5_error_code ret = check_enctype(context, enctype, handle);

    (void)moddata;
    if (ret)
        return ret;
    if (usage != USAGE_TICKET && usage != USAGE_AS_REPLY)
        return not_in_table(context, "encrypting", usage);
    ret = get_client(context, what, &client);
    if (ret)
        return ret;
    ret = seal_prepared(context, client, what, r, &seal, plain, message);
    if (ret == KRB5_PLUGIN_NO_HANDLE)
        ret = seal_alone(context, client, what, r, &seal, plain, message);
    if (ret == 0 && usage == USAGE_AS_REPLY && r != NULL)
        ret = land_late_tag(context, r);
    return ret;
}

/* ---- checksums ---- */

static krb5_error_code copy_mac(const mpc_result *result, krb5_data *out)
{
    if (out->length < result->mac_size)
        return KRB5_BAD_MSIZE;
    memcpy(out->data, result->mac, result->mac_size);
    out->length = (unsigned int)result->mac_size;
    return 0;
}

/* The checksum of the AS-REQ that was announced; KRB5_PLUGIN_NO_HANDLE as in seal_prepared. */
static krb5_error_code mac_prepared(krb5_context context, mpc_client *client, const char *what,
                                    request *r, const uint8_t *handle, const krb5_data *input,
                                    krb5_data *out)
{
    const mpc_result *result;
    krb5_error_code ret;

    if (r == NULL || !request_has_mac(r, handle, input))
        return KRB5_PLUGIN_NO_HANDLE;
    ret = land_prepared(context, client, what, r, &result);
    if (ret)
        return ret;
    return copy_mac(result, out);
}

static krb5_error_code mac_alone(krb5_context context, mpc_client *client, const char *what,
                                 const request *r, const mpc_make_mac *mac, krb5_data *out)
{
    mpc_job job = {0};
    flight *f;
    const mpc_result *result;
    krb5_error_code ret;

    job.make_mac = mac;
    job.operation = MPC_MAKE_CHECKSUM;
    if (mac->usage == USAGE_AS_REQ_CHECKSUM) {
        job.client = mac->handle;
        job.grant = r == NULL ? 0 : r->grant;
        job.operation = job.grant != 0 ? MPC_SEAL_GRANTED : MPC_LOGIN;
    }
    f = flight_start(client, &job);
    ret = land(context, what, f, &result);
    if (ret == 0)
        ret = copy_mac(result, out);
    flight_release(f);
    return ret;
}

/* Each enctype has one checksum type. */
static krb5_error_code check_type(krb5_context context, krb5_enctype enctype,
                                  const krb5_data *handle, krb5_cksumtype type)
{
    krb5_error_code ret = check_enctype(context, enctype, handle);

    if (ret == 0 && type != checksum_type_of(enctype)) {
        ret = KRB5_BAD_ENCTYPE;
        if (context != NULL)
            krb5_set_error_message(context, ret, "checksum type %d under a remote key of enctype "
                                   "%d", (int)type, (int)enctype);
    }
    return ret;
}

static krb5_error_code provider_make_checksum(krb5_context context, void *moddata,
                                              krb5_enctype enctype, const krb5_data *handle,
                                              krb5_keyusage usage, krb5_cksumtype type,
                                              const krb5_data *input, krb5_data *out)
{
    const char *what = "making a checksum";
    const mpc_make_mac mac = {handle_bytes(handle), (uint32_t)usage, bytes_of(input), enctype};
    request *r = request_current(0);
    mpc_client *client;
    krb5_error_code ret = check_type(context, enctype, handle, type);

    (void)moddata;
    if (ret)
        return ret;
    if (usage != USAGE_PAC_CHECKSUM && usage != USAGE_AS_REQ_CHECKSUM)
        return not_in_table(context, what, usage);
    ret = get_client(context, what, &client);
    if (ret)
        return ret;
    ret = KRB5_PLUGIN_NO_HANDLE;
    if (usage == USAGE_AS_REQ_CHECKSUM)
        ret = mac_prepared(context, client, what, r, mac.handle, input, out);
    if (ret == KRB5_PLUGIN_NO_HANDLE)
        ret = mac_alone(context, client, what, r, &mac, out);
    return ret;
}

static krb5_error_code provider_verify_checksum(krb5_context context, void *moddata,
                                                krb5_enctype enctype, const krb5_data *handle,
                                                krb5_keyusage usage, krb5_cksumtype type,
                                                const krb5_data *input, const krb5_data *cksum,
                                                krb5_boolean *valid)
{
    const char *what = "verifying a checksum";
    const mpc_verify_mac mac = {handle_bytes(handle), (uint32_t)usage, bytes_of(input),
                                bytes_of(cksum)};
    mpc_job job = {0};
    mpc_client *client;
    const mpc_result *result;
    flight *f;
    krb5_error_code ret = check_type(context, enctype, handle, type);

    (void)moddata;
    *valid = FALSE;
    if (ret)
        return ret;
    if (usage != USAGE_PAC_CHECKSUM)
        return not_in_table(context, what, usage);
    ret = get_client(context, what, &client);
    if (ret)
        return ret;
    job.operation = MPC_VERIFY_CHECKSUM;
    job.verify_mac = &mac;
    f = flight_start(client, &job);
    result = (f == NULL) ? NULL : flight_await(f);
    if (result == NULL)
        ret = ENOMEM;
    else if (result->verdict == MPC_OK)
        *valid = TRUE;
    else if (result->verdict != MPC_BAD_TAG)
        ret = verdict_error(context, result->verdict, what, result->detail);
    flight_release(f);
    return ret;
}

/* ---- hints ---- */

/* Sends what a hint prepared; without pre-authentication a login waits until it is needed, since
 * most such requests end with "pre-authentication required". */
static void send_early(request *r)
{
    char *error = NULL;
    mpc_client *client;

    if (r->prepared.operation == 0 || !r->prepared.open.present)
        return;
    client = process_client_get(&error);
    mpc_text_free(error); /* the operation itself will report it */
    if (client != NULL)
        request_send_prepared(r, client);
}

static void provider_hint_as(krb5_context context, void *moddata,
                             const krb5_remote_key_as_hint *hint)
{
    request *r = request_current(1);

    (void)context;
    (void)moddata;
    if (r == NULL)
        return;
    request_take_as_hint(r, hint);
    send_early(r);
}

static void provider_hint_tgs(krb5_context context, void *moddata,
                              const krb5_remote_key_tgs_hint *hint)
{
    request *r = request_current(1);

    (void)context;
    (void)moddata;
    if (r == NULL)
        return;
    request_take_tgs_hint(r, hint);
    send_early(r);
}

static void provider_request_done(void *moddata, void *state)
{
    (void)moddata;
    request_free(state);
}

static void provider_flush(void *moddata)
{
    (void)moddata;
    put_off_flush();
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
};

krb5_error_code provider_register(krb5_context context, const mpc_options *options)
{
    if (process_client_configure(options) != 0) {
        krb5_set_error_message(context, EINVAL,
                               "the mpc module serves one realm and one triple of servers per "
                               "process; realm %s needs a krb5kdc of its own", options->realm);
        return EINVAL;
    }
    return krb5_c_register_remote_keys(&vtable, NULL);
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
}
