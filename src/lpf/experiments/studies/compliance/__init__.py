"""Compliance, all methods: the paper's main tables."""
