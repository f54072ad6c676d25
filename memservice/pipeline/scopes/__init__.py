"""Updates of scopes when sessions join and leave."""
