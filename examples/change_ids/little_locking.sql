-- Change the type of IDs with little locking: doc/coming-from.md says when, and for how long which
-- sessions wait.
--
-- Copy this file, write your names in place of account, id, entry and account_id, and paste the
-- statements into psql one at a time.  If one fails after two seconds because a long query blocks
-- it, repeat it.  In a new session, set lock_timeout again.

-- Step 1: new rows get new IDs.

SET lock_timeout = '2s';
ALTER TABLE account ADD COLUMN new_id scru64, ALTER COLUMN new_id SET DEFAULT scru64_generate();
ALTER TABLE entry ADD COLUMN new_account_id scru64;

CREATE FUNCTION entry_new_account_id() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.new_account_id := (SELECT new_id FROM account WHERE id = NEW.account_id);
    RETURN NEW;
END
$$;
CREATE TRIGGER entry_new_account_id BEFORE INSERT OR UPDATE ON entry
    FOR EACH ROW EXECUTE FUNCTION entry_new_account_id();

-- Step 2: old rows get new IDs, too.  First paste the page's block for your kind of ID, with
-- FROM account WHERE new_id IS NULL, and the block of the map.  The loops resume where they stopped.
-- If entry.id is no number, use ranges of another key.  The loops fire triggers for UPDATE, such as
-- those that set updated_at, unless you SET session_replication_role = replica during this step.

ALTER TABLE account_map ADD PRIMARY KEY (n);
ANALYZE account_map;

DO $$
BEGIN
    FOR i IN 0 .. (SELECT max(n) / 10000 FROM account_map) LOOP
        UPDATE account SET new_id = m.new_id
        FROM account_map AS m
        WHERE m.n BETWEEN i * 10000 AND i * 10000 + 9999 AND account.id = m.old_id
            AND account.new_id IS NULL;
        COMMIT;
    END LOOP;
END
$$;
VACUUM ANALYZE account;

DO $$
BEGIN
    FOR i IN 0 .. (SELECT max(id) / 10000 FROM entry) LOOP
        UPDATE entry SET new_account_id = account.new_id
        FROM account
        WHERE entry.id BETWEEN i * 10000 AND i * 10000 + 9999 AND account.id = entry.account_id
            AND entry.new_account_id IS NULL;
        COMMIT;
    END LOOP;
END
$$;
VACUUM ANALYZE entry;

-- Step 3: all rows have new IDs.  If VALIDATE fails, repeat the second loop, then VALIDATE.  If
-- account_id may be null, add OR account_id IS NULL to the CHECK of entry, and leave out SET NOT NULL.

ALTER TABLE account ADD CONSTRAINT new_id_filled CHECK (new_id IS NOT NULL) NOT VALID;
ALTER TABLE entry ADD CONSTRAINT new_account_id_filled CHECK (new_account_id IS NOT NULL) NOT VALID;
ALTER TABLE account VALIDATE CONSTRAINT new_id_filled;
ALTER TABLE entry VALIDATE CONSTRAINT new_account_id_filled;
ALTER TABLE account ALTER COLUMN new_id SET NOT NULL;
ALTER TABLE entry ALTER COLUMN new_account_id SET NOT NULL;
ALTER TABLE account DROP CONSTRAINT new_id_filled;
ALTER TABLE entry DROP CONSTRAINT new_account_id_filled;

-- Step 4: the indexes, and the foreign key, which has all that the old one has, and its name; the
-- old one has another name until step 5.  If an index fails, drop it before you try again.

SET lock_timeout = 0;
CREATE UNIQUE INDEX CONCURRENTLY account_new_id ON account (new_id);
CREATE INDEX CONCURRENTLY entry_new_account_id ON entry (new_account_id);
SET lock_timeout = '2s';
SELECT format('ALTER TABLE entry RENAME CONSTRAINT %1$I TO old_%2$s;
               ALTER TABLE entry ADD CONSTRAINT %1$I %3$s NOT VALID', conname, oid,
           replace(replace(replace(def, '(account_id)', '(new_account_id)'), '(id)', '(new_id)'), ' NOT VALID', ''))
FROM pg_constraint, pg_get_constraintdef(oid) AS def
WHERE conrelid = 'entry'::regclass AND confrelid = 'account'::regclass
    AND def LIKE 'FOREIGN KEY (account_id)%' \gexec
SELECT format('ALTER TABLE entry VALIDATE CONSTRAINT %I', conname) FROM pg_constraint
WHERE conrelid = 'entry'::regclass AND pg_get_constraintdef(oid) LIKE 'FOREIGN KEY (new_account_id)%' \gexec

-- Step 5: the new columns take the names of the old ones.  From here on, programs must know the
-- new IDs.  If a statement fails, ROLLBACK, and repeat the whole transaction.

\set ON_ERROR_ROLLBACK off
BEGIN;
LOCK TABLE account, entry IN ACCESS EXCLUSIVE MODE;
DROP TRIGGER entry_new_account_id ON entry;
DROP FUNCTION entry_new_account_id();
ALTER TABLE entry DROP COLUMN account_id;
ALTER TABLE entry RENAME COLUMN new_account_id TO account_id;
ALTER INDEX entry_new_account_id RENAME TO entry_account_id_idx;
ALTER TABLE account DROP COLUMN id;
ALTER TABLE account RENAME COLUMN new_id TO id;
ALTER TABLE account ADD CONSTRAINT account_pkey PRIMARY KEY USING INDEX account_new_id;
COMMIT;
RESET lock_timeout;
