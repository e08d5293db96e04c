"""Clusters of the local cloud: an API server with etcd and the controllers, as processes on loopback, without nodes."""
