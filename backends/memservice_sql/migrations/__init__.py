"""Alembic: one history for every database. `memservice_sql.migrating` runs it; there is no
alembic.ini and no env.py to edit."""
