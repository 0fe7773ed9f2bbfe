"""Read evidence and facts from files into the store, and erase evidence."""

from lpf.ingest.editing import edit_item
from lpf.ingest.erasure import Erasure, begin_erasure, erase_evidence, finish_erasure, scrub
from lpf.ingest.evidence_drafts import content_hash
from lpf.ingest.fact_files import FactFile, read_facts
from lpf.ingest.ingestion import IngestOutcome, ingest, ingest_rows
from lpf.ingest.input_rows import FileOptions
from lpf.ingest.new_entities import NewEntities
from lpf.ingest.row_fields import Problem
from lpf.ingest.table_datasets import read_labelled

__all__ = [
    "Erasure",
    "FactFile",
    "FileOptions",
    "IngestOutcome",
    "NewEntities",
    "Problem",
    "begin_erasure",
    "content_hash",
    "edit_item",
    "erase_evidence",
    "finish_erasure",
    "ingest",
    "ingest_rows",
    "read_facts",
    "read_labelled",
    "scrub",
]
