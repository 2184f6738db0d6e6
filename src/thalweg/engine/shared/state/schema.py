"""The tables of the book, and the number of the data directory's format.

What is promised about formats is in docs/upgrading.md. A change here, in the encoding of plans, in
names or in hashing is a new format, with a migration in `upgrade`; but for a new table, whose
absence a data directory of the format can bear.
"""

from __future__ import annotations

FORMAT = 6
# Of these, nothing has changed: there is more in a directory of this format, which earlier versions
# would pass over. They are of this format as soon as they are opened.
CONTAINED = (5,)
OF_STATE = 5  # the last one in which what operators remember has changed: it travels between nodes

META = "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)"

TABLES = """
-- what stands
CREATE TABLE IF NOT EXISTS definitions (
    name TEXT PRIMARY KEY, kind TEXT NOT NULL, text TEXT NOT NULL, place INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS definitions_by_place ON definitions (place);
CREATE TABLE IF NOT EXISTS folders (name TEXT PRIMARY KEY, folder TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS owners (name TEXT PRIMARY KEY, owner TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS added_columns (
    stream TEXT NOT NULL, text TEXT NOT NULL, place INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS parked (
    name TEXT PRIMARY KEY, tick INTEGER NOT NULL, error TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS shapes (name TEXT PRIMARY KEY, packed BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sinks (
    query TEXT NOT NULL, name TEXT NOT NULL, target TEXT NOT NULL, folder TEXT, error TEXT,
    PRIMARY KEY (query, name));
CREATE TABLE IF NOT EXISTS sink_options (
    query TEXT NOT NULL, name TEXT NOT NULL, packed BLOB NOT NULL,
    PRIMARY KEY (query, name)) WITHOUT ROWID;

-- what runs
CREATE TABLE IF NOT EXISTS queries (
    name TEXT PRIMARY KEY, run INTEGER NOT NULL, epoch INTEGER NOT NULL, started INTEGER,
    horizons BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS running_groups (
    name TEXT PRIMARY KEY, packed BLOB NOT NULL, ended INTEGER);
CREATE TABLE IF NOT EXISTS memberships (
    query TEXT NOT NULL, since INTEGER NOT NULL, group_name TEXT NOT NULL,
    PRIMARY KEY (query, since)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tolerance_classes (
    flow TEXT NOT NULL, class TEXT NOT NULL, horizon INTEGER NOT NULL, since INTEGER NOT NULL,
    PRIMARY KEY (flow, class)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS lineages (query TEXT PRIMARY KEY, packed BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS ended_versions (
    query TEXT NOT NULL, run INTEGER NOT NULL, last_tick INTEGER NOT NULL, packed BLOB NOT NULL,
    PRIMARY KEY (query, run)) WITHOUT ROWID;

-- what came in
CREATE TABLE IF NOT EXISTS partitions (
    stream TEXT NOT NULL, partition INTEGER NOT NULL,
    newest INTEGER NOT NULL, cut INTEGER NOT NULL, position INTEGER NOT NULL,
    PRIMARY KEY (stream, partition)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS landed (
    id INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL, partition INTEGER NOT NULL,
    newest INTEGER NOT NULL, rows INTEGER NOT NULL,
    file TEXT, start INTEGER NOT NULL, size INTEGER NOT NULL, floor INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS shifted (
    landed INTEGER PRIMARY KEY, stream TEXT NOT NULL, shift INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS landed_content (
    landed INTEGER PRIMARY KEY, stream TEXT NOT NULL, content BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS divided (
    landed INTEGER NOT NULL, stream TEXT NOT NULL, name TEXT NOT NULL,
    file TEXT NOT NULL, start INTEGER NOT NULL, size INTEGER NOT NULL,
    PRIMARY KEY (landed, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batches (
    stream TEXT NOT NULL, batch TEXT NOT NULL, partition INTEGER NOT NULL,
    landed INTEGER NOT NULL, newest INTEGER NOT NULL, PRIMARY KEY (stream, batch)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS batches_by_age ON batches (stream, partition, landed);
CREATE TABLE IF NOT EXISTS resume_points (
    stream TEXT NOT NULL, partition INTEGER NOT NULL, value BLOB NOT NULL,
    PRIMARY KEY (stream, partition)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS watched (
    stream TEXT NOT NULL, path TEXT NOT NULL, size INTEGER NOT NULL, batch INTEGER NOT NULL,
    PRIMARY KEY (stream, path)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS watched_upto (
    stream TEXT PRIMARY KEY, batch INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS floors (
    stream TEXT PRIMARY KEY, complete_from INTEGER NOT NULL, late_below INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS set_aside (
    stream TEXT NOT NULL, kind TEXT NOT NULL, rows INTEGER NOT NULL, length INTEGER NOT NULL,
    PRIMARY KEY (stream, kind)) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS pieces (
    file TEXT NOT NULL, start INTEGER NOT NULL, name TEXT NOT NULL,
    PRIMARY KEY (file, start)) WITHOUT ROWID;

-- what is kept
CREATE TABLE IF NOT EXISTS kept_columns (
    stream TEXT NOT NULL, place INTEGER NOT NULL, since INTEGER NOT NULL,
    PRIMARY KEY (stream, place));
CREATE TABLE IF NOT EXISTS relations (
    stream TEXT PRIMARY KEY, reduced INTEGER NOT NULL, reported INTEGER NOT NULL,
    rows_left INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS stems (
    stream TEXT NOT NULL, place INTEGER NOT NULL, keys BLOB NOT NULL, PRIMARY KEY (stream, place));
CREATE TABLE IF NOT EXISTS kept_joins (
    place TEXT PRIMARY KEY, packed BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS segments (
    bundle TEXT NOT NULL, start INTEGER NOT NULL, packed BLOB NOT NULL,
    PRIMARY KEY (bundle, start)) WITHOUT ROWID;

-- ticks, and what was said
CREATE TABLE IF NOT EXISTS tick (
    only INTEGER PRIMARY KEY CHECK (only = 1), number INTEGER NOT NULL, record BLOB);
CREATE TABLE IF NOT EXISTS frontiers (flow TEXT PRIMARY KEY, frontier INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS retained (tick INTEGER PRIMARY KEY, ranges BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS results (
    tick INTEGER NOT NULL, bundle TEXT NOT NULL, start INTEGER NOT NULL, name TEXT NOT NULL,
    packed BLOB NOT NULL, PRIMARY KEY (tick, bundle, start)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS results_by_name ON results (name, tick);
CREATE TABLE IF NOT EXISTS contents (
    bundle TEXT NOT NULL, start INTEGER NOT NULL, name TEXT NOT NULL, packed BLOB NOT NULL,
    PRIMARY KEY (bundle, start)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS contents_by_name ON contents (name);
CREATE TABLE IF NOT EXISTS sink_progress (
    query TEXT NOT NULL, sink TEXT NOT NULL, value BLOB NOT NULL,
    PRIMARY KEY (query, sink)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS row_counts (query TEXT PRIMARY KEY, rows INTEGER NOT NULL);

-- what was learnt, and the rest
CREATE TABLE IF NOT EXISTS fanouts (probe TEXT PRIMARY KEY, fanout REAL NOT NULL);
CREATE TABLE IF NOT EXISTS numbers (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, value BLOB NOT NULL);
"""
