"""Synchronisation of Prolly trees over TCP (sds_core/prolly)."""
