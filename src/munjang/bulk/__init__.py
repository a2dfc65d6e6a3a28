"""Files larger than memory → vectors on disk, shard by shard, on one machine, in shares on many, or on a cluster of Dask, Ray or Spark."""
