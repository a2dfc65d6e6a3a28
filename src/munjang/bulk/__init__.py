"""Files larger than memory → vectors on disk, shard by shard, on one machine or on a Dask cluster."""
