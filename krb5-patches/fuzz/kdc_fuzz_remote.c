/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys that others hold: in the database's place here gives out references, and their provider is in this
 * process. An input says when it answers, and at which of a request's operations what goes wrong, there or
 * in the database meanwhile.
 */
#include "kdc_fuzz_parts.h"
#include "../lib/crypto/krb/crypto_int.h"
#include "../lib/kdb/kdb5.h"
#include "kdc_fiber.h"
#include <krb5/remote_key_plugin.h>

#define HEADER_LENGTH 33
#define ZERO_LENGTH 16
#define LATE_LENGTH 16

/* How an input begins; behind it comes a request (kdc_fuzz.h). */
struct orders {
    unsigned char waits;   /* bit i: operation i, counted modulo 8, is answered in a later turn of the loop */
    unsigned char at;      /* before which operation, modulo 8; or bits, below */
    unsigned char trouble; /* modulo their number */
};
enum {
    FROM_BEGIN = 128, /* the database has changed before the first operation, */
    OF_SERVERS = 64,  /* and not what it says of clients, but of others */
    STRICT = 32,      /* anonymous clients get a TGT and nothing else */
    ROOM = 16         /* if it is CROWDED, for three: but of a client's logins for one */
};
enum trouble {
    NONE,
    OUTAGE,
    OUTAGE_FOR_DATAGRAMS,
    GATE_SHUT, /* a pre-authentication is wanted first */
    REFUSED,
    WRONG_KEY,
    SKEW,
    REPEATED,
    BAD_SIZE,
    NO_MEMORY,
    SENT_AGAIN,
    CROWDED, /* from the begin there is a place for one, two or three, and now comes another */
    KEY_CHANGES, /* in the database, as what follows */
    ENTRY_GOES,
    ENTRY_IS_SHUT,
    ENTRY_MOVES, /* to another realm */
    ENTRY_REFERS, /* has data of that kind */
    DATABASE_IS_LOCKED,
    DATABASE_BREAKS,
    KEY_UNREADABLE, /* the one whose number `at` is */
    TICKET_LATE, /* its end comes with the reply, */
    TICKET_NEVER, /* or does not */
    HEADER_VERSION, /* of the ticket */
    HEADER_PRINCIPAL,
    HEADER_ORIGIN,
    HEADER_CAP,
    HEADER_NONE,
    NO_PRF, /* from the begin */
    OUTSIDE, /* before the request the KDC does something with a key that is of none */
    TROUBLES
};

static struct orders orders;
static krb5_boolean remote; /* keys are, just now */
static unsigned int operations;
static krb5_boolean changed; /* the database */
static unsigned int reads;   /* of keys */
static krb5_boolean may_be_late;
static krb5_data late; /* of a ticket, where the KDC has it; its end is in late_end */
static char late_end[LATE_LENGTH];
static volatile unsigned char sink;

static enum trouble
trouble(void)
{
    return orders.trouble % TROUBLES;
}

/* Whatever is shown to a provider can be read. */
static void
look_at(const void *bytes, size_t length)
{
    size_t i;

    for (i = 0; i < length; i++)
        sink ^= ((const unsigned char *)bytes)[i];
}

static void
look_at_data(const krb5_data *data)
{
    if (data != NULL)
        look_at(data->data, data->length);
}

/*** Keys, and references to them ***/

static struct {
    krb5_keyblock block;
    krb5_key made;
} keys[256];
static unsigned int n_keys;

static unsigned int
number_of(const krb5_keyblock *block)
{
    unsigned int i;

    for (i = 0; i < n_keys; i++) {
        if (keys[i].block.enctype == block->enctype && keys[i].block.length == block->length &&
            memcmp(keys[i].block.contents, block->contents, block->length) == 0)
            return i;
    }
    if (n_keys == sizeof(keys) / sizeof(*keys))
        abort();
    need(krb5_copy_keyblock_contents(world.client, block, &keys[n_keys].block), "key");
    need(krb5_k_create_key(world.client, &keys[n_keys].block, &keys[n_keys].made), "key");
    return n_keys++;
}

static krb5_error_code (*true_key)(krb5_context, const krb5_keyblock *, const krb5_key_data *,
                                   krb5_keyblock *, krb5_keysalt *);
static krb5_error_code (*true_principal)(krb5_context, krb5_const_principal, unsigned int,
                                         krb5_db_entry **);

static krb5_error_code
give_reference(krb5_context context, const krb5_keyblock *mkey, const krb5_key_data *data,
               krb5_keyblock *key, krb5_keysalt *salt)
{
    krb5_error_code ret;
    char handle[KRB5_REMOTE_KEY_HANDLE_LENGTH] = {0};
    krb5_data d = make_data(handle, sizeof(handle));
    krb5_keyblock block;

    if (remote && trouble() == KEY_UNREADABLE && reads++ % 16 == orders.at % 16)
        return KRB5_KDB_NO_MATCHING_KEY;
    ret = true_key(context, mkey, data, key, salt);
    if (ret || !remote)
        return ret;
    block = *key;
    handle[0] = (char)number_of(&block);
    ret = krb5_c_make_remote_key(context, block.enctype, &d, key);
    krb5_free_keyblock_contents(context, &block);
    return ret;
}

/* The last of its keys is left. */
static void
change_key(krb5_db_entry *entry)
{
    krb5_key_data *data = entry->key_data;
    int i;

    while (entry->n_key_data > 1) {
        for (i = 0; i < data->key_data_ver; i++)
            free(data->key_data_contents[i]);
        memmove(data, data + 1, --entry->n_key_data * sizeof(*data));
    }
}

static krb5_error_code
lost_principal(void)
{
    switch (trouble()) {
        case ENTRY_GOES:
            return KRB5_KDB_NOENTRY;
        case DATABASE_IS_LOCKED:
            return KRB5_KDB_CANTLOCK_DB;
        case DATABASE_BREAKS:
            return KRB5_KDB_DB_CORRUPT;
        default:
            return 0;
    }
}

/* Entries may have changed while a request waited. */
static krb5_error_code
give_principal(krb5_context context, krb5_const_principal princ, unsigned int flags,
               krb5_db_entry **entry)
{
    krb5_tl_data referral = {NULL, KRB5_TL_SVR_REFERRAL_DATA, 5, (krb5_octet *)"there"};
    krb5_boolean client = (flags & KRB5_KDB_FLAG_CLIENT) != 0;
    krb5_boolean other = remote && changed && client != ((orders.at & OF_SERVERS) != 0);
    krb5_error_code ret = other ? lost_principal() : 0;

    if (!ret)
        ret = true_principal(context, princ, flags, entry);
    if (ret || !other)
        return ret;
    if (trouble() == ENTRY_REFERS)
        need(krb5_dbe_update_tl_data(context, *entry, &referral), "tagged data");
    else if (trouble() == ENTRY_IS_SHUT)
        (*entry)->attributes |= KRB5_KDB_DISALLOW_ALL_TIX;
    else if (trouble() == KEY_CHANGES)
        change_key(*entry);
    else if (trouble() == ENTRY_MOVES && (*entry)->princ->realm.length > 0)
        (*entry)->princ->realm.data[0] ^= 1;
    return 0;
}

/*** Operations ***/

static void *put_off[4]; /* waits that end with the next flush */
static unsigned int n_put_off;
static krb5_boolean again; /* its request comes again, before another wait ends */

static void
wake_later(verto_ctx *loop, verto_ev *event)
{
    if (again)
        kdc_fuzz_ask_meanwhile(trouble() == CROWDED);
    krb5_c_remote_key_host()->wake(verto_get_private(event));
}

/* Other things happen, or nothing. */
static void
take_time(unsigned int number, krb5_boolean now)
{
    const krb5_remote_key_host *host = krb5_c_remote_key_host();
    krb5_remote_key_source source;
    void *token, **slot = host->request_slot();
    verto_ev *event;

    if (slot == NULL) { /* nobody else could wake who waits here */
        token = host->begin_wait();
        if (token == NULL)
            abort();
        host->wake(token);
        host->wait(token);
        return;
    }
    if (*slot == NULL)
        *slot = malloc(1);
    if (host->request_source(&source)) {
        look_at(source.address->contents, source.address->length);
        if (source.armor != NULL) {
            look_at(source.armor, strlen(source.armor) + 1);
            look_at(source.armored, sizeof(source.armored));
        }
    }
    token = host->begin_wait();
    if (token == NULL)
        abort();
    again = now && (trouble() == SENT_AGAIN || trouble() == CROWDED);
    if (!again && !(orders.waits >> number % 8 & 1)) {
        host->wake(token);
    } else if (!again && n_put_off < sizeof(put_off) / sizeof(*put_off) && host->flush_later()) {
        put_off[n_put_off++] = token;
    } else {
        event = verto_add_idle(kdc_fuzz_loop(), VERTO_EV_FLAG_NONE, wake_later);
        if (event == NULL)
            abort();
        verto_set_private(event, token, NULL);
    }
    host->wait(token);
}

static krb5_error_code
error_of_trouble(krb5_context context)
{
    switch (trouble()) {
        case OUTAGE_FOR_DATAGRAMS:
            krb5_c_remote_key_host()->prefer_stream();
            return KRB5KDC_ERR_SVC_UNAVAILABLE;
        case OUTAGE:
            return KRB5KDC_ERR_SVC_UNAVAILABLE;
        case GATE_SHUT:
            return KRB5KDC_ERR_PREAUTH_REQUIRED;
        case REFUSED:
            krb5_set_error_message(context, KRB5KDC_ERR_POLICY, "refused");
            return KRB5KDC_ERR_POLICY;
        case WRONG_KEY:
            return KRB5KRB_AP_ERR_BAD_INTEGRITY;
        case SKEW:
            return KRB5KRB_AP_ERR_SKEW;
        case REPEATED:
            return KRB5KRB_AP_ERR_REPEAT;
        case BAD_SIZE:
            return KRB5_BAD_MSIZE;
        case NO_MEMORY:
            return ENOMEM;
        default:
            return 0;
    }
}

/* Whether it is now that something goes wrong. */
static krb5_boolean
begin(krb5_context context, const krb5_data *handle, const krb5_data *in, krb5_key *key,
      krb5_error_code *ret)
{
    unsigned int number = operations++;
    krb5_boolean now = number % 8 == orders.at % 8;

    if (handle->length != KRB5_REMOTE_KEY_HANDLE_LENGTH ||
        (unsigned char)handle->data[0] >= n_keys)
        abort();
    *key = keys[(unsigned char)handle->data[0]].made;
    look_at_data(in);
    take_time(number, now);
    changed = changed || now;
    *ret = now ? error_of_trouble(context) : 0;
    return now;
}

/* As those who hold keys do it: the ticket, of which they have seen a part, with a header. */
static void
make_header(const krb5_data *plain, krb5_boolean wrong, unsigned char *header)
{
    static char label[] = "mpc-kdc principal v1";
    krb5_enc_tkt_part *part = NULL;
    unsigned char hash[K5_SHA256_HASHLEN];
    krb5_data in[2] = {make_data(label, sizeof(label)), empty_data()};
    char *name = NULL;

    memset(header, 0, HEADER_LENGTH);
    header[0] = 1;
    if (decode_krb5_enc_tkt_part(plain, &part) == 0 && part->client != NULL) {
        if (part->flags & TKT_FLG_ANONYMOUS)
            in[1] = string2data("WELLKNOWN/ANONYMOUS@" REALM);
        else if (!data_eq_string(part->client->realm, REALM))
            in[1] = string2data("krbtgt/" REALM "@OTHER.TEST");
        else if (krb5_unparse_name(world.client, part->client, &name) == 0)
            in[1] = string2data(name);
        store_32_be(part->times.authtime, header + 17);
    }
    need(k5_sha256(in, 2, hash), "hash");
    memcpy(header + 1, hash, 16);
    store_32_be(NOW + 30 * 86400, header + 21);
    krb5_free_unparsed_name(world.client, name);
    krb5_free_enc_tkt_part(world.client, part);
    if (!wrong)
        return;
    if (trouble() == HEADER_VERSION)
        header[0] = 2 + orders.waits % 2;
    else if (trouble() == HEADER_PRINCIPAL)
        header[1] ^= 1;
    else if (trouble() == HEADER_ORIGIN)
        store_32_be(NOW + (orders.waits & 1 ? 86400 : -86400), header + 17);
    else if (trouble() == HEADER_CAP)
        store_32_be(NOW + 60, header + 21);
}

/* nonce | its length and a header | ciphertext of zeros and plain | tag */
static krb5_error_code
seal(krb5_key key, krb5_keyusage usage, const unsigned char *header, const krb5_data *plain,
     krb5_data *out)
{
    unsigned char constant[5];
    krb5_data about = make_data(constant, sizeof(constant)), nonce, aad, text;
    size_t length = GCM_NONCE_LENGTH + 1 + HEADER_LENGTH + ZERO_LENGTH + plain->length +
                    GCM_TAG_LENGTH;
    krb5_key usage_key;

    if (length > out->length)
        return KRB5_BAD_MSIZE;
    store_32_be(usage, constant);
    constant[4] = 0x47;
    need(krb5int_derive_key(find_enctype(key->keyblock.enctype)->enc, NULL, key, &usage_key, &about,
                            DERIVE_RFC3961),
         "key");
    nonce = make_data(out->data, GCM_NONCE_LENGTH);
    need(krb5_c_random_make_octets(world.client, &nonce), "nonce");
    aad = make_data(out->data + GCM_NONCE_LENGTH, 1 + HEADER_LENGTH);
    aad.data[0] = HEADER_LENGTH;
    memcpy(aad.data + 1, header, HEADER_LENGTH);
    text = make_data(aad.data + aad.length, ZERO_LENGTH + plain->length);
    memset(text.data, 0, ZERO_LENGTH);
    if (plain->length > 0)
        memcpy(text.data + ZERO_LENGTH, plain->data, plain->length);
    need(k5_aes_gcm_seal(usage_key, (uint8_t *)nonce.data, &aad, &text,
                         (uint8_t *)text.data + text.length),
         "ticket");
    krb5_k_free_key(world.client, usage_key);
    out->length = length;
    return 0;
}

static krb5_error_code
op_encrypt(krb5_context context, void *moddata, krb5_enctype enctype, const krb5_data *handle,
           krb5_keyusage usage, const krb5_data *plain, krb5_data *out)
{
    krb5_error_code ret;
    krb5_key key;
    krb5_boolean now = begin(context, handle, plain, &key, &ret);
    krb5_boolean ticket = usage == KRB5_KEYUSAGE_KDC_REP_TICKET;
    krb5_enc_data enc = {0};
    unsigned char header[HEADER_LENGTH];
    size_t length;

    if (ret)
        return ret;
    if (ticket && enctype < 0 && !(now && trouble() == HEADER_NONE)) {
        make_header(plain, now, header);
        ret = seal(key, usage, header, plain, out);
    } else {
        need(krb5_c_encrypt_length(context, enctype, plain->length, &length), "length");
        if (length > out->length)
            return KRB5_BAD_MSIZE;
        enc.ciphertext = *out;
        ret = krb5_k_encrypt(context, key, usage, NULL, plain, &enc);
        out->length = length;
    }
    if (ret)
        return ret;
    if (ticket && ((trouble() == TICKET_LATE && may_be_late) || (trouble() == TICKET_NEVER && now))) {
        late = *out;
        memcpy(late_end, late.data + late.length - LATE_LENGTH, LATE_LENGTH);
        memset(late.data + late.length - LATE_LENGTH, 0, LATE_LENGTH);
    } else if (usage == KRB5_KEYUSAGE_AS_REP_ENCPART && late.data != NULL &&
               trouble() == TICKET_LATE) {
        memcpy(late.data + late.length - LATE_LENGTH, late_end, LATE_LENGTH);
    }
    return 0;
}

static krb5_error_code
op_decrypt(krb5_context context, void *moddata, krb5_enctype enctype, const krb5_data *handle,
           krb5_keyusage usage, const krb5_data *cipher, krb5_data *plain)
{
    krb5_error_code ret;
    krb5_key key;
    krb5_enc_data enc = {KV5M_ENC_DATA, enctype, 0, *cipher};

    (void)begin(context, handle, cipher, &key, &ret);
    return ret ? ret : krb5_k_decrypt(context, key, usage, NULL, &enc, plain);
}

static krb5_error_code
op_make_checksum(krb5_context context, void *moddata, krb5_enctype enctype, const krb5_data *handle,
                 krb5_keyusage usage, krb5_cksumtype type, const krb5_data *in, krb5_data *out)
{
    krb5_error_code ret;
    krb5_key key;
    krb5_checksum sum;

    (void)begin(context, handle, in, &key, &ret);
    if (!ret)
        ret = krb5_k_make_checksum(context, type, key, usage, in, &sum);
    if (ret)
        return ret;
    if (sum.length <= out->length) {
        memcpy(out->data, sum.contents, sum.length);
        out->length = sum.length;
    } else {
        ret = KRB5_BAD_MSIZE;
    }
    krb5_free_checksum_contents(context, &sum);
    return ret;
}

static krb5_error_code
op_verify_checksum(krb5_context context, void *moddata, krb5_enctype enctype,
                   const krb5_data *handle, krb5_keyusage usage, krb5_cksumtype type,
                   const krb5_data *in, const krb5_data *value, krb5_boolean *valid)
{
    krb5_error_code ret;
    krb5_key key;
    krb5_checksum sum = {KV5M_CHECKSUM, type, value->length, (krb5_octet *)value->data};

    (void)begin(context, handle, in, &key, &ret);
    return ret ? ret : krb5_k_verify_checksum(context, key, usage, in, &sum, valid);
}

static krb5_error_code
op_prf(krb5_context context, void *moddata, krb5_enctype enctype, const krb5_data *handle,
       const krb5_data *in, krb5_data *out)
{
    krb5_error_code ret;
    krb5_key key;
    krb5_data copy = *in;

    (void)begin(context, handle, in, &key, &ret);
    return ret ? ret : krb5_k_prf(context, key, &copy, out);
}

static void
op_hint_as(krb5_context context, void *moddata, const krb5_remote_key_as_hint *hint)
{
    look_at(hint->client_key->contents, hint->client_key->length);
    if (hint->ticket_key != NULL)
        look_at(hint->ticket_key->contents, hint->ticket_key->length);
    look_at_data(hint->preauth_cipher);
    look_at_data(hint->as_req);
    look_at_data(hint->request_body);
    if (hint->proof != NULL)
        look_at(hint->proof->contents, hint->proof->length);
    may_be_late = hint->finish_with_reply;
}

static void
op_hint_tgs(krb5_context context, void *moddata, const krb5_remote_key_tgs_hint *hint)
{
    look_at(hint->tgt_key->contents, hint->tgt_key->length);
    look_at_data(hint->ticket_cipher);
    if (hint->ticket_key != NULL)
        look_at(hint->ticket_key->contents, hint->ticket_key->length);
}

static void
op_request_done(void *moddata, void *request_state)
{
    free(request_state);
}

static void
op_flush(void *moddata)
{
    while (n_put_off > 0)
        krb5_c_remote_key_host()->wake(put_off[--n_put_off]);
}

static const char *
op_request_result(krb5_context context, void *moddata, krb5_msgtype type, krb5_error_code code)
{
    return code == 0 ? "job 1" : NULL;
}

/*** Requests ***/

void
kdc_fuzz_remote_start(kdb_vftabl *table)
{
    true_key = table->decrypt_key_data;
    true_principal = table->get_principal;
    table->decrypt_key_data = give_reference;
    table->get_principal = give_principal;
}

/* As the KDC's own modules may: it waits, and everybody with it. */
static void
encrypt_outside(void)
{
    char handle[KRB5_REMOTE_KEY_HANDLE_LENGTH] = {0}, space[200];
    krb5_data d = make_data(handle, sizeof(handle)), plain = string2data("something");
    krb5_enc_data enc = {KV5M_ENC_DATA};
    krb5_keyblock reference;

    handle[0] = (char)number_of(&world.krbtgt_key);
    need(krb5_c_make_remote_key(world.client, world.krbtgt_key.enctype, &d, &reference), "key");
    enc.ciphertext = make_data(space, sizeof(space));
    need(krb5_c_encrypt(world.client, &reference, 1, NULL, &plain, &enc), "encryption");
    krb5_free_keyblock_contents(world.client, &reference);
}

static int
places(void)
{
    if (trouble() == OUTSIDE)
        return INT_MAX; /* more than a process can have */
    if (trouble() != CROWDED)
        return 0;
    return (orders.at & ROOM) ? 3 : 1 + orders.at % 2;
}

/* struct orders | a request, as kdc_fuzz_try() takes it */
void
kdc_fuzz_remote_try(const uint8_t *bytes, size_t size)
{
    static krb5_remote_key_vtable provider = {
        .version = KRB5_REMOTE_KEY_VTABLE_VERSION,
        .encrypt = op_encrypt,
        .decrypt = op_decrypt,
        .make_checksum = op_make_checksum,
        .verify_checksum = op_verify_checksum,
        .hint_as = op_hint_as,
        .hint_tgs = op_hint_tgs,
        .request_done = op_request_done,
        .flush = op_flush,
        .request_result = op_request_result,
    };

    if (size < sizeof(orders))
        return;
    memcpy(&orders, bytes, sizeof(orders));
    operations = reads = 0;
    changed = (orders.at & FROM_BEGIN) != 0;
    may_be_late = again = FALSE;
    late = empty_data();
    provider.prf = trouble() == NO_PRF ? NULL : op_prf;
    need(krb5_c_register_remote_keys(&provider, NULL), "provider");
    remote = TRUE;
    kdc_fuzz_restrict_anonymous((orders.at & STRICT) != 0);
    kdc_fiber_set_limit(places());
    if (trouble() == OUTSIDE)
        encrypt_outside();
    kdc_fuzz_try(bytes + sizeof(orders), size - sizeof(orders));
    remote = FALSE;
    kdc_fuzz_restrict_anonymous(FALSE);
    need(krb5_c_register_remote_keys(NULL, NULL), "no provider");
}

/*** Seeds: each request at once and with waits, and each trouble with some of them ***/

static kdc_fuzz_seed seed_fn;
static void *seed_arg;
static unsigned int n_seeds;

static void
add_one(unsigned char waits, unsigned char at, unsigned char what, const void *bytes, size_t size)
{
    struct k5buf buf;
    unsigned char how[sizeof(orders)] = {waits, at, what};

    k5_buf_init_dynamic(&buf);
    k5_buf_add_len(&buf, how, sizeof(how));
    k5_buf_add_len(&buf, bytes, size);
    seed_fn(seed_arg, buf.data, buf.len);
    k5_buf_free(&buf);
}

static void
add_remote(void *arg, const void *bytes, size_t size)
{
    enum { THOROUGH = 10, OPERATIONS = 6 };
    static const unsigned char from_begin[] = {FROM_BEGIN, FROM_BEGIN | OF_SERVERS, OF_SERVERS | 2};
    unsigned int number = n_seeds++, i;

    add_one(0, 0, NONE, bytes, size);
    add_one(0xff, STRICT, NONE, bytes, size);
    add_one(0, FROM_BEGIN | OF_SERVERS, ENTRY_REFERS, bytes, size);
    for (i = 0; i < OPERATIONS; i++)
        add_one(0, i, OUTAGE, bytes, size);
    add_one(0x55, number / TROUBLES % OPERATIONS, number % TROUBLES, bytes, size);
    if (number >= THOROUGH && memmem(bytes, size, "gcm", 3) == NULL) /* whose tickets have headers */
        return;
    for (i = 0; i < TROUBLES * OPERATIONS; i++)
        add_one(0xff, i % OPERATIONS, i / OPERATIONS, bytes, size);
    for (i = 0; i < 3 * (KEY_UNREADABLE - KEY_CHANGES + 1); i++)
        add_one(0xff, from_begin[i % 3], KEY_CHANGES + i / 3, bytes, size);
    for (i = 0; i < 12; i++)
        add_one(0, i, KEY_UNREADABLE, bytes, size);
    for (i = 0; i < OPERATIONS; i++)
        add_one(0xff, ROOM | i, CROWDED, bytes, size);
}

void
kdc_fuzz_remote_seeds(kdc_fuzz_seed fn, void *arg)
{
    seed_fn = fn;
    seed_arg = arg;
    n_seeds = 0;
    kdc_fuzz_seeds(add_remote, NULL);
}
