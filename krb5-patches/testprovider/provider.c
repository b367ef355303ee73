// SPDX-License-Identifier: Apache-2.0

/*
 * The provider: a table of keys by handle, a thread which ends waits when their
 * time has come, and the operations, each of which waits and then uses the key
 * as any other.
 */

#include "remotetest.h"

#include <krb5/remote_key_plugin.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "ticket_header.h"

#define HANDLE_LENGTH KRB5_REMOTE_KEY_HANDLE_LENGTH

static void
log_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void
log_line(const char *fmt, ...)
{
    const char *name = getenv("KRB5_REMOTETEST_LOG");
    FILE *f = (name != NULL) ? fopen(name, "a") : NULL;
    va_list ap;

    if (f == NULL)
        return;
    va_start(ap, fmt);
    vfprintf(f, fmt, ap);
    va_end(ap);
    fputc('\n', f);
    fclose(f);
}

/*** Keys ***/

/* Keys by what names them: their encrypted form, of which the owner is to be
 * known, or their handle.  They are remembered for the life of the process.  A
 * test's database is small. */
#define BUCKETS 1024

struct key {
    struct key *next;
    unsigned int length;
    unsigned char *name;
    char *owner;
    krb5_keyblock *block; /* of a handle */
};

static struct key *keys[BUCKETS];

static struct key **
bucket(const unsigned char *name, unsigned int length)
{
    unsigned int h = 5381, i;

    for (i = 0; i < length; i++)
        h = h * 33 + name[i];
    return &keys[h % BUCKETS];
}

static struct key *
find_key(const void *name, unsigned int length)
{
    struct key *k = *bucket(name, length);

    while (k != NULL && (k->length != length || memcmp(k->name, name, length) != 0))
        k = k->next;
    return k;
}

static struct key *
add_key(const void *name, unsigned int length, const char *owner)
{
    struct key **b = bucket(name, length), *k = calloc(1, sizeof(*k));

    if (k == NULL || (k->name = malloc(length)) == NULL || (k->owner = strdup(owner)) == NULL)
        abort();
    memcpy(k->name, name, length);
    k->length = length;
    k->next = *b;
    *b = k;
    return k;
}

const char *
remotetest_owner(const krb5_key_data *kd)
{
    struct key *k = find_key(kd->key_data_contents[0], kd->key_data_length[0]);

    return (k == NULL) ? NULL : k->owner;
}

void
remotetest_note_owner(const krb5_key_data *kd, const char *name)
{
    if (kd->key_data_length[0] > 0 && remotetest_owner(kd) == NULL)
        (void)add_key(kd->key_data_contents[0], kd->key_data_length[0], name);
}

krb5_error_code
remotetest_make_reference(krb5_context context, const krb5_keyblock *block, const char *owner,
                          krb5_keyblock *ref_out)
{
    unsigned char handle[HANDLE_LENGTH];
    krb5_data d = {KV5M_DATA, HANDLE_LENGTH, (char *)handle};

    remotetest_handle(block, owner, handle);
    if (find_key(handle, HANDLE_LENGTH) == NULL &&
        krb5_copy_keyblock(context, block, &add_key(handle, HANDLE_LENGTH, owner)->block) != 0)
        abort();
    return krb5_c_make_remote_key(context, block->enctype, &d, ref_out);
}

/*** Waiting ***/

/* Waits end in the order in which they begin, since all are equally long. */
struct alarm {
    struct alarm *next;
    struct timespec when;
    void *token;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static struct alarm *alarms, **alarms_tail = &alarms;
static krb5_boolean stopping, thread_started;
static pthread_t thread;

/* The log of the process, if it has one: this module is in tools, too. */
extern int krb5_klog_syslog(int priority, const char *format, ...)
    __attribute__((weak, format(printf, 2, 3)));

/* Write as much to the log as a test wants, from this thread. */
static void
chatter(void)
{
    static unsigned long line;
    const char *lines = getenv("KRB5_REMOTETEST_CHATTER");
    int i;

    for (i = 0; lines != NULL && i < atoi(lines); i++)
        krb5_klog_syslog(LOG_ERR, "chatter %lu.", line++);
}

static void *
run_alarms(void *arg)
{
    const krb5_remote_key_host *host = krb5_c_remote_key_host();
    struct timespec when;
    struct alarm *a;

    pthread_mutex_lock(&lock);
    for (;;) {
        while (alarms == NULL && !stopping)
            pthread_cond_wait(&cond, &lock);
        if (alarms == NULL)
            break;
        a = alarms;
        alarms = a->next;
        if (alarms == NULL)
            alarms_tail = &alarms;
        when = a->when;
        if (!stopping) {
            pthread_mutex_unlock(&lock);
            while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) != 0)
                ;
            pthread_mutex_lock(&lock);
        }
        host->wake(a->token);
        free(a);
        pthread_mutex_unlock(&lock);
        chatter();
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return arg;
}

/* Let other requests run for as long as an operation takes.  The thread starts
 * with the first operation, which comes after the last fork. */
static krb5_error_code
take_time(void)
{
    const krb5_remote_key_host *host = krb5_c_remote_key_host();
    const char *delay = getenv("KRB5_REMOTETEST_DELAY");
    const char *outage = getenv("KRB5_REMOTETEST_OUTAGE");
    long ms = (delay != NULL) ? atol(delay) : 10;
    struct alarm *a = malloc(sizeof(*a));
    void *token = (a != NULL) ? host->begin_wait() : NULL;

    if (token == NULL) {
        free(a);
        return ENOMEM;
    }
    a->next = NULL;
    a->token = token;
    clock_gettime(CLOCK_MONOTONIC, &a->when);
    a->when.tv_nsec += ms * 1000000;
    a->when.tv_sec += a->when.tv_nsec / 1000000000;
    a->when.tv_nsec %= 1000000000;

    pthread_mutex_lock(&lock);
    if (!thread_started) {
        if (pthread_create(&thread, NULL, run_alarms, NULL) != 0)
            abort();
        thread_started = TRUE;
    }
    *alarms_tail = a;
    alarms_tail = &a->next;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&lock);

    host->wait(token);
    if (outage != NULL && access(outage, F_OK) == 0)
        return KRB5KDC_ERR_SVC_UNAVAILABLE;
    return 0;
}

/*** Requests ***/

/* As many bytes at a ticket's end may come with the reply. */
#define LATE_LENGTH 16

/* What the provider knows about a request in progress. */
struct request {
    unsigned int operations;
    size_t ticket_bound, reply_bound; /* from hints, or 0 */
    krb5_boolean hinted, is_as;
    krb5_boolean preauthenticated; /* an encrypted timestamp was opened */
    struct ticket_header header; /* for the next ticket; version 0 if none */

    /* A ticket which was handed out without its last bytes. */
    krb5_boolean may_be_late;
    krb5_data late; /* in the host's memory; without data if there is none */
    const struct key *late_key;
    krb5_data late_plain;
    char late_end[LATE_LENGTH];
};

/* Return the state of the current request, or NULL outside of requests. */
static struct request *
current_request(void)
{
    void **slot = krb5_c_remote_key_host()->request_slot();

    if (slot == NULL)
        return NULL;
    if (*slot == NULL)
        *slot = calloc(1, sizeof(struct request));
    return *slot;
}

static void
note_operation(const char *what, const struct key *k, krb5_keyusage usage, size_t length)
{
    struct request *r = current_request();

    if (r != NULL)
        r->operations++;
    log_line("%s usage=%d length=%lu owner=%s%s", what, (int)usage, (unsigned long)length,
             k->owner, (r == NULL) ? " blocking" : "");
}

/* Log how far a hint's upper bound was from the truth. */
static void
compare_bound(const char *what, size_t bound, size_t length)
{
    struct request *r = current_request();

    if (r != NULL && r->hinted && bound > 0) {
        log_line("bound %s hinted=%lu actual=%lu slack=%ld", what, (unsigned long)bound,
                 (unsigned long)length, (long)bound - (long)length);
    }
}

/*** Operations ***/

/* Find the key for an operation, and take the operation's time. */
static krb5_error_code
start(const char *what, const krb5_data *handle, krb5_keyusage usage, size_t length,
      struct key **key_out)
{
    *key_out = find_key(handle->data, HANDLE_LENGTH);
    if (*key_out == NULL)
        return KRB5_KDB_NO_MATCHING_KEY;
    note_operation(what, *key_out, usage, length);
    return take_time();
}

/* Falsify a header as a test demands. */
static void
tamper(struct ticket_header *header)
{
    const char *name = getenv("KRB5_REMOTETEST_TAMPER");
    char what[16] = "";
    FILE *f = (name != NULL) ? fopen(name, "r") : NULL;

    if (f == NULL)
        return;
    if (fscanf(f, "%15s", what) != 1)
        what[0] = '\0';
    fclose(f);
    if (strcmp(what, "version") == 0)
        header->version = 3;
    else if (strcmp(what, "reissued") == 0)
        header->version = TICKET_REISSUED;
    else if (strcmp(what, "principal") == 0)
        header->principal[0] ^= 1;
    else if (strcmp(what, "origin-late") == 0)
        header->origin += 3600;
    else if (strcmp(what, "origin-early") == 0)
        header->origin -= 3600;
    else if (strcmp(what, "cap") == 0)
        header->cap = header->origin + 60;
}

/* Keep the end of a ticket until the reply is encrypted, if that is allowed and wanted. */
static void
hold_back(struct request *r, const struct key *k, const krb5_data *plain, krb5_data *cipher)
{
    char *end = cipher->data + cipher->length - LATE_LENGTH;

    if (r == NULL || !r->may_be_late || getenv("KRB5_REMOTETEST_LATE") == NULL)
        return;
    r->late = *cipher;
    r->late_key = k;
    r->late_plain = *plain;
    r->late_plain.data = malloc(plain->length);
    if (r->late_plain.data == NULL)
        abort();
    memcpy(r->late_plain.data, plain->data, plain->length);
    memcpy(r->late_end, end, LATE_LENGTH);
    memset(end, 0, LATE_LENGTH);
    log_line("held back");
}

/* Bring the end of the ticket which was handed out without it, or the whole ticket anew. */
static krb5_error_code
bring_late(struct request *r)
{
    const char *how = getenv("KRB5_REMOTETEST_LATE");
    struct ticket_header header;
    krb5_data late;

    if (r == NULL || r->late.data == NULL || strcmp(how, "never") == 0)
        return 0;
    late = r->late;
    r->late.data = NULL;
    log_line("brought late");
    if (strcmp(how, "again") == 0) {
        header = r->header;
        tamper(&header);
        return ticket_header_seal(r->late_key->block, KRB5_KEYUSAGE_KDC_REP_TICKET, &header,
                                  &r->late_plain, &late);
    }
    memcpy(late.data + late.length - LATE_LENGTH, r->late_end, LATE_LENGTH);
    return 0;
}

static krb5_error_code
op_encrypt(krb5_context context, void *moddata, krb5_enctype enctype, const krb5_data *handle,
           krb5_keyusage usage, const krb5_data *plain, krb5_data *cipher_out)
{
    krb5_error_code ret;
    krb5_enc_data enc = {.ciphertext = *cipher_out};
    struct key *k;
    struct request *r = current_request();
    size_t length;

    ret = start("encrypt", handle, usage, plain->length, &k);
    if (ret)
        return ret;
    if (getenv("KRB5_REMOTETEST_GATE") != NULL && r != NULL && r->is_as && !r->preauthenticated) {
        krb5_set_error_message(context, KRB5KDC_ERR_PREAUTH_REQUIRED, "the gate is shut");
        return KRB5KDC_ERR_PREAUTH_REQUIRED;
    }
    if (usage == KRB5_KEYUSAGE_KDC_REP_TICKET && r != NULL)
        compare_bound("ticket", r->ticket_bound, plain->length);
    if (usage == KRB5_KEYUSAGE_AS_REP_ENCPART && r != NULL)
        compare_bound("reply", r->reply_bound, plain->length);

    if (ticket_header_applies(enctype, usage, k->owner) && r != NULL && r->header.version != 0) {
        struct ticket_header header = r->header;

        if (!r->may_be_late || getenv("KRB5_REMOTETEST_LATE") == NULL)
            tamper(&header);
        ret = ticket_header_seal(k->block, usage, &header, plain, cipher_out);
        if (!ret)
            hold_back(r, k, plain, cipher_out);
        return ret;
    }

    ret = krb5_c_encrypt_length(context, enctype, plain->length, &length);
    if (ret)
        return ret;
    if (length > cipher_out->length)
        return KRB5_BAD_MSIZE;
    ret = krb5_c_encrypt(context, k->block, usage, NULL, plain, &enc);
    if (ret == 0)
        cipher_out->length = length;
    if (ret == 0 && usage == KRB5_KEYUSAGE_AS_REP_ENCPART)
        ret = bring_late(r);
    return ret;
}

static krb5_error_code
op_decrypt(krb5_context context, void *moddata, krb5_enctype enctype, const krb5_data *handle,
           krb5_keyusage usage, const krb5_data *cipher, krb5_data *plain_out)
{
    krb5_error_code ret;
    krb5_enc_data enc = {.enctype = enctype, .ciphertext = *cipher};
    struct key *k;
    struct request *r = current_request();

    ret = start("decrypt", handle, usage, cipher->length, &k);
    if (ret)
        return ret;
    ret = krb5_c_decrypt(context, k->block, usage, NULL, &enc, plain_out);
    if (ret || r == NULL)
        return ret;

    /* The next ticket is for whoever proved to hold this key, or for whom the TGT
     * opened first was. */
    if (usage == KRB5_KEYUSAGE_AS_REQ_PA_ENC_TS)
        r->preauthenticated = TRUE;
    if (usage == KRB5_KEYUSAGE_AS_REQ_PA_ENC_TS)
        ticket_header_make(&r->header, k->owner);
    else if (ticket_header_applies(enctype, usage, k->owner) && r->header.version == 0)
        ticket_header_inherit(&r->header, cipher, k->owner);
    return 0;
}

static krb5_error_code
op_make_checksum(krb5_context context, void *moddata, krb5_enctype enctype,
                 const krb5_data *handle, krb5_keyusage usage, krb5_cksumtype type,
                 const krb5_data *input, krb5_data *cksum_out)
{
    krb5_error_code ret;
    krb5_checksum cksum;
    struct key *k;

    ret = start("make_checksum", handle, usage, input->length, &k);
    if (ret)
        return ret;
    ret = krb5_c_make_checksum(context, type, k->block, usage, input, &cksum);
    if (ret)
        return ret;
    if (cksum.length > cksum_out->length) {
        ret = KRB5_BAD_MSIZE;
    } else {
        memcpy(cksum_out->data, cksum.contents, cksum.length);
        cksum_out->length = cksum.length;
    }
    krb5_free_checksum_contents(context, &cksum);
    return ret;
}

static krb5_error_code
op_verify_checksum(krb5_context context, void *moddata, krb5_enctype enctype,
                   const krb5_data *handle, krb5_keyusage usage, krb5_cksumtype type,
                   const krb5_data *input, const krb5_data *value, krb5_boolean *valid)
{
    krb5_error_code ret;
    krb5_checksum cksum = {.checksum_type = type, .length = value->length,
                           .contents = (krb5_octet *)value->data};
    struct key *k;

    ret = start("verify_checksum", handle, usage, input->length, &k);
    if (ret)
        return ret;
    return krb5_c_verify_checksum(context, k->block, usage, input, &cksum, valid);
}

static krb5_error_code
op_prf(krb5_context context, void *moddata, krb5_enctype enctype, const krb5_data *handle,
       const krb5_data *input, krb5_data *output)
{
    krb5_error_code ret;
    krb5_data in = *input;
    struct key *k;

    ret = start("prf", handle, 0, input->length, &k);
    return ret ? ret : krb5_c_prf(context, k->block, &in, output);
}

static void
op_hint_as(krb5_context context, void *moddata, const krb5_remote_key_as_hint *hint)
{
    struct request *r = current_request();
    struct key *k;
    krb5_data handle;

    log_line("hint_as preauth=%lu ticket=%lu reply=%lu checksum=%lu proof=%d body=%lu",
             hint->preauth_cipher ? (unsigned long)hint->preauth_cipher->length : 0,
             hint->ticket_key ? (unsigned long)hint->ticket_size : 0,
             (unsigned long)hint->reply_size,
             hint->as_req ? (unsigned long)hint->as_req->length : 0,
             hint->proof ? (int)hint->proof->pa_type : 0,
             hint->request_body ? (unsigned long)hint->request_body->length : 0);
    if (r == NULL)
        return;
    r->hinted = r->is_as = TRUE;
    r->ticket_bound = hint->ticket_key ? hint->ticket_size : 0;
    r->reply_bound = hint->reply_size;
    r->may_be_late = hint->finish_with_reply;

    /* The new TGT is the client's, whosever TGT was the armor. */
    if (krb5_c_remote_key_handle(hint->client_key, &handle) == 0 &&
        (k = find_key(handle.data, HANDLE_LENGTH)) != NULL)
        ticket_header_make(&r->header, k->owner);
}

static void
op_hint_tgs(krb5_context context, void *moddata, const krb5_remote_key_tgs_hint *hint)
{
    struct request *r = current_request();

    log_line("hint_tgs cipher=%lu ticket=%lu", (unsigned long)hint->ticket_cipher->length,
             hint->ticket_key ? (unsigned long)hint->ticket_size : 0);
    if (r == NULL)
        return;
    r->hinted = TRUE;
    r->ticket_bound = hint->ticket_key ? hint->ticket_size : 0;
}

static void
op_request_done(void *moddata, void *request_state)
{
    struct request *r = request_state;

    log_line("request_done operations=%u", r->operations);
    free(r->late_plain.data);
    free(r);
}

static krb5_remote_key_vtable provider = {
    .version = KRB5_REMOTE_KEY_VTABLE_VERSION,
    .encrypt = op_encrypt,
    .decrypt = op_decrypt,
    .make_checksum = op_make_checksum,
    .verify_checksum = op_verify_checksum,
    .hint_as = op_hint_as,
    .hint_tgs = op_hint_tgs,
    .request_done = op_request_done,
};

krb5_error_code
remotetest_register(void)
{
    stopping = FALSE;
    provider.prf = (getenv("KRB5_REMOTETEST_NO_PRF") == NULL) ? op_prf : NULL;
    return krb5_c_register_remote_keys(&provider, NULL);
}

void
remotetest_unregister(void)
{
    krb5_boolean join;

    (void)krb5_c_register_remote_keys(NULL, NULL);
    pthread_mutex_lock(&lock);
    stopping = TRUE;
    join = thread_started;
    thread_started = FALSE;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&lock);
    if (join)
        pthread_join(thread, NULL);
}
