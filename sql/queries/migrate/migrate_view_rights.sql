-- The grants on a view, as statements that give them again to the one that replaces it.
-- Parameters: $1 text the view's quoted name · $2 text[] the columns that it will have. Locks: none. Index: catalogs.
SELECT format('GRANT %s ON %s TO %s%s', a.privilege_type, c.oid::regclass,
              CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END,
              CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' END)
FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = $1::text::regclass AND a.grantee <> c.relowner
UNION ALL
SELECT format('GRANT %s (%I) ON %s TO %s%s', a.privilege_type, t.attname, c.oid::regclass,
              CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END,
              CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' END)
FROM pg_class c JOIN pg_attribute t ON t.attrelid = c.oid AND t.attname = ANY ($2::text[]), aclexplode(t.attacl) a
WHERE c.oid = $1::text::regclass
