"""The package in `toybox` is a stranger's: its tests run in an environment of its own
(`test_toybox_plugin.py`)."""

collect_ignore = ["toybox"]
