"""Running tasks: units under leases, in a polling worker or under RQ, and housekeeping."""
