"""Storage in an SQL database with SQLAlchemy Core: tables, rows, faster repositories, migrations.
Everything that differs between databases is behind `memservice_sql.dialect.SqlDialect`; no other
module here names a database."""
