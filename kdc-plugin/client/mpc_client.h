/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way from C (the remote-key provider, the KDB module) to the three MPC servers.
 *
 * Two halves. The job client keeps one stream to each server, sends every job to all three and
 * combines their three shares of the answer; it has the role kdc. The admin functions put keys
 * under new handles on the servers and take them away; they have the role admin and keep nothing
 * between calls.
 *
 * No C++ exception leaves these functions. Nothing here may run before a fork() whose child uses it
 * too: gRPC's threads do not survive a fork. Texts are for logs and never hold a secret.
 */
#ifndef KDC_PLUGIN_CLIENT_MPC_CLIENT_H_
#define KDC_PLUGIN_CLIENT_MPC_CLIENT_H_

#include <stddef.h>
#include <stdint.h>

#include "kdc-plugin/metrics/kdc_metrics.h"

#ifdef __cplusplus
#define MPC_NOEXCEPT noexcept
extern "C" {
#else
#define MPC_NOEXCEPT
#endif

#define MPC_SERVERS 3
#define MPC_MAX_TRIPLES 16
#define MPC_HANDLE_BYTES 16
#define MPC_NONCE_BYTES 12
#define MPC_TAG_BYTES 16
#define MPC_ZERO_BYTES 16        /* known plaintext in front of every message */
#define MPC_MAX_HEADER_BYTES 255 /* its length is one byte of the message */
/* The servers make a checksum of an AS-REQ of so many bytes, under a key of GCM or of 17 to 20. */
#define MPC_MAX_REQUEST_BYTES 65536
#define MPC_MAX_CTS_REQUEST_BYTES 4096
#define MPC_MAX_PROOF_BYTES 32768 /* of either part of a proof by certificate */
#define MPC_MAX_MAC_BYTES 28     /* a checksum of the GCM enctypes: nonce and tag */

typedef struct mpc_bytes {
    const uint8_t *data;
    size_t size;
} mpc_bytes;

/* Takes one line without a newline; called from any thread. `priority` is syslog's. */
typedef void (*mpc_log_function)(int priority, const char *text);

/* Where the servers are, and who is asking. */
typedef struct mpc_options {
    const char *realm;
    /* "host:port": the three of the first triple in any order, then those of the next. Triples hold
     * the same keys, and each serves alone. */
    const char *servers[MPC_MAX_TRIPLES * MPC_SERVERS];
    size_t triples;                   /* 0: one */
    const char *ca_file;              /* PEM: the realm's certificate authority */
    const char *certificate_file;     /* PEM, of the role that the half has */
    const char *key_file;
    /* Of the first triple, and one more for each that follows. Negative: any, but the same at the
     * three servers. */
    int64_t cluster;
    /* The job client's: */
    uint32_t timeout_ms;              /* for a job, from submission to the last answer */
    mpc_log_function log;             /* may be NULL */
    int names_realm; /* its lines begin with the realm: the process serves several */
    kdc_metrics *metrics; /* where it counts; NULL: nowhere */
} mpc_options;

/* Frees a text that a function of this header returned. */
void mpc_text_free(char *text) MPC_NOEXCEPT;

/*
 * Takes core dumps, ptrace and gRPC's message traces away from this process, which is about to hold
 * session keys, keystream and passwords. Before gRPC starts and before there is a second thread;
 * again does no harm. Returns a warning for the administrator, or NULL; for mpc_text_free.
 */
char *mpc_harden_process(int allow_core_dumps) MPC_NOEXCEPT;

/* ---- Jobs ---- */

typedef struct mpc_client mpc_client;

/*
 * Reads the certificates and begins to connect; does not wait for the servers. On error returns
 * NULL and sets *error to a text for mpc_text_free.
 */
mpc_client *mpc_client_start(const mpc_options *options, char **error) MPC_NOEXCEPT;

/* Fails what is pending (MPC_UNAVAILABLE), ends the streams and frees the client. Not from a
 * callback. */
void mpc_client_stop(mpc_client *client) MPC_NOEXCEPT;

/* Those of its options. */
kdc_metrics *mpc_client_metrics(const mpc_client *client) MPC_NOEXCEPT;

/* Numbers of proto/kdc_key.proto. */
enum mpc_operation {
    MPC_LOGIN = 1,
    MPC_OPEN_PREAUTH = 2,
    MPC_SEAL_GRANTED = 3,
    MPC_OPEN_TICKET = 4,
    MPC_REISSUE_TICKET = 5,
    MPC_MAKE_CHECKSUM = 6,
    MPC_VERIFY_CHECKSUM = 7
};

/* What the three servers said together. */
enum mpc_verdict {
    MPC_OK = 0,
    MPC_BAD_TAG = 1,    /* all three: wrong key or altered message */
    MPC_CLOCK_SKEW = 2, /* all three */
    MPC_REPLAY = 3,     /* all three */
    MPC_REFUSED = 4,    /* all three: not in the table, no grant, origin too old */
    MPC_UNAVAILABLE = 5, /* anything else; says nothing about the message or the key */
    MPC_UNPROVED = 6     /* likewise; but if its source were proved the job might be computed */
};

/*
 * The parts of a job. `enctype` is that of the key; it decides what the servers are given and what
 * they answer:
 *
 *              aes128-gcm, aes256-gcm                  17, 18, 19, 20
 *   open       keystream of the plaintext              the plaintext
 *   seal       nonce, header and keystream; then the   the whole message; needs the plaintext
 *              tag, by mpc_client_request_tag()
 *   make_mac   nonce | tag, 28 bytes                   HMAC of 12, 12, 16, 24 bytes
 */
typedef struct mpc_open {
    const uint8_t *handle;
    uint32_t usage;
    mpc_bytes message;
    int32_t enctype;
} mpc_open;

typedef struct mpc_seal {
    const uint8_t *handle;
    uint32_t usage;
    uint32_t max_plaintext; /* of 17 to 20: the plaintext's length */
    int32_t enctype;
    mpc_bytes plaintext; /* of 17 to 20; each server gets two of its three components */
} mpc_seal;

typedef struct mpc_make_mac {
    const uint8_t *handle;
    uint32_t usage;
    mpc_bytes data;
    int32_t enctype;
} mpc_make_mac;

typedef struct mpc_verify_mac {
    const uint8_t *handle;
    uint32_t usage;
    mpc_bytes data;
    mpc_bytes checksum;
} mpc_verify_mac;

/* At most one part of each kind except seals, as in the closed table. */
typedef struct mpc_job {
    enum mpc_operation operation;
    const uint8_t *client; /* handle, or NULL */
    uint64_t grant;        /* id of the job that verified the pre-authentication, or 0 */
    const mpc_open *open;
    const mpc_seal *seals;
    size_t seal_count; /* 0 to 2 */
    const mpc_make_mac *make_mac;
    const mpc_verify_mac *verify_mac;
    uint64_t source;   /* where the request came from, hashed; 0 if that is not known */
    int source_proved; /* it did not come in a mere datagram */
    /* Of MPC_LOGIN that seals a ticket for who was proved by a certificate (RFC 4556): the value of
     * PA-PK-AS-REQ, and the KDC-REQ-BODY. The servers verify it if they want it for this client. */
    mpc_bytes pa_pk_as_req, request_body;
    uint64_t request; /* random: by it the servers' logs name the client's request; 0: they do not */
} mpc_job;

#define MPC_MAX_SEALS 2

/* Either nonce, header and keystream (GCM), or message (17 to 20). */
typedef struct mpc_sealed {
    uint8_t nonce[MPC_NONCE_BYTES];
    mpc_bytes header;
    mpc_bytes keystream; /* MPC_ZERO_BYTES + max_plaintext */
    mpc_bytes message;
} mpc_sealed;

/* Why MPC_UNAVAILABLE, if a repetition may succeed. */
enum mpc_outage {
  MPC_NO_OUTAGE = 0,
  MPC_OUTAGE = 1,       /* servers or links fail */
  MPC_WRONG_ANSWERS = 2 /* the servers contradict each other: not at this triple */
};

/* Everything is set only when the verdict is MPC_OK, except `detail`, `outage` and `over_quota`. */
typedef struct mpc_result {
    enum mpc_verdict verdict;
    uint64_t id; /* of the job */
    const char *detail;
    mpc_bytes open_keystream; /* GCM: as long as the opened plaintext */
    mpc_bytes open_plaintext; /* 17 to 20 */
    mpc_sealed seals[MPC_MAX_SEALS];
    size_t seal_count;
    uint8_t mac[MPC_MAX_MAC_BYTES];
    size_t mac_size;
    enum mpc_outage outage;
    int over_quota; /* MPC_UNAVAILABLE, and nothing is out of order: a quota of a server is used up */
} mpc_result;

/* Wipes and frees. NULL is allowed. */
void mpc_result_free(mpc_result *result) MPC_NOEXCEPT;

/*
 * Called exactly once per job, from a thread of the client or inside mpc_client_submit; the callee
 * owns `result`. It must not block.
 */
typedef void (*mpc_job_done)(void *arg, mpc_result *result);

/*
 * Copies the job and sends it to the three servers of a triple: the same bytes, except that each
 * gets its own share of a plaintext, drawn anew for each job. One that names a grant goes to the
 * triple that gave it, any other to a healthy one; what was lost in an outage is sent once more, if
 * it names no grant. When no triple is healthy it waits for one for a few seconds (triples.h).
 */
void mpc_client_submit(mpc_client *client, const mpc_job *job, mpc_job_done done,
                       void *arg) MPC_NOEXCEPT;

/* As mpc_job_done. `tag` has MPC_TAG_BYTES and is valid during the call, NULL unless MPC_OK. */
typedef void (*mpc_tag_done)(void *arg, enum mpc_verdict verdict, const uint8_t *tag,
                             const char *detail);

/*
 * Asks for the tag of seal number `seal` of job `id`, once per seal. `ciphertext` is that of
 * (16 zero bytes | plaintext); `request` as in the job.
 */
void mpc_client_request_tag(mpc_client *client, uint64_t id, uint32_t seal, mpc_bytes ciphertext,
                            uint64_t request, mpc_tag_done done, void *arg) MPC_NOEXCEPT;

/*
 * What the calling thread submits and asks for between the two leaves at the end, in one message for
 * each server. May be nested. For a thread that has many jobs at once.
 */
void mpc_client_begin_burst(mpc_client *client) MPC_NOEXCEPT;
void mpc_client_end_burst(mpc_client *client) MPC_NOEXCEPT;

/* ---- Administration ---- */

/* Numbers of proto/admin.proto. */
enum mpc_key_class { MPC_CLASS_USER = 1, MPC_CLASS_TGS = 2, MPC_CLASS_SERVICE = 3 };
enum mpc_gate {
    MPC_GATE_AS_BEFORE = 0, /* that of the principal's present keys; timestamp if there are none */
    MPC_GATE_TIMESTAMP = 1,
    MPC_GATE_KDC_TRUSTED = 2,
    MPC_GATE_NONE = 3,
    MPC_GATE_PKINIT = 4,
    MPC_GATE_TIMESTAMP_OR_PKINIT = 5
};

typedef struct mpc_new_key {
    uint8_t handle[MPC_HANDLE_BYTES];
    const char *principal; /* unparsed, with realm */
    uint32_t kvno;
    int32_t enctype;
    int32_t salt_type;
    mpc_bytes salt;
    enum mpc_key_class key_class;
    enum mpc_gate gate;
    mpc_bytes key; /* size 0: the servers draw the key jointly */
} mpc_new_key;

/* Whether the servers hold keys of an encryption type (mpc-server/key/enctype.h). */
int mpc_admin_holds_enctype(int32_t enctype) MPC_NOEXCEPT;

/*
 * Puts all keys on all three servers, or none. Blocks. Returns 0, or -1 with *error for
 * mpc_text_free.
 */
int mpc_admin_store_keys(const mpc_options *options, const mpc_new_key *keys, size_t count,
                         char **error) MPC_NOEXCEPT;

/* Has the three servers retire keys of a principal: they stay usable for the servers' grace time
 * where another database still names them. Those of `kept` stay after it too, to be compared and
 * for nothing else. Unknown handles are no error. Returns as above. */
int mpc_admin_delete_keys(const mpc_options *options, const char *principal,
                          const uint8_t (*handles)[MPC_HANDLE_BYTES], size_t count,
                          const uint8_t (*kept)[MPC_HANDLE_BYTES], size_t kept_count,
                          char **error) MPC_NOEXCEPT;

/*
 * Has the three servers find out which of a principal's old keys are equal to one of `keys` (whose
 * handles are not used), and sets equal[i] to 1 or 0 for old[i]. The servers learn nothing else,
 * and keep none of `keys`. A key that none of the three has any more is not equal. If one cannot
 * answer, or they say different things, that is an error. Returns as above.
 */
int mpc_admin_compare_keys(const mpc_options *options, const mpc_new_key *keys, size_t count,
                           const uint8_t (*old)[MPC_HANDLE_BYTES], size_t old_count, uint8_t *equal,
                           char **error) MPC_NOEXCEPT;

/* A key that becomes another principal's, under another handle. */
typedef struct mpc_renamed_key {
    uint8_t from[MPC_HANDLE_BYTES];
    uint8_t to[MPC_HANDLE_BYTES]; /* fresh */
    int32_t salt_type;
    mpc_bytes salt;
    int for_history; /* `to` is kept for the password history and does nothing else */
    int unknown;     /* out, with for_history: the servers have `from` no more, and not `to` */
} mpc_renamed_key;

/*
 * Gives the three servers copies of keys of `old_name` as keys of `new_name`: of all, or of none.
 * The old ones stay. Returns as above; the text says whether the servers refuse such a name.
 */
int mpc_admin_rename_keys(const mpc_options *options, const char *old_name, const char *new_name,
                          mpc_renamed_key *keys, size_t count, char **error) MPC_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* KDC_PLUGIN_CLIENT_MPC_CLIENT_H_ */
