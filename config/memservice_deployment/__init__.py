"""Templates to deploy memservice with: settings, systemd units, containers and monitoring.

memservice reads none of them; docs/operations.md and docs/containers.md list them.
"""
