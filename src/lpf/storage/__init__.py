"""The SQL store (SQLite or PostgreSQL) and the cache (memory or Redis)."""

from lpf.storage.atomic_files import write_atomically

__all__ = ["write_atomically"]
