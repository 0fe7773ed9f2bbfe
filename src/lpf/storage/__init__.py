"""The SQL store (SQLite or PostgreSQL) and the cache (memory or Redis)."""
