"""The tables of memory_env.store.drafts."""

DRAFTS_SCHEMA = """
CREATE TABLE drafts (
    writer TEXT NOT NULL, position INTEGER NOT NULL, completion TEXT NOT NULL, hit_length_limit INTEGER NOT NULL,
    refused TEXT NOT NULL, PRIMARY KEY (writer, position)) WITHOUT ROWID;
CREATE TABLE unwritten (position INTEGER PRIMARY KEY, reason TEXT NOT NULL);
CREATE TRIGGER unwritten_forgotten AFTER DELETE ON segments BEGIN DELETE FROM unwritten WHERE position = old.position; END;
CREATE TRIGGER drafts_forgotten AFTER DELETE ON messages BEGIN
    DELETE FROM drafts; UPDATE unwritten SET reason = '' WHERE position = old.position; END;
CREATE TRIGGER drafts_outdated AFTER UPDATE OF content ON messages BEGIN DELETE FROM drafts; END;
"""
"""The migration's script (memory_env.store.schema). Any output may quote a message that is forgotten or edited later."""
