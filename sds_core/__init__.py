from sds_core import compiled

compiled.load()
