"""Storage in an SQL database, by SQLAlchemy Core: tables, rows, the faster nouns, migrations. What
differs between databases is asked of a `memservice_sql.dialect.SqlDialect` by intention; nothing
else here names one."""
