"""Measurements that need no GPU and no server."""
