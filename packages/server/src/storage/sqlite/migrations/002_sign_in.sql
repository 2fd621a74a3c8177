-- Of the caller, as the proxy settings resolve it. Null: the service itself, or an entry of before.
ALTER TABLE audit_log ADD COLUMN address TEXT;

-- Addresses of people whose account was ended: only an invitation makes another one.
CREATE TABLE ended_operators (
  email_key TEXT NOT NULL PRIMARY KEY, -- SHA-256 of the address
  ended_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
