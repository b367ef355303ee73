/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/kdb-module/renaming.h"

#include <com_err.h>
#include <errno.h>
#include <kadm5/admin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kdc-plugin/kdb-module/change.h"
#include "kdc-plugin/kdb-module/server_keys.h"
#include "kdc-plugin/kdb-module/wrapped.h"

/* The other entry's name and the word, in an attribute: "WORD NAME". */
typedef struct mark {
    char *text;
    const char *name;
    size_t word_length;
} mark;

static void mark_free(krb5_context context, mark *m)
{
    krb5_dbe_free_string(context, m->text);
    m->text = NULL;
}

/* False if there is none. Most entries have no attributes at all. */
static int mark_of(krb5_context context, krb5_db_entry *entry, const char *attribute, mark *m)
{
    const krb5_tl_data *tl;
    const char *space;

    m->text = NULL;
    for (tl = entry->tl_data; tl != NULL && tl->tl_data_type != KRB5_TL_STRING_ATTRS;)
        tl = tl->tl_data_next;
    if (tl == NULL || krb5_dbe_get_string(context, entry, attribute, &m->text) != 0 ||
        m->text == NULL)
        return 0;
    space = strchr(m->text, ' ');
    m->word_length = space == NULL ? strlen(m->text) : (size_t)(space - m->text);
    m->name = space == NULL ? "" : space + 1;
    return 1;
}

static int same_word(const mark *a, const mark *b)
{
    return a->word_length == b->word_length && memcmp(a->text, b->text, a->word_length) == 0;
}

static int same_mark(krb5_context context, krb5_db_entry *a, krb5_db_entry *b,
                     const char *attribute)
{
    mark of_a, of_b;
    int in_a = mark_of(context, a, attribute, &of_a), in_b = mark_of(context, b, attribute, &of_b);
    int same = in_a == in_b && (!in_a || strcmp(of_a.text, of_b.text) == 0);

    mark_free(context, &of_a);
    mark_free(context, &of_b);
    return same;
}

/* The entry that the mark names; NULL if there is none. */
static krb5_db_entry *get_named(krb5_context context, const mark *m)
{
    krb5_principal principal = NULL;
    krb5_db_entry *entry = NULL;

    if (krb5_parse_name(context, m->name, &principal) != 0 ||
        wrapped()->get_principal(context, principal, 0, &entry) != 0) {
        krb5_clear_error_message(context);
        entry = NULL;
    }
    krb5_free_principal(context, principal);
    return entry;
}

/* The entry that the mark names, if it has the other attribute with the same word. */
static krb5_db_entry *get_other(krb5_context context, const mark *m, const char *attribute)
{
    krb5_db_entry *other = get_named(context, m);
    mark of_other = {NULL, NULL, 0};

    if (other != NULL && (!mark_of(context, other, attribute, &of_other) ||
                          !same_word(m, &of_other))) {
        krb5_db_free_principal(context, other);
        other = NULL;
    }
    mark_free(context, &of_other);
    return other;
}

int renaming_hides(krb5_context context, krb5_db_entry *entry)
{
    krb5_db_entry *old;
    mark m;
    int hides;

    if (mark_of(context, entry, RENAMED_TO_ATTRIBUTE, &m)) {
        mark_free(context, &m);
        return 1;
    }
    if (!mark_of(context, entry, RENAMED_FROM_ATTRIBUTE, &m))
        return 0;
    old = get_other(context, &m, RENAMED_TO_ATTRIBUTE);
    hides = old == NULL;
    krb5_db_free_principal(context, old);
    mark_free(context, &m);
    return hides;
}

krb5_error_code renaming_guard(module_state *state, krb5_db_entry *entry, krb5_db_entry *stored)
{
    static const krb5_db_entry nothing;
    krb5_db_entry before = nothing;

    if (entry->mask & KADM5_LOAD)
        return 0;
    if (stored != NULL && !renaming_hides(state->context, stored))
        before = *stored;
    if (same_mark(state->context, entry, &before, RENAMED_FROM_ATTRIBUTE) &&
        same_mark(state->context, entry, &before, RENAMED_TO_ATTRIBUTE))
        return 0;
    krb5_set_error_message(state->context, KADM5_PROTECT_PRINCIPAL,
                           "the string attributes " RENAMED_FROM_ATTRIBUTE " and "
                           RENAMED_TO_ATTRIBUTE " are the mpc module's own: they say which entry "
                           "is the principal while it is renamed");
    return KADM5_PROTECT_PRINCIPAL;
}

int renaming_marked(krb5_context context, krb5_db_entry *entry, const char *attribute,
                    const char *word)
{
    mark m;
    int is = mark_of(context, entry, attribute, &m) && m.word_length == strlen(word) &&
             memcmp(m.text, word, m.word_length) == 0;

    mark_free(context, &m);
    return is;
}

/* Begins a change of the entry, if it has the attribute with the word; else *entry is NULL, and nothing has
 * begun. */
static krb5_error_code begin_marked(module_state *state, krb5_const_principal principal,
                                    const char *attribute, const char *word, change *c,
                                    krb5_db_entry **entry)
{
    krb5_error_code ret = change_begin(state, principal, c);

    *entry = NULL;
    if (ret)
        return ret;
    ret = wrapped()->get_principal(state->context, principal, 0, entry);
    if (ret == 0 && renaming_marked(state->context, *entry, attribute, word))
        return 0;
    change_abandon(c);
    if (ret == 0)
        krb5_db_free_principal(state->context, *entry);
    *entry = NULL;
    if (ret != KRB5_KDB_NOENTRY)
        return ret;
    krb5_clear_error_message(state->context);
    return 0;
}

krb5_error_code renaming_unmark(module_state *state, krb5_const_principal target, const char *word)
{
    change c;
    krb5_db_entry *entry;
    krb5_error_code ret = begin_marked(state, target, RENAMED_FROM_ATTRIBUTE, word, &c, &entry);

    if (ret || entry == NULL)
        return ret;
    ret = krb5_dbe_set_string(state->context, entry, RENAMED_FROM_ATTRIBUTE, NULL);
    if (ret) {
        change_abandon(&c);
    } else {
        entry->mask = KADM5_TL_DATA;
        ret = change_put(&c, entry, NULL);
    }
    krb5_db_free_principal(state->context, entry);
    return ret;
}

krb5_error_code renaming_delete(module_state *state, krb5_const_principal principal,
                                const char *attribute, const char *word)
{
    change c;
    krb5_db_entry *entry;
    krb5_error_code ret = begin_marked(state, principal, attribute, word, &c, &entry);

    if (ret || entry == NULL)
        return ret;
    krb5_db_free_principal(state->context, entry);
    return change_delete(&c);
}

/* The old entry, whose keys nobody uses any more. */
static krb5_error_code delete_old(module_state *state, krb5_db_entry *old, const char *word)
{
    handle_list handles = {NULL, 0};
    krb5_error_code ret = renaming_delete(state, old->princ, RENAMED_TO_ATTRIBUTE, word);

    if (ret == 0 && handles_of_all(old, &handles) == 0)
        server_keys_delete(state, old->princ, &handles, NULL);
    handle_list_free(&handles);
    return ret;
}

/* Ends what the mark of `stored` says; `other` has the other one. */
static krb5_error_code settle(module_state *state, krb5_db_entry *stored, krb5_db_entry *other,
                              int stored_is_new, mark *m)
{
    krb5_error_code ret;

    m->text[m->word_length] = '\0'; /* the name has served */
    if (!stored_is_new)
        return renaming_unmark(state, other->princ, m->text);
    ret = renaming_unmark(state, stored->princ, m->text);
    if (ret == 0)
        ret = krb5_dbe_set_string(state->context, stored, RENAMED_FROM_ATTRIBUTE, NULL);
    return ret ? ret : delete_old(state, other, m->text);
}

krb5_error_code renaming_settle(module_state *state, krb5_db_entry *stored)
{
    krb5_context context = state->context;
    krb5_db_entry *other = NULL;
    krb5_error_code ret = 0;
    int is_new = 0;
    mark m;

    if (mark_of(context, stored, RENAMED_TO_ATTRIBUTE, &m)) {
        other = get_other(context, &m, RENAMED_FROM_ATTRIBUTE);
    } else if (mark_of(context, stored, RENAMED_FROM_ATTRIBUTE, &m)) {
        is_new = 1;
        other = get_other(context, &m, RENAMED_TO_ATTRIBUTE);
    }
    if (other != NULL)
        ret = settle(state, stored, other, is_new, &m);
    krb5_db_free_principal(context, other);
    mark_free(context, &m);
    return ret;
}
