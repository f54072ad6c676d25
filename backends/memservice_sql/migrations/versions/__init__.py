"""The revisions, oldest first. Each is also listed in `memservice_sql.schema_version.HISTORY`."""
