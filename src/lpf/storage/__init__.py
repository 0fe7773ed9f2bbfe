"""Where things are kept: one SQL store (SQLite or PostgreSQL) and a cache (memory or Redis).

Statements are written with SQLAlchemy Core, compiled once a dialect and run on the driver's own
connection, so that the hot path pays for the database and for little else.
"""

from lpf.storage.atomic_files import write_atomically

__all__ = ["write_atomically"]
