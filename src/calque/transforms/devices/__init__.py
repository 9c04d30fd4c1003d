"""Programs over several devices: meshes, shardings, collectives, shard_map."""
