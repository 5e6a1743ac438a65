-- Word search over messages (spec 70 §3 "Full text").
--
-- External content: the index keeps no second copy of the text but reads it back through the
-- view. View and triggers therefore share one projection that depends on the row alone; an index
-- whose 'delete' does not repeat exactly what was inserted is a corrupt one. Tool results are
-- machine output: only their first 8,192 characters are indexed.
--
-- A substring (trigram) index goes beside this one, over a view of its own that leaves out tool
-- rows and the sessions of cron and sub-agents.

CREATE VIEW IF NOT EXISTS messages_fts_src AS
    SELECT id,
           CASE WHEN role = 'tool' THEN substr(content, 1, 8192) ELSE content END AS content,
           tool_name,
           tool_calls
    FROM messages;

CREATE VIRTUAL TABLE IF NOT EXISTS messages_fts USING fts5 (
    content,
    tool_name,
    tool_calls,
    content = 'messages_fts_src',
    content_rowid = 'id',
    tokenize = 'unicode61'
);

-- Every commit adds a segment. Merging eight of a size at a time instead of four costs a writer
-- less, and a search next to nothing.
INSERT INTO messages_fts (messages_fts, rank) VALUES ('automerge', 8);

CREATE TRIGGER IF NOT EXISTS messages_fts_insert AFTER INSERT ON messages BEGIN
    INSERT INTO messages_fts (rowid, content, tool_name, tool_calls)
    VALUES (
        new.id,
        CASE WHEN new.role = 'tool' THEN substr(new.content, 1, 8192) ELSE new.content END,
        new.tool_name,
        new.tool_calls
    );
END;

CREATE TRIGGER IF NOT EXISTS messages_fts_delete AFTER DELETE ON messages BEGIN
    INSERT INTO messages_fts (messages_fts, rowid, content, tool_name, tool_calls)
    VALUES (
        'delete',
        old.id,
        CASE WHEN old.role = 'tool' THEN substr(old.content, 1, 8192) ELSE old.content END,
        old.tool_name,
        old.tool_calls
    );
END;

-- Named columns: compaction and rewind flip `active` and `compacted` of whole transcripts, and
-- must not touch the index.
CREATE TRIGGER IF NOT EXISTS messages_fts_update
AFTER UPDATE OF role, content, tool_name, tool_calls ON messages BEGIN
    INSERT INTO messages_fts (messages_fts, rowid, content, tool_name, tool_calls)
    VALUES (
        'delete',
        old.id,
        CASE WHEN old.role = 'tool' THEN substr(old.content, 1, 8192) ELSE old.content END,
        old.tool_name,
        old.tool_calls
    );
    INSERT INTO messages_fts (rowid, content, tool_name, tool_calls)
    VALUES (
        new.id,
        CASE WHEN new.role = 'tool' THEN substr(new.content, 1, 8192) ELSE new.content END,
        new.tool_name,
        new.tool_calls
    );
END;
