-- If the old IDs were GENERATED ALWAYS AS IDENTITY (:always), refuse IDs that programs choose, with
-- the same error (428C9).  The other variables are those of in_one_go.sql, which runs this, as does
-- little_locking.sql.

\if :always
SELECT format('CREATE FUNCTION %I() RETURNS trigger LANGUAGE plpgsql AS %L', name, format($$
BEGIN
    IF TG_OP = 'UPDATE' OR NEW.%1$I IS NOT NULL THEN
        RAISE 'column "%%" can only be generated', %1$L USING ERRCODE = 'generated_always';
    END IF;
    NEW.%1$I := %2$s;
    RETURN NEW;
END
$$, :'column', :'default')),
    format('CREATE TRIGGER a_generated_always BEFORE INSERT OR UPDATE OF %I ON %s FOR EACH ROW EXECUTE FUNCTION %I()',
        :'column', :'table', name),
    format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT', :'table', :'column')
FROM (SELECT format('%s_%s_always', relname, :'column') FROM pg_class WHERE oid = :'table'::regclass) AS f (name) \gexec
\endif
