-- SPDX-License-Identifier: Apache-2.0
-- The tables of store/record_format.h: a table of bytes in the order of its keys each.
-- doc/share_store_format.md describes them.
--
-- Values are sealed, so compressing them is in vain (EXTERNAL), and a record of 2 KB would be moved
-- out of line, which makes each read two (toast_tuple_target).
CREATE TABLE mpckdc.meta (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE mpckdc.keys (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE mpckdc.staged (key bytea PRIMARY KEY, value bytea NOT NULL)
  WITH (toast_tuple_target = 8160);
CREATE TABLE mpckdc.txns (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE mpckdc.replay (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE mpckdc.records (key bytea PRIMARY KEY, value bytea NOT NULL)
  WITH (toast_tuple_target = 8160);
CREATE TABLE mpckdc.retired (key bytea PRIMARY KEY, value bytea NOT NULL);

ALTER TABLE mpckdc.staged ALTER COLUMN value SET STORAGE EXTERNAL;
ALTER TABLE mpckdc.records ALTER COLUMN value SET STORAGE EXTERNAL;

-- How many rows each table has, for those that one transaction changes at a time: counting ten
-- million takes seconds.
CREATE TABLE mpckdc.counts (name text PRIMARY KEY, n bigint NOT NULL);
INSERT INTO mpckdc.counts VALUES
  ('meta', 0), ('keys', 0), ('staged', 0), ('txns', 0), ('records', 0),
  ('retired', 0);

-- Another number after each change of keys or records (KvTxn::KeyVersion).
CREATE TABLE mpckdc.version (n bigint NOT NULL);
INSERT INTO mpckdc.version VALUES (1);

-- For each connection that writes: its transactions so far. Who lost the answer to a COMMIT finds
-- here whether it happened; who finds less than what was committed sees that the database was put
-- back.
CREATE TABLE mpckdc.writers (id bytea PRIMARY KEY, seq bigint NOT NULL, at timestamptz NOT NULL)
  WITH (fillfactor = 50);

-- The last statement before COMMIT. Returns a position in the log that only a database which has
-- the transactions before this one has reached.
CREATE FUNCTION mpckdc.mark(who bytea, before bigint) RETURNS text LANGUAGE plpgsql AS $mark$
BEGIN
  UPDATE mpckdc.writers SET seq = before + 1, at = now() WHERE id = who AND seq = before;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'transaction % of this writer is not the next', before + 1
      USING ERRCODE = 'MK001';
  END IF;
  RETURN pg_current_wal_insert_lsn()::text;
END
$mark$;
