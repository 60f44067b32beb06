"""The summary tree (RAPTOR): chunk, cluster, summarise, store, retrieve."""
