"""The studies: each names the cells it needs and turns their results into tables and figures."""
